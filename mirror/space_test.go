package mirror

import (
	"log/slog"
	"strings"
	"testing"
)

// An archive that needs more than the disk has is a warning with both sizes.
func TestCheckSpace(t *testing.T) {
	r := &run{o: Options{Archive: t.TempDir()}, log: logger{slog.New(slog.DiscardHandler)}, account: &Account{}}
	if free := r.checkSpace(0); free <= 0 || len(r.account.Problems) > 0 {
		t.Errorf("%d, %v", free, r.account.Problems)
	}
	r.checkSpace(1 << 62)
	if p := r.account.Problems; len(p) != 1 || !strings.Contains(p[0].Message, "needs 4611686018427387904 bytes") {
		t.Errorf("%v", p)
	}
}
