package medium_test

import (
	"context"
	"testing"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/store/storetest"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// alone is the only repository of an archive, with which the archive is committed.
type alone struct {
	store.Writer
	w *medium.Writer
}

func (a alone) Commit(ctx context.Context) error {
	_, err := a.w.Finish(ctx, medium.Contents{})
	return err
}

func (a alone) Discard() error { return a.w.Discard() }

// archiveIn is an archive in a directory.
func archiveIn(form medium.Form) func(t testing.TB, dir string) storetest.Place {
	return func(t testing.TB, dir string) storetest.Place {
		return storetest.Place{Dir: dir, Replaced: true,
			Writer: func(t testing.TB) store.Writer {
				w := create(t, dir, medium.Options{Form: form, Key: "k", SegmentBytes: 5 << 20})
				return alone{w.Repository("acme/app"), w}
			},
			Reader: func(t testing.TB) store.Reader { return read(t, dir).Repository("acme/app") }}
	}
}

func TestStore(t *testing.T) {
	for _, form := range bothForms {
		t.Run(string(form), func(t *testing.T) {
			t.Parallel()
			storetest.TestWriter(t, func(t testing.TB) storetest.Place { return archiveIn(form)(t, t.TempDir()) })
		})
	}
}

func TestKilledStore(t *testing.T) {
	for _, form := range bothForms {
		t.Run(string(form), func(t *testing.T) {
			t.Parallel()
			storetest.TestKilled(t, archiveIn(form))
		})
	}
}
