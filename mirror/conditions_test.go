package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/filter"
)

// Of indexes only a platform is copied: a registry that takes that has the index unchanged, and one that looks for the
// images of indexes gets the bundles without such images. A later run for all platforms copies the rest.
func TestPlatforms(t *testing.T) {
	shape := mirrortest.Shape{Packages: 2, Bundles: 2, Images: 2, IndexEvery: 5}
	amd64 := "catalog:v1\n    platforms: [{os: linux, architecture: amd64}]\n"
	w := newWorld(t, shape)
	every := w.set
	w.set = strings.Replace(every, "catalog:v1\n", amd64, 1)
	w.target.SetRules(testregistry.Rules{})
	w.target.Separate(true)
	t.Run("checked", func(t *testing.T) {
		v := *w
		v.T, v.dir = t, t.TempDir()
		v.newTarget()
		a := v.incomplete(mirror.ToMirror)
		if n := len(a.Catalogs[0].LeftOut); n == 0 {
			t.Error("no bundle is left out")
		}
		advised := slices.DeleteFunc(a.Problems,
			func(p mirror.Problem) bool { return !strings.Contains(p.Hint, "--sparse trim") })
		if len(advised) != 1 {
			t.Errorf("%d problems advise on the platforms", len(advised))
		}
		v.servable()
		v.set = every
		v.must(mirror.ToMirror)
		v.servable()
	})
	t.Run("kept", func(t *testing.T) {
		v := *w
		v.T, v.dir = t, t.TempDir()
		v.target = testregistry.New(t) // it looks for nothing
		v.host = v.target.Host()
		v.must(mirror.ToMirror)
		if lacks := lacking(t, v.target); len(lacks) == 0 {
			t.Error("the images of the other platform are there")
		}
		v.set = every
		v.foreseen()
		v.servable()
		got := tags(v.target)
		v.newTarget()
		v.dir = t.TempDir()
		v.must(mirror.ToMirror)
		v.same(got)
	})
	t.Run("without attachments", func(t *testing.T) {
		v := *w
		v.T, v.dir = t, t.TempDir()
		v.target = testregistry.New(t)
		v.host = v.target.Host()
		v.change = func(o *mirror.Options) { o.With = referrers.Kinds{} }
		v.must(mirror.ToMirror)
		v.set = every
		v.must(mirror.ToMirror)
		v.servable()
	})
}

// The same catalog twice with two filters gives two catalogs.
func TestOneCatalogTwice(t *testing.T) {
	w := newWorld(t, small)
	w.set = strings.Replace(allPackages(1), "catalog:v1\n", "catalog:v1\n    targetTag: one\n", 1) + `
  - catalog: registry.example.com/synthetic/catalog:v1
    targetTag: two
    packages: [{name: op1}]
`
	check := func() {
		t.Helper()
		w.servable()
		for tag, want := range map[string]string{"one": "op0.v1.0.0 op0.v1.1.0 op0.v1.2.0", "two": "op1.v1.2.0"} {
			var names []string
			for _, b := range servedBundles(t, w.target, "to/synthetic/catalog", tag) {
				names = append(names, b.Name)
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s has %s", tag, got)
			}
		}
	}
	w.must(mirror.ToMirror)
	check()
	got := tags(w.target)
	w.newTarget()
	w.must(mirror.ToDisk)
	w.must(mirror.FromDisk)
	check()
	w.same(got)
}

// Images of two names that fall together at the destination are an error before anything is copied.
func TestCollision(t *testing.T) {
	w := newWorld(t, small)
	w.set += `
  additionalImages:
  - {name: registry.example.com/synthetic/op0-image0:t1, targetRepo: x/y, targetTag: one}
  - {name: registry.example.com/synthetic/op1-image0:t1, targetRepo: x/y, targetTag: one}
`
	for _, mode := range []mirror.Mode{mirror.ToMirror, mirror.ToDisk} {
		if _, err := w.run(mode); err == nil || !strings.Contains(err.Error(), "op0-image0") ||
			!strings.Contains(err.Error(), "op1-image0") {
			t.Errorf("%s: %v", mode, err)
		}
	}
	if n := len(w.target.Repositories()); n > 0 || w.target.Count("POST") > 0 {
		t.Errorf("%d repositories are written", n)
	}
}

// A blocked image stays in the catalog, unless its bundles are pruned.
func TestBlocked(t *testing.T) {
	w := newWorld(t, mirrortest.Shape{Packages: 1, Bundles: 3, Images: 2})
	blocked := w.source.Images[3] // of the second bundle
	if blocked.Bundle != "op0.v1.1.0" {
		t.Fatalf("%+v", blocked)
	}
	w.set += "\n  blockedImages: [{name: \"" + blocked.Digest.Encoded() + "\"}]\n"
	a := w.must(mirror.ToMirror)
	if n := len(servedBundles(t, w.target, "to/synthetic/catalog", "v1")); n != 3 || len(a.Problems) == 0 {
		t.Errorf("%d bundles, %+v", n, a.Problems)
	}
	if lacks := lacking(t, w.target); len(lacks) != 1 || !strings.Contains(lacks[0], blocked.Digest.String()) {
		t.Errorf("%q", lacks)
	}
	w.newTarget()
	a, err := w.run(mirror.ToMirror, func(o *mirror.Options) { o.PruneBlocked = true })
	w.servable()
	if n := len(servedBundles(t, w.target, "to/synthetic/catalog", "v1")); n != 2 {
		t.Errorf("%d bundles, %v, %+v", n, err, a.Catalogs)
	}
}

// Shards in any order and then publish give what one run gives, each image by one of them.
func TestShards(t *testing.T) {
	w := newWorld(t, large)
	w.must(mirror.ToMirror)
	want := tags(w.target)
	for _, count := range []int{1, 2, 3, 4} {
		w.newTarget()
		w.dir = t.TempDir()
		copied := 0
		for _, index := range []int{3, 1, 4, 2} {
			if index > count {
				continue
			}
			a := w.must(mirror.ToMirror, func(o *mirror.Options) {
				o.Shard = mirror.Shard{Index: index, Count: count}
			})
			copied += a.Totals.Copied
			if tag := w.target.Manifest("to/synthetic/catalog", "v1"); tag != nil {
				t.Errorf("shard %d of %d has published the catalog", index, count)
			}
		}
		if copied != len(w.source.Images) {
			t.Errorf("%d shards: %d of %d images copied", count, copied, len(w.source.Images))
		}
		w.must(mirror.ToMirror, func(o *mirror.Options) { o.PublishOnly = true })
		w.same(want)
		w.servable()
	}
}

// Targets that lack something end up with the same images.
func TestTargets(t *testing.T) {
	for _, test := range []struct {
		name   string
		target func(r *testregistry.Registry)
		change func(*mirror.Options)
	}{
		{"no mounts", func(r *testregistry.Registry) { r.Separate(false) }, nil},
		{"no HEAD", func(r *testregistry.Registry) { r.SetRules(testregistry.Rules{NoHead: true}) }, nil},
		{"no digests", func(r *testregistry.Registry) { r.SetRules(testregistry.Rules{NoDigest: true}) }, nil},
		{"referrers", func(r *testregistry.Registry) {
			r.SetReferrers(testregistry.Referrers{API: true, Header: true})
		}, nil},
		{"short paths", func(r *testregistry.Registry) { r.SetRules(testregistry.Rules{MaxPath: 2}) },
			func(o *mirror.Options) { o.Target.MaxNestedPaths = 2 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, small)
			w.change = test.change
			test.target(w.target)
			w.must(mirror.ToMirror)
			short := test.change != nil
			if !short {
				w.servable()
			}
			want := tags(w.target)
			if again := w.must(mirror.ToMirror); again.Totals.Copied != 0 {
				t.Errorf("%+v", again.Totals)
			}
			w.newTarget()
			test.target(w.target)
			w.must(mirror.ToDisk)
			w.must(mirror.FromDisk)
			w.same(want)
		})
	}
}

// An image that a target does not take, since its blobs are too large, takes out its bundle.
func TestTargetWithSmallBlobs(t *testing.T) {
	w := newWorld(t, mirrortest.Shape{Packages: 2, Bundles: 3, Images: 2, LayerBytes: 10_000, LargeEvery: 7,
		LargeBytes: 100_000})
	w.target.SetRules(testregistry.Rules{Children: true, MaxBlob: 50_000})
	a := w.incomplete(mirror.ToMirror)
	w.servable()
	if n := len(a.Catalogs[0].LeftOut); n == 0 || n > 3 {
		t.Errorf("%+v", a.Catalogs[0].LeftOut)
	}
	w.target.SetRules(testregistry.Rules{Children: true})
	w.must(mirror.ToMirror)
	w.servable()
}

// A target that has no more space ends the run: nothing is published, and nothing that is there is taken away. When it
// has space again the run goes on.
func TestTargetIsFull(t *testing.T) {
	// The details are those of docker-registry 2.8.
	for name, detail := range map[string]string{"507": `""`,
		"while writing": `"write /x/data: no space left on device"`,
		"at the start":  `{"DriverName":"filesystem","Enclosed":{"Op":"write","Path":"/x/startedat","Err":28}}`} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, large)
			w.must(mirror.ToMirror)
			served := digest.FromBytes(w.target.Manifest("to/synthetic/catalog", "v1"))
			w.upgrade(large)
			var uploads atomic.Int64
			w.target.Interfere(func(rw http.ResponseWriter, q *http.Request) bool {
				if q.Method != http.MethodPut && q.Method != http.MethodPatch || uploads.Add(1) < 10 {
					return false
				}
				if name == "507" {
					rw.WriteHeader(http.StatusInsufficientStorage)
					return true
				}
				rw.WriteHeader(http.StatusInternalServerError)
				fmt.Fprintf(rw, `{"errors":[{"code":"UNKNOWN","message":"unknown error","detail":%s}]}`, detail)
				return true
			})
			a, err := w.run(mirror.ToMirror)
			if err == nil || !strings.Contains(err.Error(), "no more space") ||
				!strings.HasPrefix(err.Error(), mirrortest.Host+"/") {
				t.Errorf("got %v, expected the image and the reason", err)
			}
			if a == nil || a.Catalogs[0].Published {
				t.Error("the catalog is published")
			}
			if n := uploads.Load(); n > 40 {
				t.Errorf("%d attempts to write to a full disk", n)
			}
			w.target.Interfere(nil)
			if digest.FromBytes(w.target.Manifest("to/synthetic/catalog", "v1")) != served {
				t.Error("another catalog is served")
			}
			w.servable()
			w.must(mirror.ToMirror)
			w.servable()
		})
	}
}

// A target that goes away ends the run soon, and publishes nothing.
func TestTargetGoesAway(t *testing.T) {
	w := newWorld(t, mirrortest.Shape{Packages: 20, Bundles: 5, Images: 3})
	var requests atomic.Int64
	w.target.Interfere(func(rw http.ResponseWriter, _ *http.Request) bool {
		if requests.Add(1) < 100 {
			return false
		}
		rw.WriteHeader(http.StatusBadGateway)
		return true
	})
	a, err := w.run(mirror.ToMirror)
	if n := requests.Load(); err == nil || a.Catalogs[0].Published || n > 1500 {
		t.Errorf("%v, %d requests", err, n)
	}
	w.target.Interfere(nil)
	w.must(mirror.ToMirror)
	w.servable()
}

// A source that goes away ends the same way: a catalog that is there is not made smaller by it.
func TestSourceGoesAway(t *testing.T) {
	w := newWorld(t, mirrortest.Shape{Packages: 20, Bundles: 5, Images: 3})
	var requests atomic.Int64
	w.source.Interfere(func(rw http.ResponseWriter, _ *http.Request) bool {
		if requests.Add(1) < 300 {
			return false
		}
		rw.WriteHeader(http.StatusBadGateway)
		return true
	})
	a, err := w.run(mirror.ToMirror)
	if n := requests.Load(); err == nil || a.Catalogs[0].Published || n > 1500 {
		t.Errorf("%v, %d requests", err, n)
	}
	w.source.Interfere(nil)
	w.must(mirror.ToMirror)
	w.servable()
}

// A run that is cancelled at any request, and the next one that is not, give what one run gives; nothing is published
// too early.
func TestCancelled(t *testing.T) {
	w := newWorld(t, small)
	w.must(mirror.ToMirror)
	want := tags(w.target)
	w.newTarget()
	for n := int64(5); ; n = n * 5 / 4 {
		ctx, cancel := context.WithCancel(t.Context())
		var requests atomic.Int64
		stop := func(http.ResponseWriter, *http.Request) bool {
			if requests.Add(1) == n {
				cancel()
			}
			return false
		}
		w.target.Interfere(stop)
		_, err := w.runContext(ctx, mirror.ToMirror)
		cancel()
		w.target.Interfere(nil)
		w.servable()
		if err == nil {
			break
		}
	}
	w.must(mirror.ToMirror)
	w.same(want)
	left, err := filepath.Glob(filepath.Join(w.dir, "uploads", "*"))
	w.fatal(err)
	for _, name := range left {
		if i, err := os.Stat(name); err == nil && i.Size() > 4096 {
			t.Errorf("%s is left", name)
		}
	}
}

// An image that was carried and of which only the manifest is left at the target gets its tag and its signature again.
func TestImageWithoutItsTag(t *testing.T) {
	w := newWorld(t, mirrortest.Shape{Packages: 1, Bundles: 3, Images: 2, SignedEvery: 1})
	w.must(mirror.ToMirror)
	want := tags(w.target)
	of := w.source.Images[0]
	text := w.source.Manifest(of.Repository, of.Digest.String())
	for _, d := range w.target.Digests("to/" + of.Repository) {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://"+w.target.Host()+"/v2/to/"+
			of.Repository+"/manifests/"+d, nil)
		w.fatal(err)
		resp, err := http.DefaultClient.Do(q)
		w.fatal(err)
		w.fatal(resp.Body.Close())
	}
	w.target.AddManifest("to/"+of.Repository, "", "application/vnd.oci.image.manifest.v1+json", text)
	w.must(mirror.ToMirror)
	for name, d := range tags(w.target) {
		if want[name] != d {
			t.Errorf("%s is %s", name, d)
		}
		delete(want, name)
	}
	for name := range want {
		if strings.Contains(name, of.Digest.Encoded()) {
			t.Errorf("%s is not there", name)
		}
	}
}

// A catalog or an additional image that is not there is missed, and the rest is mirrored, unless all is wanted.
func TestWhatIsNotThere(t *testing.T) {
	w := newWorld(t, small)
	w.set += "  - catalog: registry.example.com/synthetic/none:v1\n  additionalImages:\n" +
		"  - name: registry.example.com/extra/none:v1\n"
	a, err := w.run(mirror.ToMirror)
	var lacks *mirror.IncompleteError
	if !errors.As(err, &lacks) || lacks.Additional != 1 || len(lacks.Unpublished) != 1 || !a.Catalogs[0].Published ||
		a.Catalogs[1].Error == "" {
		t.Errorf("%+v, %v", a.Catalogs, err)
	}
	if there, asked := a.Count(mirror.Additional); there != 0 || asked != 1 {
		t.Errorf("%d of %d", there, asked)
	}
	w.servable()
	var wrong *mirror.CollectError
	for _, all := range []func(*mirror.Options){func(o *mirror.Options) { o.AllCatalogs = true },
		func(o *mirror.Options) { o.Filter.Strict = true }} {
		if _, err := w.run(mirror.ToMirror, all); !errors.As(err, &wrong) || wrong.Operators != 1 {
			t.Errorf("got %v", err)
		}
	}
	w.set = strings.Replace(w.set, "  - catalog: registry.example.com/synthetic/none:v1\n", "", 1)
	if _, err := w.run(mirror.ToMirror, func(o *mirror.Options) { o.Filter.Strict = true }); !errors.As(err, &wrong) ||
		wrong.Additional != 1 {
		t.Errorf("got %v", err)
	}
	w.set = strings.ReplaceAll(w.set, "op0,", "nothing,")
	a, err = w.run(mirror.ToMirror)
	if !errors.As(err, &lacks) || lacks.Missing != 1 || lacks.OnlyNames() || len(a.Catalogs[0].Missing) != 1 {
		t.Errorf("%+v, %v", lacks, err)
	}
	w.set = strings.ReplaceAll(w.set, "op1,", "nothing1,")
	w.set = strings.ReplaceAll(w.set, "op2,", "nothing2,")
	w.set, _, _ = strings.Cut(w.set, "  additionalImages")
	if _, err := w.run(mirror.ToMirror); !errors.As(err, &wrong) || !mirror.IsAbsent(err) {
		t.Errorf("got %v", err)
	}
}

// Images that would be written over each other, over a catalog, or over what they come from, are an error before
// anything is copied.
func TestDestinationsCollide(t *testing.T) {
	w := newWorld(t, small)
	w.extra()
	w.must(mirror.ToMirror)
	before := tags(w.target)
	set := w.set
	for name, c := range map[string]struct{ add, want string }{
		"two images": {"  - name: registry.example.com/synthetic/op0-image0@" + w.source.Images[1].Digest.String() +
			"\n    targetRepo: extra/tool\n    targetTag: v1\n", "would both be"},
		"a catalog": {"  - name: registry.example.com/extra/tool:v1\n    targetRepo: synthetic/catalog\n    targetTag: v1\n",
			"synthetic/catalog:v1"},
	} {
		w.set = set + c.add
		if _, err := w.run(mirror.ToMirror); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.set = strings.ReplaceAll(set, mirrortest.Host, w.source.Host()) // a dry run asks the target, too
	_, err := w.run(mirror.ToMirror, func(o *mirror.Options) {
		o.DryRun, o.Target.Host, o.Target.Path = true, w.source.Host(), ""
	})
	if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "would replace its own source") {
		t.Errorf("its own source: %v", err)
	}
	w.same(before)
}

// An image that is named by a tag and a digest gets the tag if the tag stands for it, else the tag of its digest.
func TestTagOfAnotherImage(t *testing.T) {
	w := newWorld(t, mirrortest.Shape{})
	w.extra()
	old := digest.FromBytes(w.source.Manifest("extra/tool", "v1"))
	w.source.AddImage(t, "extra/tool", "v1", testregistry.Image{Labels: map[string]string{"now": "another"}})
	is := digest.FromBytes(w.source.Manifest("extra/tool", "v1"))
	w.set += "  - name: registry.example.com/extra/tool:v1@" + old.String() + "\n"
	for range 2 {
		w.must(mirror.ToMirror)
		got := tags(w.target)
		if got["to/extra/tool:v1"] != is || got["to/extra/tool:sha256-"+old.Encoded()] != old {
			t.Errorf("%v", got)
		}
	}
	// So it is if the other one was mirrored before.
	w.set = strings.Replace(w.set, "  - name: registry.example.com/extra/tool:v1\n", "", 1)
	w.foreseen()
	if got := tags(w.target); got["to/extra/tool:v1"] != is {
		t.Errorf("the tag was moved: %v", got)
	}
}

// What the policy does not accept is not copied, is not taken for there, and is not found by a run that publishes.
func TestPolicy(t *testing.T) {
	w := newWorld(t, small)
	w.must(mirror.ToMirror)
	w.policy = filepath.Join(w.dir, "policy.json")
	w.fatal(os.WriteFile(w.policy, []byte(`{"default":[{"type":"insecureAcceptAnything"}],"transports":{"docker":{"`+
		mirrortest.Host+`/synthetic/op1-image0":[{"type":"reject"}]}}}`), 0o600))
	refused := map[string]func(*mirror.Options){"again": func(*mirror.Options) {},
		"dry":     func(o *mirror.Options) { o.DryRun = true },
		"publish": func(o *mirror.Options) { o.PublishOnly, o.OnMissing = true, mirror.SkipBundle }}
	for name, change := range refused {
		a := w.incomplete(mirror.ToMirror, change)
		if n := len(a.Catalogs[0].LeftOut); n != 3 {
			t.Errorf("%s: %d bundles are left out", name, n)
		}
	}
	w.incomplete(mirror.ToDisk)
	w.newTarget()
	w.incomplete(mirror.FromDisk)
	w.servable()
}

// Installed versions that lose their way to the head are warned of.
func TestInstalledVersions(t *testing.T) {
	w := newWorld(t, small)
	w.set = strings.Replace(w.set, "{name: op0, minVersion: 0.0.1}", "{name: op0}", 1)
	w.must(mirror.ToMirror)
	a := w.must(mirror.ToMirror, func(o *mirror.Options) {
		o.Filter.Installed = []filter.Installed{{Package: "op0", Version: "1.0.0"}}
	})
	if len(a.Problems) == 0 {
		t.Error("no problem is reported")
	}
}

// A plan goes on without a catalog that is not there where a run does, and ends where a run does.
func TestPlanWithoutACatalog(t *testing.T) {
	w := newWorld(t, mirrortest.Shape{})
	const none = "  - catalog: registry.example.com/synthetic/%s:v1\n"
	head, _, _ := strings.Cut(w.set, "  - catalog:")
	for _, c := range []struct {
		name, set string
		lacks     int // lines about what is not there; none is an error
	}{
		{"beside a catalog", w.set + fmt.Sprintf(none, "none"), 1},
		{"beside an additional image", head + fmt.Sprintf(none, "none") + "  additionalImages:\n  - name: " + w.source.Images[0].Ref + "\n", 1},
		{"alone", head + fmt.Sprintf(none, "none"), 0},
		{"with another that is not there", head + fmt.Sprintf(none, "none") + fmt.Sprintf(none, "neither"), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := *w
			v.T, v.set, v.dir = t, c.set, t.TempDir()
			o, end := v.options(t.Context(), mirror.ToMirror)
			_, lacks, err := o.MakePlan(t.Context())
			end()
			if len(lacks) != c.lacks || (err != nil) != (c.lacks == 0) {
				t.Errorf("%q, %v", lacks, err)
			}
			var wrong *mirror.CollectError
			if _, err := v.run(mirror.ToMirror); errors.As(err, &wrong) != (c.lacks == 0) {
				t.Errorf("the run: %v", err)
			}
		})
	}
}
