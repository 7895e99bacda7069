package mirror_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// The three directions bring the same to a registry, in both forms of the medium: all that the catalog names, with its
// signatures.
func TestRunsGiveTheSame(t *testing.T) {
	w := newWorld(t, small)
	a := w.must(mirror.ToMirror)
	w.servable()
	want := tags(w.target)
	if n := len(w.source.Images); a.Totals.Images != n || a.Totals.Copied != n {
		t.Errorf("%+v for %d images", a.Totals, n)
	}
	for _, i := range w.source.Images {
		if sig := "to/" + i.Repository + ":sha256-" + i.Digest.Encoded() + ".sig"; i.Signed != (want[sig] != "") {
			t.Errorf("%s: signed %v, at the target %q", i.Ref, i.Signed, want[sig])
		}
	}
	for _, form := range []medium.Form{medium.OCI, medium.OCMirror} {
		t.Run(string(form), func(t *testing.T) {
			v := *w
			v.T, v.dir = t, t.TempDir()
			v.newTarget()
			v.must(mirror.ToDisk, func(o *mirror.Options) { o.Medium.Form = form })
			w.source.Forget()
			v.must(mirror.FromDisk)
			if asked := w.source.Requests(); len(asked) > 0 {
				t.Errorf("the source was asked: %q", asked)
			}
			v.same(want)
			v.servable()
		})
	}
}

// A run that is repeated asks the target once for each image and reads nothing at the source but the catalog and what
// is named by tag.
func TestSecondRunAsksOnce(t *testing.T) {
	w := newWorld(t, small)
	w.must(mirror.ToMirror)
	want := tags(w.target)
	w.source.Forget()
	w.target.Forget()
	a := w.must(mirror.ToMirror)
	if a.Totals.Present != a.Totals.Images || a.Totals.Sent != 0 || !a.Catalogs[0].Present {
		t.Errorf("%+v, %+v", a.Totals, a.Catalogs[0])
	}
	w.same(want)
	heads := map[string]int{}
	for _, q := range w.target.Requests() {
		if method, path, _ := strings.Cut(q, " "); path == "/v2/" {
			continue
		} else if method != "HEAD" || !strings.Contains(path, "/manifests/") {
			t.Errorf("the target was asked: %s", q)
		}
		heads[q]++
	}
	byTag := map[string]bool{}
	for _, i := range w.source.Images {
		tag := i.Tag
		if tag == "" {
			tag = "sha256-" + i.Digest.Encoded()
		} else {
			byTag["/v2/"+i.Repository+"/manifests/"+tag] = true
		}
		if n := heads["HEAD /v2/to/"+i.Repository+"/manifests/"+tag]; n != 1 {
			t.Errorf("%s: %d requests at the target", i.Ref, n)
		}
	}
	if len(heads) != len(w.source.Images)+1 {
		t.Errorf("%d different requests for %d images and a catalog", len(heads), len(w.source.Images))
	}
	for _, q := range w.source.Requests() {
		method, path, _ := strings.Cut(q, " ")
		if path == "/v2/" || strings.HasPrefix(path, "/v2/synthetic/catalog/") || method == "HEAD" && byTag[path] {
			continue
		}
		t.Errorf("the source was asked: %s", q)
	}
}

// A first run asks the target for nothing that it can know: for no image and no blob in repositories that are not there,
// and for no signature that the source does not have. Each manifest is written once, under the one name that it has.
func TestFirstRunTakesFewRequests(t *testing.T) {
	for name, shape := range map[string]mirrortest.Shape{
		"signed":     {Packages: 2, Bundles: 4, Images: 3, SharedLayers: 2, LayerBytes: 60_000, IndexEvery: 4, SignedEvery: 3, TagEvery: 5},
		"not signed": {Packages: 2, Bundles: 4, Images: 3, SharedLayers: 2, LayerBytes: 60_000, TagEvery: 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shape)
			w.target.Separate(false)
			w.target.SetReferrers(testregistry.Referrers{API: true, Header: true})
			w.must(mirror.ToMirror)
			asked := map[string]int{}
			repositories := map[string]bool{}
			for _, q := range w.target.Requests() {
				method, path, _ := strings.Cut(q, " ")
				if strings.HasPrefix(path, "/v2/to/synthetic/catalog/") {
					continue
				}
				kind := "other"
				switch {
				case strings.HasSuffix(path, ".sig"):
					kind = "signature"
				case strings.Contains(path, "/manifests/sha256:"):
					kind = "digest"
				case strings.Contains(path, "/manifests/"):
					kind = "tag"
				case strings.Contains(path, "/blobs/sha256"):
					kind = "blob"
				case strings.HasSuffix(path, "/tags/list"):
					kind = "list"
				}
				asked[method+" "+kind]++
			}
			signed, indexes := 0, 0
			for _, i := range w.source.Images {
				repositories[i.Repository] = true
				if i.Signed {
					signed++
				}
				if strings.Contains(string(w.source.Manifest(i.Repository, i.Digest.String())), `"manifests"`) {
					indexes++
				}
			}
			for kind, want := range map[string]int{"HEAD blob": 0, "HEAD tag": 0, "HEAD digest": 0, "GET tag": 0, "GET digest": 0,
				"HEAD signature": 0, "PUT signature": signed, "GET signature": signed, "PUT tag": len(w.source.Images),
				"PUT digest": 2 * indexes, "GET list": len(repositories)} {
				if asked[kind] != want {
					t.Errorf("%d requests %q, want %d", asked[kind], kind, want)
				}
			}
			if t.Failed() {
				t.Logf("%v", asked)
			}
		})
	}
}

// What is attached to images is looked for in a list of tags where a repository has several of them, and in no list of
// referrers once the registry has told that it has none.
func TestAttachmentsTakeFewRequests(t *testing.T) {
	w := newWorld(t, mirrortest.Shape{Packages: 2, Bundles: 8, Images: 3, SignedEvery: 3})
	w.source.SetRules(testregistry.Rules{Ranges: true, Page: 5})
	w.must(mirror.ToMirror)
	asked := map[string]int{}
	for _, q := range w.source.Requests() {
		switch {
		case strings.Contains(q, "/referrers/"):
			asked["referrers"]++
		case strings.Contains(q, "/tags/list"):
			asked["lists"]++
		case strings.Contains(q, "/manifests/sha256-"):
			asked["tags"]++
		}
	}
	signed := 0
	for _, i := range w.source.Images {
		if i.Signed {
			signed++
			if w.target.Manifest("to/"+i.Repository, "sha256-"+i.Digest.Encoded()+".sig") == nil {
				t.Errorf("the signature of %s is lost", i.Ref)
			}
		}
	}
	// The shared image of a package is alone in its repository, and asked for all four tags.
	if asked["referrers"] > 8 || asked["lists"] > 2*4*5 || asked["tags"] > signed+2*4*3 {
		t.Errorf("%v for %d images with %d signatures", asked, len(w.source.Images), signed)
	}
}

// The progress never has more than all of it, ends with all of it, and counts the bytes that are moved: those of a
// second run are none.
func TestProgress(t *testing.T) {
	w := newWorld(t, small)
	var known chan struct{} // is closed when all manifests are read
	w.source.Interfere(func(_ http.ResponseWriter, q *http.Request) bool {
		if strings.Contains(q.URL.Path, "/blobs/") && !strings.Contains(q.URL.Path, "/synthetic/catalog/") {
			select {
			case <-known:
			case <-q.Context().Done():
			}
		}
		return false
	})
	for _, mode := range []mirror.Mode{mirror.ToMirror, mirror.ToMirror, mirror.ToDisk, mirror.FromDisk} {
		if mode == mirror.FromDisk {
			w.newTarget()
		}
		var last mirror.Event
		counted := false
		known = make(chan struct{})
		tell := sync.OnceFunc(func() { close(known) })
		a := w.must(mode, func(o *mirror.Options) {
			o.Events = func(e mirror.Event) {
				if e.Bytes > e.AllBytes || e.Images > e.AllImages || e.Bytes < last.Bytes {
					t.Errorf("%s: %+v after %+v", mode, e, last)
				}
				if !e.Counting && e.AllBytes > 0 {
					tell()
				}
				counted = counted || !e.Counting && e.AllBytes > 0 && e.Images < len(w.source.Images)
				last = e
			}
		})
		if last.Bytes != last.AllBytes || last.Images != last.AllImages || last.Counting {
			t.Errorf("%s ends with %+v", mode, last)
		}
		if sent := a.Totals.Sent; sent == 0 && last.Bytes != 0 || sent > 0 && last.Bytes == 0 ||
			sent > 0 && mode != mirror.FromDisk && !counted {
			t.Errorf("%s: %d bytes of %d sent; counted before the end: %v", mode, last.Bytes, sent, counted)
		}
	}
}

// A dry run writes what would be copied to where, and changes nothing.
func TestDryRuns(t *testing.T) {
	w := newWorld(t, small)
	w.extra()
	w.must(mirror.ToDisk)
	for _, mode := range []mirror.Mode{mirror.ToMirror, mirror.FromDisk, mirror.ToDisk} {
		a := w.must(mode, func(o *mirror.Options) { o.DryRun, o.ManifestLists, o.All = true, true, true })
		text, err := os.ReadFile(filepath.Join(w.dir, "workspace-"+string(mode), "working-dir", "dry-run", "mapping.txt"))
		w.fatal(err)
		for _, i := range w.source.Images {
			if !strings.Contains(string(text), i.Ref+"=") {
				t.Errorf("%s: the mapping lacks %s", mode, i.Ref)
			}
		}
		n := strings.Count(string(text), "\n")
		if n < len(w.source.Images)+2 || len(a.Repositories) == 0 && mode != mirror.FromDisk {
			t.Errorf("%s: %d lines, %+v", mode, n, a.Repositories)
		}
		if len(tags(w.target)) > 0 {
			t.Errorf("%s: something is copied", mode)
		}
	}
	w.must(mirror.ToMirror)
	a := w.must(mirror.ToMirror, func(o *mirror.Options) { o.DryRun = true })
	if a.Totals.Present != a.Totals.Images {
		t.Errorf("what is there would be copied: %+v", a.Totals)
	}
}

// The files for clusters are those of a run, and name what was published.
func TestResources(t *testing.T) {
	w := newWorld(t, small)
	o, end := w.options(t.Context(), mirror.ToMirror)
	dir := filepath.Join(w.dir, "before")
	a, err := o.WriteResources(t.Context(), dir)
	end()
	if w.fatal(err); len(a.Problems) != 1 || !strings.Contains(a.Problems[0].Message, "is not at the target") {
		t.Errorf("before anything is mirrored: %+v", a.Problems)
	}
	run := w.must(mirror.ToMirror)
	o, end = w.options(t.Context(), mirror.ToMirror)
	defer end()
	dir = filepath.Join(w.dir, "after")
	a, err = o.WriteResources(t.Context(), dir)
	if w.fatal(err); len(a.Problems) != 0 || len(a.Resources) != len(run.Resources) {
		t.Errorf("%+v, %q", a.Problems, a.Resources)
	}
	for n, name := range run.Resources {
		want, err := os.ReadFile(name)
		w.fatal(err)
		got, err := os.ReadFile(a.Resources[n])
		if w.fatal(err); string(got) != string(want) {
			t.Errorf("%s differs", a.Resources[n])
		}
	}
	o.Mode = mirror.ToDisk
	if _, err := o.WriteResources(t.Context(), dir); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestRepositories(t *testing.T) {
	w := newWorld(t, mirrortest.Shape{Images: 2})
	w.extra()
	o, end := w.options(t.Context(), mirror.ToMirror)
	defer end()
	got, err := o.Repositories(t.Context())
	if want := []string{"extra/tool", "synthetic/catalog", "synthetic/op0-bundle", "synthetic/op0-image0",
		"synthetic/op0-image1"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	w.set = strings.Replace(w.set, "catalog:v1", "none:v1", 1)
	o.Set = w.parse(w.set)
	var wrong *mirror.CollectError
	if _, err := o.Repositories(t.Context()); !errors.As(err, &wrong) || wrong.Operators != 1 {
		t.Errorf("got %v", err)
	}
}

// A catalog that is wanted whole is copied as it is, by tag or by digest, out of an archive too, and is not rebuilt.
func TestWholeCatalog(t *testing.T) {
	w := newWorld(t, small)
	top := digest.FromBytes(w.source.Manifest("synthetic/catalog", "v1"))
	for _, name := range []string{"catalog:v1", "catalog@" + top.String()} {
		w.set = strings.Replace(fmt.Sprintf(all, ""), "catalog:v1\n    packages: []", name+"\n    full: true", 1)
		w.newTarget()
		w.must(mirror.ToMirror)
		want := tags(w.target)
		if !slices.Contains(slices.Collect(maps.Values(want)), top) {
			t.Errorf("%s is not among %v", top, want)
		}
		w.servable()
		w.must(mirror.ToDisk, func(o *mirror.Options) { o.All = true })
		w.newTarget()
		w.must(mirror.FromDisk)
		w.same(want)
		w.takeAway()
	}
}
