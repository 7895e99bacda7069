package mirror_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// sourceFault is an image that the source does not give.
type sourceFault struct {
	name   string
	answer func(w http.ResponseWriter, q *http.Request)
	blobs  bool // the manifests are there
}

// faults are the ways in which an image is not available.
var faults = []sourceFault{
	{"404", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, false},
	{"502", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, false},
	{"wrong manifest", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = w.Write([]byte(`{"schemaVersion":2}`))
	}, false},
	{"wrong blob", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "40000")
		_, _ = w.Write([]byte(strings.Repeat("x", 40000)))
	}, true},
	{"short blob", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "40000")
		_, _ = w.Write([]byte(strings.Repeat("x", 4000)))
		panic(http.ErrAbortHandler)
	}, true},
}

// broken is a catalog whose packages have one bundle more or less whose image is not available, each by another fault.
func broken(t *testing.T) (w *world, gone map[string]bool) {
	w = newWorld(t, mirrortest.Shape{Packages: len(faults) + 1, Bundles: 3, Images: 2, LayerBytes: 40_000})
	gone = map[string]bool{}
	answers := map[string]sourceFault{} // by path
	for n, f := range faults {
		bundle := fmt.Sprintf("op%d.v1.1.0", n)
		gone[bundle] = true
		for _, i := range w.source.Images {
			if i.Bundle != bundle || i.IsBundle {
				continue
			}
			at := "/v2/" + i.Repository
			if !f.blobs {
				answers[at+"/manifests/"+i.Digest.String()] = f
				continue
			}
			var m v1.Manifest
			w.fatal(json.Unmarshal(w.source.Manifest(i.Repository, i.Digest.String()), &m))
			answers[at+"/blobs/"+m.Layers[0].Digest.String()] = f
		}
	}
	w.source.Interfere(func(rw http.ResponseWriter, q *http.Request) bool {
		f, ok := answers[q.URL.Path]
		if ok {
			f.answer(rw, q)
		}
		return ok
	})
	return w, gone
}

// checkBroken looks for the bundles that are not available in the published catalog, and whether it is whole.
func (w *world) checkBroken(gone map[string]bool) {
	w.Helper()
	w.servable()
	served := map[string]bool{}
	for _, b := range servedBundles(w.T, w.target, "to/synthetic/catalog", "v1") {
		served[b.Name] = true
	}
	for _, i := range w.source.Images {
		if served[i.Bundle] == gone[i.Bundle] {
			w.Errorf("bundle %s: served %v", i.Bundle, served[i.Bundle])
		}
	}
}

// An image that is not available takes its bundle out of the catalog, whatever the reason, and nothing else. When the
// source is well again, the next run completes the mirror as if nothing had happened.
func TestImagesThatCannotBeHad(t *testing.T) {
	for _, mode := range []string{"mirror", "disk", "oc-mirror disk"} {
		t.Run(mode, func(t *testing.T) {
			w, gone := broken(t)
			first := func() *mirror.Account {
				if mode == "mirror" {
					return w.incomplete(mirror.ToMirror)
				}
				a := w.incomplete(mirror.ToDisk, func(o *mirror.Options) {
					if mode != "disk" {
						o.Medium.Form = medium.OCMirror
					}
				})
				w.incomplete(mirror.FromDisk) // what was asked for is not there, on this side too
				return a
			}
			a := first()
			w.checkBroken(gone)
			if n := len(a.Catalogs[0].LeftOut); n != len(gone) || a.Totals.Failed < len(gone) {
				t.Errorf("%d bundles are left out, %+v", n, a.Totals)
			}
			for _, l := range a.Catalogs[0].LeftOut {
				failed := false
				for _, i := range a.Images {
					failed = failed || i.Status == mirror.Failed && i.Error == l.Reason &&
						strings.TrimPrefix(i.Source, "docker://") == l.Image
				}
				if !gone[l.Bundle] || !failed {
					t.Errorf("%+v does not name the image that is missing", l)
				}
			}
			w.source.Interfere(nil)
			if mode == "mirror" {
				w.must(mirror.ToMirror)
			} else {
				w.must(mirror.ToDisk, func(o *mirror.Options) { o.All = true })
				w.must(mirror.FromDisk)
			}
			w.checkBroken(nil)
			got := tags(w.target)
			w.newTarget()
			w.dir = t.TempDir()
			w.must(mirror.ToMirror)
			w.same(got)
		})
	}
}

// With --on-missing fail a catalog that is there stays, with the files for clusters, and no archive is written.
func TestMissingImagesFailTheCatalog(t *testing.T) {
	w := newWorld(t, small)
	w.must(mirror.ToMirror)
	w.must(mirror.ToDisk)
	before, size := tags(w.target), w.mediumBytes()
	resources := func() map[string]string {
		out := map[string]string{}
		dir := filepath.Join(w.dir, "workspace-"+string(mirror.ToMirror), "working-dir", "cluster-resources")
		entries, err := os.ReadDir(dir)
		w.fatal(err)
		for _, e := range entries {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			w.fatal(err)
			out[e.Name()] = string(text)
		}
		return out
	}
	files := resources()
	// The next version of the catalog lacks an image.
	next := small
	next.Version = "v2"
	v2 := mirrortest.AddSynthetic(t, w.source.Registry, next)
	at := slices.IndexFunc(v2.Images, func(i mirrortest.Named) bool {
		return i.Tag == "" && i.Bundle == "op1.v1.2.0" && !i.IsBundle
	})
	absent := "/v2/" + v2.Images[at].Repository + "/manifests/" + v2.Images[at].Digest.String()
	w.source.Interfere(func(rw http.ResponseWriter, q *http.Request) bool {
		if q.URL.Path == absent {
			rw.WriteHeader(http.StatusNotFound)
		}
		return q.URL.Path == absent
	})
	w.set = strings.ReplaceAll(w.set, "catalog:v1", "catalog:v2") + "\n    targetTag: v1"
	fail := func(o *mirror.Options) { o.OnMissing = mirror.FailMissing }
	a := w.incomplete(mirror.ToMirror, fail)
	if c := a.Catalogs[0]; c.Published || !strings.Contains(c.Error, v2.Images[at].Digest.String()) {
		t.Errorf("%+v", c)
	}
	if got := tags(w.target)["to/synthetic/catalog:v1"]; got != before["to/synthetic/catalog:v1"] {
		t.Errorf("the catalog is %s", got)
	}
	for name, text := range files {
		if strings.HasPrefix(name, "cs-") || strings.HasPrefix(name, "cc-") {
			if resources()[name] != text {
				t.Errorf("%s has changed", name)
			}
		}
	}
	w.servable()
	w.incomplete(mirror.ToDisk, fail)
	if n := w.mediumBytes(); n < size {
		t.Errorf("the medium had %d bytes and has %d", size, n)
	}
	w.must(mirror.FromDisk, func(o *mirror.Options) {
		set := strings.ReplaceAll(w.set, "catalog:v2", "catalog:v1")
		o.Set = w.parse(set)
	})
	w.servable()
}

// With --strict-archive a layer that is larger than a segment ends the run, and no archive is written (MIRROR 10.2).
func TestStrictArchive(t *testing.T) {
	w := newWorld(t, mirrortest.Shape{Images: 2, LayerBytes: 20_000, LargeBytes: 3 << 20, LargeEvery: 2})
	a, err := w.run(mirror.ToDisk, func(o *mirror.Options) {
		o.Medium.Strict, o.Medium.SegmentBytes = true, 1<<20
	})
	if !errors.Is(err, medium.ErrTooLarge) || len(a.Archives) > 0 {
		t.Errorf("%v, %d archives", err, len(a.Archives))
	}
	if found, _ := filepath.Glob(filepath.Join(w.dir, "medium", "mirror_*.tar")); len(found) > 0 {
		t.Errorf("%q is there", found)
	}
}
