package guard_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/operator-bindery/bindery/internal/guard"
)

func TestEach(t *testing.T) {
	failed, stopped := errors.New("failed"), errors.New("stopped")
	type call struct {
		ctx  context.Context
		n    int
		stop context.CancelCauseFunc // of the context that Each gets
	}
	fine := func(call) error { return nil }
	at := func(n int, f func(call) error) func(call) error {
		return func(c call) error {
			if c.n == n {
				return f(c)
			}
			return nil
		}
	}
	// untilEnd has all others wait for the end of the context, so that none of their places is free before it.
	untilEnd := func(n int, f func(call) error) func(call) error {
		return func(c call) error {
			if c.n == n {
				return f(c)
			}
			<-c.ctx.Done()
			return nil
		}
	}
	fail := func(call) error { return failed }
	end := func(c call) error { c.stop(stopped); return nil }
	for _, test := range []struct {
		name     string
		jobs, of int
		f        func(call) error
		ended    bool // the context has ended before
		err      error
		panics   bool
		calls    int
	}{
		{name: "nothing to do", jobs: 3, f: fine},
		{name: "nothing to do in an ended context", jobs: 3, f: fine, ended: true},
		{name: "all are done", jobs: 3, of: 100, f: fine, calls: 100},
		{name: "fewer than jobs", jobs: 100, of: 3, f: fine, calls: 3},
		{name: "no jobs are one", jobs: 0, of: 5, f: fine, calls: 5},
		{name: "fewer than no jobs are one", jobs: -1, of: 5, f: fine, calls: 5},
		{name: "an error ends it", jobs: 1, of: 5, f: at(2, fail), err: failed, calls: 3},
		{name: "an error ends the calls that run", jobs: 3, of: 9, f: untilEnd(1, fail), err: failed, calls: 3},
		{name: "the first error counts", jobs: 2, of: 9, f: func(c call) error {
			if c.n == 0 {
				return failed
			}
			<-c.ctx.Done()
			return errors.New("second")
		}, err: failed, calls: 2},
		{name: "the first error is the cause", jobs: 2, of: 9, f: func(c call) error {
			if c.n == 0 {
				return failed
			}
			<-c.ctx.Done()
			if context.Cause(c.ctx) != failed {
				t.Error(context.Cause(c.ctx))
			}
			return nil
		}, err: failed, calls: 2},
		{name: "a panic ends it", jobs: 1, of: 5, f: at(2, func(call) error { return breaks() }), panics: true, calls: 3},
		{name: "nothing is started in an ended context", jobs: 3, of: 5, f: fine, ended: true, err: stopped},
		{name: "the end of the context ends it", jobs: 1, of: 5, f: at(2, end), err: stopped, calls: 3},
		{name: "the end of the context ends the calls that run", jobs: 3, of: 9, f: untilEnd(1, end), err: stopped, calls: 3},
		{name: "an error after the end of the context is returned", jobs: 1, of: 5,
			f: at(2, func(c call) error { c.stop(stopped); return failed }), err: failed, calls: 3},
		{name: "the context ends in the last call", jobs: 1, of: 3, f: at(2, end), calls: 3},
	} {
		for _, form := range []string{"slice", "iterator"} {
			t.Run(test.name+"/"+form, func(t *testing.T) {
				ctx, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				if test.ended {
					stop(stopped)
				}
				var running, calls atomic.Int64
				var mu sync.Mutex
				var seen []int
				one := func(ctx context.Context, n int) error {
					calls.Add(1)
					if limit := int64(max(test.jobs, 1)); running.Add(1) > limit {
						t.Errorf("more than %d at once", limit)
					}
					defer running.Add(-1)
					mu.Lock()
					seen = append(seen, n)
					mu.Unlock()
					return test.f(call{ctx, n, stop})
				}
				all := make([]int, test.of)
				for n := range all {
					all[n] = 10 * n
				}
				var err error
				if form == "slice" {
					err = guard.Each(ctx, test.jobs, all, func(ctx context.Context, n, item int) error {
						if item != 10*n {
							t.Errorf("item %d is %d", n, item)
						}
						return one(ctx, n)
					})
				} else {
					err = guard.EachOf(ctx, test.jobs, slices.Values(all), func(ctx context.Context, item int) error {
						return one(ctx, item/10)
					})
				}
				var p *guard.Panic
				if isPanic := errors.As(err, &p); isPanic != test.panics || !isPanic && err != test.err {
					t.Errorf("error %v", err)
				}
				slices.Sort(seen)
				for n, got := range seen {
					if n != got {
						t.Errorf("calls for %v", seen)
						break
					}
				}
				if int(calls.Load()) != test.calls || running.Load() != 0 {
					t.Errorf("%d calls, %d running", calls.Load(), running.Load())
				}
			})
		}
	}
}

func TestEachOfTakesItemsWhenTheyAreNeeded(t *testing.T) {
	failed := errors.New("failed")
	taken := 0
	endless := func(yield func(int) bool) {
		for yield(taken) {
			taken++
		}
	}
	err := guard.EachOf(t.Context(), 1, endless, func(_ context.Context, n int) error {
		if n == 3 {
			return failed
		}
		return nil
	})
	if err != failed || taken != 4 {
		t.Errorf("%v, %d taken", err, taken)
	}
}

func TestTryEach(t *testing.T) {
	failed, stopped := errors.New("failed"), errors.New("stopped")
	for _, test := range []struct {
		name       string
		most, fail int // the first that fails
		stop       int // the one in which the context ends
		want       string
	}{
		{"all are done", 0, 9, 9, "....."},
		{"the others are done", 0, 1, 9, ".EEEE"},
		{"until there are enough errors", 2, 1, 9, ".EE__"},
		{"one error is enough", 1, 0, 9, "E____"},
		{"fewer errors than enough", 3, 3, 9, "...EE"},
		{"until the context ends", 0, 9, 2, "...__"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			got := []byte("_____")
			errs := guard.TryEach(ctx, 1, test.most, make([]string, 5), func(ctx context.Context, n int, _ string) error {
				got[n] = '.'
				if n == test.stop {
					stop(stopped)
				}
				if n >= test.fail {
					return failed
				}
				return nil
			})
			for n, err := range errs {
				if err == failed {
					got[n] = 'E'
				} else if err != nil {
					t.Error(n, err)
				}
			}
			if string(got) != test.want {
				t.Errorf("%s, not %s", got, test.want)
			}
		})
	}
}

func TestTryEachLetsCallsThatRunGoOn(t *testing.T) {
	second := make(chan struct{})
	errs := guard.TryEach(t.Context(), 2, 1, make([]int, 9), func(ctx context.Context, n, _ int) error {
		if n == 1 {
			close(second)
			return errors.New("failed")
		}
		<-second
		return ctx.Err()
	})
	if errs[0] != nil || errs[1] == nil {
		t.Error(errs)
	}
}

func TestPanicInTryEachIsAnErrorOfItsItem(t *testing.T) {
	errs := guard.TryEach(t.Context(), 1, 0, make([]int, 3), func(_ context.Context, n, _ int) error {
		if n == 1 {
			return breaks()
		}
		return nil
	})
	var p *guard.Panic
	if errs[0] != nil || !errors.As(errs[1], &p) || errs[2] != nil {
		t.Error(errs)
	}
}
