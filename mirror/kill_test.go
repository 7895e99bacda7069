package mirror_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/mirror"
)

// childEnv has the parts of a world for [TestRunAsChild], separated by commas.
const childEnv = "BINDERY_TEST_MIRROR"

// TestRunAsChild is a run in a process of its own; see [world.child].
func TestRunAsChild(t *testing.T) {
	parts := strings.Split(os.Getenv(childEnv), ",")
	if len(parts) != 4 {
		t.Skip("it is started by other tests")
	}
	text, err := os.ReadFile(filepath.Join(parts[1], "imageset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, dir: parts[1], conf: parts[2], host: parts[3], set: string(text)}
	w.must(mirror.Mode(parts[0]))
}

// child runs in a process of its own. It returns whether the process ended well.
func (w *world) child(mode mirror.Mode, started func(*os.Process)) bool {
	w.Helper()
	w.fatal(os.WriteFile(filepath.Join(w.dir, "imageset.yaml"), []byte(w.set), 0o600))
	c := exec.CommandContext(w.Context(), os.Args[0], "-test.run=^TestRunAsChild$")
	c.Env = append(os.Environ(), childEnv+"="+strings.Join([]string{string(mode), w.dir, w.conf, w.host}, ","))
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	w.fatal(c.Start())
	started(c.Process)
	err := c.Wait()
	if err != nil && !strings.Contains(err.Error(), "killed") {
		w.Fatalf("%v: %s", err, out.String())
	}
	return err == nil
}

// A run that is killed at any request, again and again, leaves a target on which every tag and every catalog is whole,
// and the run that is not killed ends as if there had been no others.
func TestKilled(t *testing.T) {
	shape := mirrortest.Shape{Packages: 2, Bundles: 3, Images: 3, SharedLayers: 2, LayerBytes: 300_000, IndexEvery: 4,
		SignedEvery: 3, TagEvery: 5}
	kills := 8
	if testing.Short() {
		kills = 2
	}
	for _, mode := range []mirror.Mode{mirror.ToMirror, mirror.ToDisk, mirror.FromDisk} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t, shape)
			w.must(mirror.ToMirror)
			want := tags(w.target)
			if mode == mirror.FromDisk {
				w.must(mirror.ToDisk)
			}
			asked := w.target
			if mode == mirror.ToDisk {
				asked = w.source.Registry
			}
			all := len(asked.Requests()) // about as many as a run has
			w.newTarget()
			if mode != mirror.ToDisk {
				asked = w.target
			}
			random := rand.New(rand.NewPCG(1, 2))
			for n := 0; n < kills; {
				at := int64(1 + random.IntN(all/2))
				if !w.killedAt(mode, asked, at) {
					t.Logf("kill %d, at request %d", n, at)
					n++
					w.servable()
					continue
				}
				w.servable()
				if mode != mirror.ToDisk {
					w.same(want)
					w.newTarget()
					asked = w.target
				}
				w.fatal(os.RemoveAll(filepath.Join(w.dir, "workspace-"+string(mode))))
			}
			w.must(mode)
			if mode == mirror.ToDisk {
				w.must(mirror.FromDisk)
			}
			w.servable()
			w.same(want)
		})
	}
}

// killedAt runs in a process that is killed at its n-th request, and tells whether it ended well before.
func (w *world) killedAt(mode mirror.Mode, asked *testregistry.Registry, n int64) bool {
	w.Helper()
	process := make(chan *os.Process, 1)
	var count atomic.Int64
	asked.Interfere(func(_ http.ResponseWriter, _ *http.Request) bool {
		if count.Add(1) == n {
			p := <-process
			if err := p.Kill(); err != nil {
				w.Error(fmt.Errorf("kill: %w", err))
			}
			panic(http.ErrAbortHandler)
		}
		return false
	})
	defer asked.Interfere(nil)
	return w.child(mode, func(p *os.Process) { process <- p })
}
