package pairs_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/pairs"
	"github.com/operator-bindery/bindery/internal/fault"
)

func TestRead(t *testing.T) {
	table := images.BuiltIn()
	for text, want := range map[string]string{
		"# a list\n\na/x:v1 docker://b.test/x:v1\noci:from:v1=oci:to:v1 # the same\noci:from:v1 oci:to:v2\n"://
		"a/x:v1>b.test/x oci:from:v1>to oci:from:v1>to",
		"":                       "f names no image",
		"# none\n":               "f names no image",
		"\na/x:v1\n":             "f:2: expected a source and a destination",
		"a b c\n":                "f:1: expected a source and a destination",
		"a/x:v1 nosuch:x\n":      "f:1: ",
		"a oci:x:v1\nb oci:x:v1": "f:2: oci:x:v1 is the destination of two images",
		"a docker-archive:x.tar:a/b:v1\nb docker-archive:x.tar:a/c:v1": "f:2: x.tar is the destination of two images",
	} {
		all, err := pairs.Read(text, "f", table, table.Parse)
		var got []string
		for _, p := range all {
			got = append(got, p.Source+">"+p.Place())
		}
		switch {
		case err != nil && !strings.HasPrefix(err.Error(), want):
			t.Errorf("%q: %v", text, err)
		case err == nil && strings.Join(got, " ") != want:
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func TestCopy(t *testing.T) {
	table := images.BuiltIn()
	all, err := pairs.Read("a oci:one:v1\nb oci:one:v2\nc oci:two:v1\n", "f", table, table.Parse)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		fails     string // the sources of images that cannot be copied
		keepGoing bool
		copied    string
		failed    int
		err       error
	}{
		"all":                   {"", false, "a b c", 0, nil},
		"the first ends all":    {"a", false, "", 0, broken},
		"going on":              {"a", true, "b c", 1, nil},
		"going on without any":  {"abc", true, "", 0, broken},
		"going on from another": {"bc", true, "a", 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var copied []string
			failed, err := pairs.Copy(t.Context(), all, 1, c.keepGoing, func(_ context.Context, i int) error {
				mu.Lock()
				defer mu.Unlock()
				if strings.Contains(c.fails, all[i].Source) {
					return broken
				}
				copied = append(copied, all[i].Source)
				return nil
			})
			slices.Sort(copied)
			if failed != c.failed || !errors.Is(err, c.err) || strings.Join(copied, " ") != c.copied {
				t.Errorf("copied %v, %d failed: %v", copied, failed, err)
			}
		})
	}
	ended, end := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	fail := func(context.Context, int) error { end(stop); return broken }
	if _, err := pairs.Copy(ended, all, 2, true, fail); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestPanicOfACopyIsAnError(t *testing.T) {
	table := images.BuiltIn()
	all, err := pairs.Read("a oci:one:v1\nb oci:two:v1\n", "f", table, table.Parse)
	if err != nil {
		t.Fatal(err)
	}
	for _, keepGoing := range []bool{false, true} {
		_, err := pairs.Copy(t.Context(), all, 1, keepGoing, func(context.Context, int) error { panic("a bug") })
		if fault.ClassOf(err) != fault.Bug {
			t.Errorf("going on %v: %v", keepGoing, err)
		}
	}
}

// Copies to one place are made one after the other, those to others at the same time.
func TestCopiesToOnePlaceWait(t *testing.T) {
	table := images.BuiltIn()
	all, err := pairs.Read("a oci:one:v1\nb oci:one:v2\nc oci:two:v1\n", "f", table, table.Parse)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	busy := map[string]bool{}
	other := make(chan struct{})
	failed, err := pairs.Copy(t.Context(), all, 3, false, func(_ context.Context, i int) error {
		place := all[i].Place()
		mu.Lock()
		if busy[place] {
			t.Errorf("two copies to %s at once", place)
		}
		busy[place] = true
		mu.Unlock()
		if place == "two" {
			close(other)
		} else {
			<-other // only a copy that goes on at the same time closes it
		}
		mu.Lock()
		busy[place] = false
		mu.Unlock()
		return nil
	})
	if failed != 0 || err != nil {
		t.Error(failed, err)
	}
}
