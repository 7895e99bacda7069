package web

import (
	"sync"
	"testing"
)

// What was used last is kept, up to a sum of sizes, and the last one in any case.
func TestRecent(t *testing.T) {
	r, reads := recent[string, int]{most: 10}, map[string]int{}
	get := func(key string, size int64) {
		t.Helper()
		if _, err := r.get(key, size, func() (int, error) { reads[key]++; return 0, nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		key  string
		size int64
		want int // how often it was read by then
	}{
		{"a", 4, 1}, {"b", 4, 1}, {"a", 4, 1}, {"c", 4, 1}, {"a", 4, 1}, {"b", 4, 2}, {"large", 40, 1}, {"large", 40, 1}, {"a", 4, 2},
	} {
		if get(step.key, step.size); reads[step.key] != step.want {
			t.Fatalf("%s was read %d times, want %d", step.key, reads[step.key], step.want)
		}
	}
}

func TestRecentReadsOnce(t *testing.T) {
	r, reads := recent[string, int]{most: 1}, 0
	var users sync.WaitGroup
	for range 8 {
		users.Go(func() { _, _ = r.get("a", 1, func() (int, error) { reads++; return 0, nil }) })
	}
	if users.Wait(); reads != 1 {
		t.Errorf("read %d times", reads)
	}
}
