package problem_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/problem"
)

func TestProblem(t *testing.T) {
	cause := errors.New("cause")
	for want, p := range map[string]problem.Problem{
		"f:2:3: a.b: wrong (right)": {Place: problem.Place{File: "f", Line: 2, Column: 3}, Field: "a.b", Text: "wrong", Fix: "right", Err: cause},
		"f:2: wrong":                {Place: problem.Place{File: "f", Line: 2}, Text: "wrong", Err: cause},
		"f: wrong":                  {Place: problem.Place{File: "f", Column: 3}, Text: "wrong", Err: cause},
		"a: wrong":                  {Place: problem.Place{Line: 2}, Field: "a", Text: "wrong", Err: cause},
	} {
		if p.Error() != want || !errors.Is(p, cause) {
			t.Errorf("%s, want %s", p.Error(), want)
		}
	}
}

func TestList(t *testing.T) {
	var l problem.List[error]
	if l.Err() != nil {
		t.Error("an empty list is an error")
	}
	first, made := errors.New("first"), 0
	l.Add(first)
	for i := range 1000 {
		l.AddNew(func() error {
			made++
			return fmt.Errorf("error %d", i)
		})
	}
	err := l.Err()
	if !errors.Is(err, first) || made != 99 || !strings.HasSuffix(err.Error(), "error 98\n... and 901 more problems") {
		t.Errorf("%d were made: %v", made, err)
	}
}

func TestListOfLongErrors(t *testing.T) {
	var l problem.List[error]
	for range 1000 {
		l.Add(errors.New(strings.Repeat("x", 10<<10)))
	}
	if n := len(l.Error()); n > 100<<10 {
		t.Errorf("%d bytes", n)
	}
}

// Repeated texts are shown once, and are none of the others.
func TestLines(t *testing.T) {
	var list []int
	for i := range 3 * problem.Most {
		list = append(list, i/2)
	}
	lines := problem.Lines(list, 7, func(i int) string { return fmt.Sprint(i) })
	if len(lines) != problem.Most+1 || lines[problem.Most-1] != "99" || lines[problem.Most] != "... and 57 more problems" {
		t.Errorf("%q", lines)
	}
}
