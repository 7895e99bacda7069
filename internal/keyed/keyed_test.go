package keyed_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/keyed"
)

func TestOneAtATimeHasALock(t *testing.T) {
	var l keyed.Locks[int]
	var users sync.WaitGroup
	var counts [3]int
	var holders [3]atomic.Int64
	for n := range 300 {
		users.Go(func() {
			unlock, err := l.Lock(t.Context(), n%3)
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			if holders[n%3].Add(1) > 1 {
				t.Error("two have one lock")
			}
			counts[n%3]++
			holders[n%3].Add(-1)
		})
	}
	users.Wait()
	if counts != [3]int{100, 100, 100} || l.Len() != 0 {
		t.Error(counts, l.Len())
	}
}

func TestWaitingForALockEndsWithTheContext(t *testing.T) {
	stopped := errors.New("stopped")
	ended, stop := context.WithCancelCause(t.Context())
	stop(stopped)
	var l keyed.Locks[string]
	unlock, err := l.Lock(ended, "a") // it is free
	if err != nil || l.Len() != 1 {
		t.Fatal(err, l.Len())
	}
	if _, err := l.Lock(ended, "a"); err != stopped {
		t.Error(err)
	}
	other, err := l.Lock(ended, "b")
	if err != nil || l.Len() != 2 {
		t.Fatal(err, l.Len())
	}
	other()
	unlock()
	if again, err := l.Lock(t.Context(), "a"); err != nil {
		t.Error(err)
	} else {
		again()
	}
}

// Of ten callers at once, five for each key, one each calls; of ten after them one each where the result is not kept.
func TestMemo(t *testing.T) {
	failed := errors.New("failed")
	for _, test := range []struct {
		name         string
		keep         bool
		err          error
		calls, later int64 // for one key
	}{
		{"a value is kept", false, nil, 1, 1},
		{"an error is shared and not kept", false, failed, 1, 2},
		{"an error is kept", true, failed, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := keyed.Memo[int, int]{KeepErrors: test.keep}
				var calls [2]atomic.Int64
				for _, want := range []int64{test.calls, test.later} {
					finish := make(chan struct{})
					var users sync.WaitGroup
					for n := range 10 {
						users.Go(func() {
							got, err := m.Get(t.Context(), n%2, func(context.Context) (int, error) {
								calls[n%2].Add(1)
								<-finish
								return 7 + n%2, test.err
							})
							if got != 7+n%2 || err != test.err {
								t.Errorf("%d, %v", got, err)
							}
						})
					}
					synctest.Wait() // all wait for the two that call
					close(finish)
					users.Wait()
					for key := range calls {
						if got := calls[key].Load(); got != want {
							t.Errorf("%d calls for %d, want %d", got, key, want)
						}
					}
				}
			})
		})
	}
}

// What a caller meets alone is not the result of those that wait, nor of the next ones.
func TestMemoCallsAgainAfter(t *testing.T) {
	stopped := errors.New("stopped")
	for name, first := range map[string]func(ctx context.Context) (string, error){
		"the end of the context": func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		},
		"a panic": func(ctx context.Context) (string, error) {
			<-ctx.Done()
			panic("a bug")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := keyed.Memo[string, string]{KeepErrors: true}
				ctx, stop := context.WithCancelCause(t.Context())
				calls := 0
				var users sync.WaitGroup
				users.Go(func() {
					err := guard.Call(func() error {
						_, err := m.Get(ctx, "a", first)
						return err
					})
					if err == nil {
						t.Error("no error")
					}
				})
				synctest.Wait()
				for range 3 {
					users.Go(func() {
						got, err := m.Get(t.Context(), "a", func(context.Context) (string, error) {
							calls++
							return "result", nil
						})
						if got != "result" || err != nil {
							t.Errorf("%q, %v", got, err)
						}
					})
				}
				synctest.Wait()
				stop(stopped)
				users.Wait()
				if calls != 1 {
					t.Errorf("%d calls", calls)
				}
			})
		})
	}
}

func TestWaitingForAResultEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m keyed.Memo[string, int]
		stopped := errors.New("stopped")
		ended, stop := context.WithCancelCause(t.Context())
		stop(stopped)
		finish := make(chan struct{})
		var users sync.WaitGroup
		users.Go(func() {
			_, _ = m.Get(t.Context(), "a", func(context.Context) (int, error) {
				<-finish
				return 1, nil
			})
		})
		synctest.Wait()
		if _, err := m.Get(ended, "a", nil); err != stopped {
			t.Error(err)
		}
		close(finish)
		users.Wait()
		if got, err := m.Get(ended, "a", nil); got != 1 || err != nil { // it is known
			t.Error(got, err)
		}
	})
}
