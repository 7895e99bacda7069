package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
)

// The environment of a process that is to be killed: at which step, in which directory, and where it writes how many
// steps there were if it comes to the end.
const (
	killedAt    = "STORETEST_KILLED_AT"
	killedDir   = "STORETEST_KILLED_DIR"
	killedSteps = "STORETEST_KILLED_STEPS"
)

// maxKills is how many steps are tried of those before the last ones, over which they are spread, and how many of the
// last ones, which are those of Commit: all of them.
const maxKills = 12

// TestKilled kills a process before and after each thing that it writes to a place in files, also while it commits. The
// place is then as it was or complete, and the next writer removes what the process has left. create opens the place
// whose files are in a directory, or makes an empty one there. The test program runs itself again with the name of the
// test, which must be called with nothing else before.
func TestKilled(t *testing.T, create func(t testing.TB, dir string) Place) {
	if at := os.Getenv(killedAt); at != "" {
		n, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		p := create(t, os.Getenv(killedDir))
		p.run(t, &steps{at: n})
		return
	}
	old := newImage(t, "old", layer("old", 1000))
	place := func() Place {
		p := create(t, t.TempDir())
		p.write(t, old, "old")
		return p
	}
	p := place()
	before := names(p.files(t))
	all := runKilled(t, p, 0)
	if all == 0 {
		t.Fatal("a process that is not killed does not come to the end")
	}
	complete := names(p.files(t))
	kills, every := 0, max(1, all/maxKills)
	for at := int64(1); at <= all; at++ {
		if all-at >= maxKills && at%every != 1%every {
			continue
		}
		p := place()
		if runKilled(t, p, at) > 0 {
			continue // it has taken fewer steps than before
		}
		kills++
		done := p.isWhole(t, old)
		if err := p.Writer(t).Discard(); err != nil {
			t.Errorf("killed at step %d: the next writer: %v", at, err)
		}
		if p.isWhole(t, old) != done {
			t.Errorf("killed at step %d: the next writer changes what is there", at)
		}
		want := before
		if done {
			want = complete
		}
		if got := names(p.files(t)); !slices.Equal(got, want) {
			t.Errorf("killed at step %d of %d: after the next writer there are %v instead of %v", at, all, got, want)
		}
		p.run(t, &steps{})
		if !p.isWhole(t, old) {
			t.Errorf("killed at step %d: the next run does not come to the end", at)
		}
		if t.Failed() {
			return
		}
	}
	if kills == 0 {
		t.Error("no process was killed")
	}
}

// names leaves out what the files hold.
func names(files []string) (list []string) {
	for _, f := range files {
		list = append(list, f[:strings.LastIndexByte(f, ' ')])
	}
	return list
}

// killedImage is what the process writes.
func killedImage(t testing.TB) image {
	return newIndex(t, newImage(t, "a", layer("a", 1000), layer("b", large)), newImage(t, "b", layer("a", 1000)))
}

// run is what the process does.
func (p Place) run(t testing.TB, s *steps) {
	w := stepping{p.Writer(t), s}
	i := killedImage(t)
	if err := i.write(t.Context(), w, "new"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Commit(t.Context()), w.Discard()); err != nil {
		t.Fatal(err)
	}
	s.step()
	if path := os.Getenv(killedSteps); path != "" {
		if err := os.WriteFile(path, []byte(fmt.Sprint(s.n.Load())), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// isWhole tells whether the new image is there. One of the images is, whole, and both unless one replaces the other.
func (p Place) isWhole(t testing.TB, old image) bool {
	t.Helper()
	r := p.reader(t)
	_, _, err := r.Manifest(t.Context(), "new")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the new image: %v", err)
	}
	if err != nil || !p.Replaced {
		old.check(t, r, "old")
	}
	if err == nil {
		killedImage(t).check(t, r, "new")
	}
	return err == nil
}

// runKilled runs a process that kills itself at a step, and returns how many steps it has taken if it was not killed.
func runKilled(t testing.TB, p Place, at int64) int64 {
	t.Helper()
	var parts []string
	for _, part := range strings.Split(t.Name(), "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	told := filepath.Join(t.TempDir(), "steps")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	output, err := os.Create(told + ".log")
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	process, err := os.StartProcess(program, []string{program, "-test.run=" + strings.Join(parts, "/")}, &os.ProcAttr{
		Env: append(os.Environ(), fmt.Sprintf("%s=%d", killedAt, at), killedDir+"="+p.Dir, killedSteps+"="+told,
			"TMPDIR="+t.TempDir()), // what it leaves is removed with the test
		// A process that is killed cannot say what was wrong before.
		Files: []*os.File{nil, output, output}})
	if err != nil {
		t.Fatal(err)
	}
	state, err := process.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(told); err == nil && state.Success() {
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if text, _ := os.ReadFile(told + ".log"); state.Exited() {
		t.Fatalf("the process has failed: %s\n%s", state, text)
	}
	return 0
}

// steps counts the steps of a process, which is killed at one.
type steps struct {
	n  atomic.Int64
	at int64
}

func (s *steps) step() {
	if s.n.Add(1) != s.at {
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // until it arrives
}

// stepping is a writer with a step before and after each call that writes, at each piece that is read of a blob, and
// whenever the place asks whether it shall go on with Commit.
type stepping struct {
	store.Writer
	s *steps
}

func (w stepping) WriteBlob(ctx context.Context, d v1.Descriptor, c store.Content) (string, error) {
	w.s.step()
	open := c.Open
	c.Open = func(ctx context.Context, from int64) (io.ReadCloser, error) {
		r, err := open(ctx, from)
		return steppingBlob{r, w.s}, err
	}
	from, err := w.Writer.WriteBlob(ctx, d, c)
	w.s.step()
	return from, err
}

func (w stepping) WriteManifest(ctx context.Context, text []byte, mediaType string, o store.WriteOptions) error {
	w.s.step()
	err := w.Writer.WriteManifest(ctx, text, mediaType, o)
	w.s.step()
	return err
}

func (w stepping) Commit(ctx context.Context) error {
	w.s.step()
	err := w.Writer.Commit(steppingContext{ctx, w.s})
	w.s.step()
	return err
}

// steppingBlob has a step in the middle of a blob.
type steppingBlob struct {
	io.ReadCloser
	s *steps
}

func (b steppingBlob) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), large/2)])
	b.s.step()
	return n, err
}

// steppingContext has a step whenever it is asked.
type steppingContext struct {
	context.Context
	s *steps
}

func (c steppingContext) Err() error {
	c.s.step()
	return c.Context.Err()
}
