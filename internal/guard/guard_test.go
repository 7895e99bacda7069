package guard_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
)

func breaks() error {
	var m map[string]int
	//lint:ignore SA5000 the bug of this test
	m["x"] = 1
	return nil
}

func TestPanicIsAnErrorWithItsPlace(t *testing.T) {
	err := guard.Call(breaks)
	var p *guard.Panic
	if !errors.As(err, &p) || err.Error() != "internal error: assignment to entry in nil map" || fault.ClassOf(err) != fault.Bug {
		t.Fatalf("%v, class %d", err, fault.ClassOf(err))
	}
	if len(p.Frames) == 0 || !strings.Contains(p.Frames[0], "guard_test.breaks guard_test.go:") {
		t.Errorf("%q", p.Frames)
	}
	for _, f := range p.Frames {
		if strings.Contains(f, "runtime.") || strings.Contains(f, "/guard.Recover") {
			t.Errorf("%q", p.Frames)
		}
	}
	// It stays the same error on its way out.
	again := guard.Call(func() error { panic(p) })
	if again != error(p) {
		t.Errorf("%v", again)
	}
}

func TestErrorIsReturned(t *testing.T) {
	want := errors.New("x")
	if err := guard.Call(func() error { return want }); err != want {
		t.Error(err)
	}
	if err := guard.Call(func() error { return nil }); err != nil {
		t.Error(err)
	}
}

func TestWhatCleansUpSeesTheError(t *testing.T) {
	removed := false
	f := func() (err error) {
		defer func() { removed = err != nil }()
		defer guard.Recover(&err)
		return breaks()
	}
	if err := f(); err == nil || !removed {
		t.Errorf("%v, removed: %v", err, removed)
	}
}

func TestPanicEndsTheGroup(t *testing.T) {
	g, ctx := guard.WithContext(t.Context())
	g.Go(func() error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	g.Go(breaks)
	err := g.Wait()
	var p *guard.Panic
	if !errors.As(err, &p) || context.Cause(ctx) != err {
		t.Errorf("%v, cause %v", err, context.Cause(ctx))
	}
}

func TestGroupHasAtMostItsLimit(t *testing.T) {
	var g guard.Group
	g.SetLimit(3)
	var running, most atomic.Int64
	for range 100 {
		g.Go(func() error {
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			running.Add(-1)
			return nil
		})
	}
	if err := g.Wait(); err != nil || most.Load() > 3 {
		t.Errorf("%v, %d at once", err, most.Load())
	}
}

func TestFirstErrorOfTheGroup(t *testing.T) {
	first := errors.New("first")
	g, ctx := guard.WithContext(t.Context())
	g.Go(func() error { return first })
	<-ctx.Done()
	g.Go(func() error { return errors.New("second") })
	if err := g.Wait(); err != first || context.Cause(ctx) != first {
		t.Errorf("%v, cause %v", err, context.Cause(ctx))
	}
}

func TestLimitOfTheGroupIsAtLeastOne(t *testing.T) {
	for _, limit := range []int{0, -1} {
		var g guard.Group
		g.SetLimit(limit)
		ran := false
		g.Go(func() error { ran = true; return nil })
		if err := g.Wait(); err != nil || !ran {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}
