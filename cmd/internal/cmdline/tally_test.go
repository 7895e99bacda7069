package cmdline

import (
	"testing"
	"time"
)

func TestTallyText(t *testing.T) {
	for _, c := range []struct {
		state TallyState
		spent time.Duration
		want  string
	}{
		{TallyState{}, time.Second, "looking what there is to do "},
		{TallyState{Done: 0, All: 4, Bytes: 0, AllBytes: 2048}, 5 * time.Second, "0 of 4, 0 B of 2 KiB "},
		{TallyState{Done: 1, All: 4, Bytes: 1024, AllBytes: 4096}, 10 * time.Second,
			"1 of 4, 1 KiB of 4 KiB, 102 B/s, about 30s left "},
		{TallyState{Done: 1, All: 2, Bytes: 3072, AllBytes: 2048}, time.Millisecond, "1 of 2, 3 KiB of 3 KiB "},
	} {
		if got := c.state.text(c.spent); got != c.want {
			t.Errorf("%+v: %q instead of %q", c.state, got, c.want)
		}
	}
}
