package storetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/store"
)

// Place is a place to write to. It is empty at first.
type Place struct {
	// Writer opens the place, as another program does.
	Writer func(t testing.TB) store.Writer
	// Reader opens what is committed, as another program does. It is nil for a place where what is written is seen at
	// once, as in a registry: then other programs read it with Writer.
	Reader func(t testing.TB) store.Reader
	// Replaced tells that Commit replaces what was there: a writer begins with an empty place, and there is one at a
	// time.
	Replaced bool
	// Conditions tells that the place does compare tags with [store.WriteOptions.If], as not every one does that can.
	Conditions bool
	// LooseLists tells that referrers are listed in any order, and with other artifact types than they have.
	LooseLists bool
	// Dir, unless empty, is the directory of the files of the place, and of nothing else.
	Dir string
	// Corrupt changes a byte of what is committed with a digest, unless it is nil. Files in Dir need none.
	Corrupt func(t testing.TB, d digest.Digest)
	// Vanish removes a blob, unless it is nil: the manifests that refer to it stay, and new ones are refused.
	Vanish func(t testing.TB, d digest.Digest)
}

// TestWriter checks places that are written. create makes an empty one for each check.
func TestWriter(t *testing.T, create func(t testing.TB) Place) {
	for _, check := range []struct {
		name string
		run  func(t *testing.T, p Place)
	}{
		{"image", checkImage},
		{"hostile names", checkHostileWrites},
		{"wrong content", checkWrongContent},
		{"broken sources", checkBrokenSources},
		{"cancelled", checkCancelled},
		{"blobs at once", checkBlobsAtOnce},
		{"content elsewhere", checkElsewhere},
		{"corrupt", checkCorrupt},
		{"tags", checkTags},
		{"conditions", checkConditions},
		{"sparse index", checkSparse},
		{"vanished blob", checkVanished},
		{"changes of tags", checkUpdates},
		{"changes at once", checkUpdatesAtOnce},
		{"referrers", checkReferrers},
		{"discard", checkDiscard},
	} {
		t.Run(check.name, func(t *testing.T) { check.run(t, create(t)) })
	}
}

// reader opens the place to read what is committed.
func (p Place) reader(t testing.TB) store.Reader {
	if p.Reader == nil {
		return p.Writer(t)
	}
	return p.Reader(t)
}

// commit commits what a writer has written, and ends its use.
func commit(t testing.TB, w store.Writer) {
	t.Helper()
	if err := errors.Join(w.Commit(t.Context()), w.Discard()); err != nil {
		t.Fatal("commit:", err)
	}
}

// write writes an image in a run of its own.
func (p Place) write(t testing.TB, i image, tag string) {
	t.Helper()
	w := p.Writer(t)
	if err := i.write(t.Context(), w, tag); err != nil {
		t.Fatal(err)
	}
	commit(t, w)
}

// tagOf returns what a tag stands for; empty if there is none.
func tagOf(t testing.TB, r store.Reader, tag string) digest.Digest {
	t.Helper()
	d, err := r.Head(t.Context(), tag)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return d.Digest
}

// files lists the files of a place in order, with what they hold.
func (p Place) files(t testing.TB) (list []string) {
	t.Helper()
	if p.Dir == "" {
		return nil
	}
	err := filepath.WalkDir(p.Dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == p.Dir {
			return err
		}
		content := digest.Digest("directory")
		if d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = digest.FromBytes(text)
		}
		name, err := filepath.Rel(p.Dir, path)
		list = append(list, name+" "+content.String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// cancelled returns a context that has ended.
func cancelled(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
