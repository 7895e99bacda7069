package medium_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// stalled is content that comes to a halt after some bytes, tells so, and fails when it is let go.
type stalled struct {
	rest    []byte
	reached chan struct{}
	fails   chan struct{}
}

func (s *stalled) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		close(s.reached)
		<-s.fails
		return 0, errReset
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *stalled) Close() error { return nil }

// Large blobs are written at the same time: one that stalls keeps no other back. If it fails at last, its place is
// there for the next attempt, in this run and in the one after a kill; and if there is none, the archive is good all
// the same.
func TestBlobsBesideOneAnother(t *testing.T) {
	ctx := context.Background()
	slow, quick := simple(t, "slow", 1, 2_000_000), simple(t, "quick", 2, 1_500_000, 1_400_000)
	for _, form := range bothForms {
		for _, again := range []string{"fails", "fails, and is written again", "killed", "killed, and another one",
			"killed while it is written"} {
			for _, segment := range []int64{0, 2_100_000} {
				t.Run(fmt.Sprintf("%s %s %d", form, again, segment), func(t *testing.T) {
					dir := t.TempDir()
					o := medium.Options{Form: form, SegmentBytes: segment}
					w := create(t, dir, o)
					s := &stalled{slow.blobs[1].content[:700_000], make(chan struct{}), make(chan struct{})}
					var all sync.WaitGroup
					all.Go(func() {
						opened := false
						_, err := w.Repository("a/slow").WriteBlob(ctx, slow.blobs[1].Descriptor,
							store.Content{Open: func(context.Context, int64) (io.ReadCloser, error) {
								if opened {
									return nil, errReset
								}
								opened = true
								return s, nil
							}})
						if !errors.Is(err, errReset) {
							t.Error(err)
						}
					})
					<-s.reached
					write(t, w.Repository("a/quick"), quick, "v1")
					kept := dir
					if again == "killed while it is written" {
						kept = t.TempDir()
						for _, name := range names(t, dir) {
							copyFile(t, filepath.Join(dir, name), filepath.Join(kept, name))
						}
					}
					close(s.fails)
					all.Wait()
					if w.Has(slow.blobs[1].Digest) {
						t.Error("it has it")
					}
					if strings.HasPrefix(again, "killed") {
						if err := w.Close(); err != nil {
							t.Fatal(err)
						}
						w = create(t, kept, o)
						if w.Resumed() < 2_900_000 {
							t.Error(w.Resumed())
						}
						write(t, w.Repository("a/quick"), quick, "v1")
					}
					rewritten := again == "fails, and is written again" || again == "killed"
					if rewritten {
						write(t, w.Repository("a/slow"), slow, "v1")
					}
					account := finish(t, w, medium.Contents{})
					r := read(t, kept)
					same(t, r.Repository("a/quick"), quick, "v1")
					if rewritten {
						same(t, r.Repository("a/slow"), slow, "v1")
					}
					void := 0
					for _, seg := range account.Segments {
						content, err := os.ReadFile(filepath.Join(kept, seg.Name))
						if err != nil || seg.SHA256.Encoded() != fmt.Sprintf("%x", sha256.Sum256(content)) {
							t.Errorf("%v %v", seg, err)
						}
						tr := tar.NewReader(bytes.NewReader(content))
						for h, err := tr.Next(); err != io.EOF; h, err = tr.Next() {
							if err != nil {
								t.Fatal(err)
							}
							if strings.HasPrefix(h.Name, ".void/") {
								void++
							}
						}
					}
					if want := map[bool]int{true: 0, false: 1}[rewritten]; void != want {
						t.Errorf("%d files without a meaning", void)
					}
				})
			}
		}
	}
}
