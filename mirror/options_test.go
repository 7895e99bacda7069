package mirror

import (
	"strings"
	"testing"
)

// An archive that needs more than the disk has is a warning with both sizes.
func TestCheckSpace(t *testing.T) {
	report, dir := newReport(&Options{}), t.TempDir()
	if free := checkSpace(report, dir, 0); free <= 0 || len(report.account.Problems) > 0 {
		t.Errorf("%d, %v", free, report.account.Problems)
	}
	checkSpace(report, dir, 1<<62)
	if p := report.account.Problems; len(p) != 1 || !strings.Contains(p[0].Message, "needs 4611686018427387904 bytes") {
		t.Errorf("%v", p)
	}
}

func TestParseShard(t *testing.T) {
	for text, want := range map[string]Shard{"1/1": {1, 1}, "3/4": {3, 4}} {
		if got, err := ParseShard(text); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "0/4", "5/4", "1/0", "-1/4", "1/4x", "1/4 5", "a/b", "1/99999999"} {
		if got, err := ParseShard(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
