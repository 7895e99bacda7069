package jobs

import (
	"fmt"
	"testing"
)

// Each line is in one part, the parts are about equal, a longer list moves no line, and one part more moves few.
func TestPart(t *testing.T) {
	lines := func(n int) (out []Line) {
		for i := range n {
			out = append(out, Line{Number: i + 1, Source: fmt.Sprintf("registry.example.com/acme/index:v%d", i)})
		}
		return out
	}
	parts := func(list []Line, count int) map[int]int {
		of := map[int]int{}
		for index := 1; index <= count; index++ {
			mine := Part(list, index, count)
			if len(mine) < len(list)/count*8/10 || len(mine) > len(list)/count*12/10 {
				t.Errorf("part %d/%d has %d of %d lines", index, count, len(mine), len(list))
			}
			for n, l := range mine {
				if of[l.Number] != 0 {
					t.Fatalf("line %d is in two parts", l.Number)
				}
				if n > 0 && mine[n-1].Number >= l.Number {
					t.Fatal("the order is another one")
				}
				of[l.Number] = index
			}
		}
		if len(of) != len(list) {
			t.Errorf("%d of %d lines are in a part", len(of), len(list))
		}
		return of
	}
	few, all, more := parts(lines(5000), 8), parts(lines(10_000), 8), parts(lines(10_000), 9)
	for line, part := range few {
		if all[line] != part {
			t.Fatalf("line %d moves when the list grows", line)
		}
	}
	moved := 0
	for line, part := range all {
		if more[line] != part {
			moved++
		}
	}
	if moved > 10_000/9*12/10 {
		t.Errorf("%d of 10000 lines move to the ninth part", moved)
	}
	if got := Part(lines(3), 1, 1); len(got) != 3 {
		t.Error(got)
	}
}
