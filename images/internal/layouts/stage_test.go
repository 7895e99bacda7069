package layouts

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/internal/filelock"
)

// A stage is made also where another user holds the lock of the directory, as anybody can with that for temporary
// files.
func TestStageWaitsForNobody(t *testing.T) {
	dir := t.TempDir()
	held, err := filelock.LockDir(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := NewStage(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// However many runs sweep at the same time, none loses the stage that it was given.
func TestStagesOfManyRuns(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				s, err := NewStage(t.Context(), dir)
				if err != nil {
					t.Error(err)
					return
				}
				Sweep(dir, nil)
				if _, err := os.Lstat(s.Path); err != nil {
					t.Errorf("a living stage: %v", err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
