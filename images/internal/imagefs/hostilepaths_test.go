package imagefs

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// What a hostile label asks for is refused at once, and an extraction that is cancelled leaves nothing behind.
func TestExtractOfHostilePaths(t *testing.T) {
	f := stack(nil, plainLayer(tarOf(t, entry{name: "configs/a", body: "x"})))
	for name, wanted := range map[string][]string{
		"a deep path": {strings.Repeat("/a", 40_000)}, "a long path": {strings.Repeat("a", 80_000)},
		"many paths": make([]string, 100_000),
	} {
		if _, err := extract(t, f, limit.Limits{}, wanted...); !errors.Is(err, fault.ErrLimit) ||
			len(err.Error()) > 500 {
			t.Errorf("%s: got %.600v", name, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	temp := t.TempDir()
	if _, err := f.Extract(ctx, []string{"configs"}, limit.Limits{}, temp); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
