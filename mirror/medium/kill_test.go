//go:build hostile && linux

package medium_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// paced is content that comes in small pieces, one at each tick, so that a kill finds the archive half written.
type paced struct {
	io.Reader
	tick <-chan time.Time
}

func (s paced) Read(p []byte) (int, error) {
	<-s.tick
	return s.Reader.Read(p[:min(len(p), 20_000)])
}

// TestMain writes an archive if it is asked to by the environment: a process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("MEDIUM_TEST_DIR"); dir != "" {
		if err := writeSlowly(dir, medium.Form(os.Getenv("MEDIUM_TEST_FORM"))); err != nil {
			println(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// killed are the images of that process; they share layers.
func killed() (list []image) {
	var t testing.T
	for i := range uint64(6) {
		list = append(list, simple(&t, string(rune('a'+i)), i, 1_300_000, 1_200_000, 50_000, 700))
	}
	return list
}

func writeSlowly(dir string, form medium.Form) error {
	ctx := context.Background()
	w, err := medium.Create(ctx, dir, medium.Options{Form: form, Key: "k", SegmentBytes: 5 << 20})
	if err != nil {
		return err
	}
	defer w.Close()
	var all sync.WaitGroup
	errs := make(chan error, 100)
	for i, one := range killed() {
		r := w.Repository("acme/" + string(rune('a'+i)))
		all.Go(func() {
			for _, b := range one.blobs {
				_, err := r.WriteBlob(ctx, b.Descriptor, store.Content{Open: func(ctx context.Context, from int64) (io.ReadCloser, error) {
					f, err := opener(b.content[from:]).Open(ctx, 0)
					return io.NopCloser(paced{f, time.Tick(100 * time.Microsecond)}), err
				}})
				if err != nil {
					errs <- err
				}
			}
			if err := r.WriteManifest(ctx, one.manifest.content, one.manifest.MediaType,
				store.WriteOptions{Tag: "v1"}); err != nil {
				errs <- err
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		return err
	}
	_, err = w.Finish(ctx, medium.Contents{})
	return err
}

// A process is killed again and again, at random moments, until one comes to the end: the archive is whole, and before
// that the older one was there.
func TestKilled(t *testing.T) {
	for _, form := range bothForms {
		dir := t.TempDir()
		old := create(t, dir, medium.Options{Form: form, Key: "old"})
		write(t, old.Repository("acme/old"), simple(t, "old", 90, 10), "v1")
		finish(t, old, medium.Contents{})
		kills := 0
		for wait := time.Millisecond; ; wait += 4 * time.Millisecond {
			ctx, cancel := context.WithTimeout(context.Background(), wait/2+rand.N(wait))
			c := exec.CommandContext(ctx, os.Args[0])
			c.Env = append(os.Environ(), "MEDIUM_TEST_DIR="+dir, "MEDIUM_TEST_FORM="+string(form))
			out, err := c.CombinedOutput()
			cancel()
			if err == nil || c.ProcessState != nil && c.ProcessState.Success() { // the kill came when it had ended
				break
			}
			if c.Process == nil && errors.Is(err, context.DeadlineExceeded) {
				continue // it was not started in time
			}
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Exited() {
				t.Fatalf("%s %v", out, err)
			}
			kills++
			r := read(t, dir)
			if got := r.Repositories(); len(got) != 1 && len(got) != 6 {
				t.Fatal(got)
			}
			r.Close()
		}
		t.Logf("%s: %d kills", form, kills)
		if kills < 10 {
			t.Errorf("%d kills", kills)
		}
		r := read(t, dir)
		for i, one := range killed() {
			same(t, r.Repository("acme/"+string(rune('a'+i))), one, "v1")
		}
		for _, n := range names(t, dir) {
			if n[0] == '.' {
				t.Error(n)
			}
		}
	}
}
