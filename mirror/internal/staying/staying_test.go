package staying_test

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/staying"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
	"github.com/operator-bindery/bindery/render"
)

// world is a registry that has a catalog with its images, as a run would have left it.
type world struct {
	*testing.T
	*mirrortest.Synthetic
	o     staying.Options
	warns []string
}

func newWorld(t *testing.T, s mirrortest.Shape) *world {
	t.Helper()
	w := &world{T: t, Synthetic: mirrortest.Synthesize(t, s)}
	skip := true
	config := registries.Config{SkipTLSVerify: &skip, PlainHTTP: true}
	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read, Options: registries.Options{Registry: config, Temp: t.TempDir()},
		AnyPlatform: true})
	w.fatal(err)
	t.Cleanup(func() { w.fatal(client.Close()) })
	remote, err := registries.New(t.Context(), registries.Options{Registry: config, Temp: t.TempDir()})
	w.fatal(err)
	t.Cleanup(func() { w.fatal(remote.Close()) })
	w.o = staying.Options{Remote: remote, Target: imageset.Target{Host: w.Host()}, Workspace: workdir.Dir(t.TempDir()),
		Render: render.Options{Images: client}, WithoutRecord: true, Gone: []staying.Catalog{},
		Warn: func(text string) { w.warns = append(w.warns, text) }}
	return w
}

func (w *world) fatal(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) ref(text string) imageset.Ref {
	w.Helper()
	ref, err := imageset.ParseRef(text)
	w.fatal(err)
	return ref
}

// items are the images of some bundles, and their signatures if they have any.
func (w *world) items(bundles ...string) (items []staying.Item) {
	for _, i := range w.Images {
		if !slices.Contains(bundles, i.Bundle) {
			continue
		}
		tag := cmp.Or(i.Tag, imageset.DigestTag(i.Digest))
		at := "docker://" + w.Host() + "/" + i.Repository + ":"
		if i.Tag == "" { // where it was copied to
			w.AddManifest(i.Repository, tag, "", w.Manifest(i.Repository, i.Digest.String()))
		}
		items = append(items, staying.Item{Source: "docker://" + i.Ref, Reference: at + tag, Bundle: i.IsBundle})
		if i.Signed {
			sig := imageset.DigestTag(i.Digest) + ".sig"
			items = append(items, staying.Item{Source: "docker://" + mirrortest.Host + "/" + i.Repository + ":" + sig,
				Reference: at + sig})
		}
	}
	return items
}

// decide decides on items, and returns why each stays by its reference.
func (w *world) decide(o staying.Options, items []staying.Item) map[string]string {
	w.Helper()
	needs, err := staying.Read(w.Context(), o, items)
	w.fatal(err)
	all, err := needs.Decide(w.Context())
	w.fatal(err)
	out := map[string]string{}
	for _, d := range all {
		w.fatal(d.Err)
		if d.Top.Digest == "" {
			w.Errorf("%s is not there", d.Item.Reference)
		}
		out[d.Item.Reference] = d.Why
	}
	return out
}

// published is the catalog as a list of deletions names it, without some bundles.
func (w *world) published(gone ...string) staying.Catalog {
	at := staying.Catalog{Reference: "docker://" + w.Host() + "/synthetic/catalog:v1",
		Digest: digest.FromBytes(w.Manifest("synthetic/catalog", "v1"))}
	for _, name := range gone {
		pkg, _, _ := strings.Cut(name, ".")
		at.Bundles = append(at.Bundles, pkg+"/"+name)
	}
	slices.Sort(at.Bundles)
	return at
}

var shape = mirrortest.Shape{Packages: 2, Bundles: 2, Images: 3, IndexEvery: 3, SignedEvery: 2, TagEvery: 5}

// What a published catalog names stays, with what is attached to it, unless its bundle is to be deleted from the
// catalog as it was when that was listed.
func TestCatalogs(t *testing.T) {
	w := newWorld(t, shape)
	items := w.items("op0.v1.0.0", "op0.v1.1.0")
	for reference, why := range w.decide(w.o, items) {
		if why == "" {
			t.Errorf("%s does not stay", reference)
		}
	}
	o := w.o
	o.Gone = []staying.Catalog{w.published("op0.v1.0.0", "op0.v1.1.0")}
	for reference, why := range w.decide(o, items) {
		if why != "" {
			t.Errorf("%s: %s", reference, why)
		}
	}
	// The image that both bundles of a package have stays with the other one.
	o.Gone = []staying.Catalog{w.published("op0.v1.0.0")}
	kept := 0
	for _, why := range w.decide(o, w.items("op0.v1.0.0")) {
		if why != "" && !strings.Contains(why, "op0.v1.1.0") {
			t.Error(why)
		}
		if why != "" {
			kept++
		}
	}
	if kept == 0 {
		t.Error("nothing stays for the other bundle")
	}
	// A catalog that was published since needs all that it names.
	o.Gone[0].Digest = digest.FromString("before")
	for reference, why := range w.decide(o, items) {
		if why == "" {
			t.Errorf("%s does not stay", reference)
		}
	}
	// Without a list of bundles those count whose images are to be deleted.
	o.Gone = nil
	for reference, why := range w.decide(o, items) {
		if why != "" {
			t.Errorf("%s: %s", reference, why)
		}
	}
	o.Shared = true
	for reference, why := range w.decide(o, w.items("op1.v1.0.0")) {
		if why != "" {
			t.Errorf("%s: %s", reference, why)
		}
	}
	catalog := staying.Item{Source: "docker://" + mirrortest.Host + "/synthetic/catalog:v1",
		Reference: "docker://" + w.Host() + "/synthetic/catalog:v1"}
	if why := w.decide(w.o, []staying.Item{catalog})[catalog.Reference]; !strings.Contains(why, "it is a catalog") {
		t.Errorf("the catalog: %q", why)
	}
}

// What a record or the list itself names stays, and so does what a tag stands for that is not to be deleted.
func TestOtherRoots(t *testing.T) {
	w := newWorld(t, mirrortest.Shape{IndexEvery: 1})
	top := w.AddImage(t, "extra/tool", "v1", testregistry.Image{})
	at := "docker://" + w.Host() + "/extra/tool:v1"
	item := []staying.Item{{Source: "docker://h/extra/tool:v1", Reference: at, Additional: true}}
	if why := w.decide(w.o, item)[at]; why != "" {
		t.Error(why)
	}
	o := w.o
	o.Kept = []staying.Kept{{Source: "docker://h/extra/tool:v1", Reference: at, Reason: "someone needs it"}}
	if why := w.decide(o, item)[at]; why != "someone needs it" {
		t.Error(why)
	}
	w.AddManifest("extra/tool", "stable", "", w.Manifest("extra/tool", "v1"))
	if why := w.decide(w.o, item)[at]; !strings.Contains(why, "the tag stable") {
		t.Error(why)
	}
	w.Untag("extra/tool", "stable")

	rec := &workdir.Record{Version: 1, Target: w.Host(),
		Images: []workdir.RecordedImage{{Source: w.ref("docker://h/extra/tool:v1"), Destination: w.ref(at)}}}
	w.fatal(rec.Write(w.o.Workspace, w.o.Target))
	o = w.o
	o.WithoutRecord = false
	item[0].Additional = false
	if why := w.decide(o, item)[at]; !strings.Contains(why, "additional image") {
		t.Error(why)
	}
	item[0].Additional = true // it is to be deleted as what it is
	if why := w.decide(o, item)[at]; why != "" {
		t.Error(why)
	}
	// A tag that now stands for something else is not what was listed.
	item[0].Digest = top
	w.AddImage(t, "extra/tool", "v1", testregistry.Image{Labels: map[string]string{"now": "another"}})
	needs, err := staying.Read(t.Context(), o, item)
	w.fatal(err)
	all, err := needs.Decide(t.Context())
	w.fatal(err)
	if d := all[0]; d.Err != nil || d.Top.Digest != top || d.Why != "" {
		t.Errorf("%+v", d)
	}
}

// With a catalog of a record stays what it names, wherever the run put it.
func TestRecordedCatalog(t *testing.T) {
	w := newWorld(t, shape)
	rec := &workdir.Record{Version: 1, Target: w.Host(), Catalogs: []workdir.Published{
		{Source: "c:v1", Destination: w.ref(w.published().Reference), Digest: w.published().Digest},
		{Source: "gone:v1", Destination: w.ref("docker://" + w.Host() + "/synthetic/gone:v1")}}}
	w.fatal(rec.Write(w.o.Workspace, w.o.Target))
	o := w.o
	o.WithoutRecord = false
	w.SetRules(testregistry.Rules{NoCatalog: true})
	for reference, why := range w.decide(o, w.items("op1.v1.0.0")) {
		if why == "" {
			t.Errorf("%s does not stay", reference)
		}
	}
	if len(w.warns) != 1 || !strings.Contains(w.warns[0], "does not list its repositories") {
		t.Errorf("warned of %q", w.warns)
	}
}

func TestNoRecord(t *testing.T) {
	w := newWorld(t, mirrortest.Shape{})
	o := w.o
	o.WithoutRecord = false
	for _, dir := range []workdir.Dir{o.Workspace, ""} {
		o.Workspace = dir
		if _, err := staying.Read(t.Context(), o, nil); !errors.Is(err, workdir.ErrNoRecord) {
			t.Errorf("%q: %v", dir, err)
		}
	}
}

// A repository that cannot be looked into ends the work if it may have a catalog of the target, and is a warning else.
func TestRefused(t *testing.T) {
	for path, ends := range map[string]bool{"": true, "other": false} {
		w := newWorld(t, mirrortest.Shape{})
		w.Interfere(func(rw http.ResponseWriter, q *http.Request) bool {
			if strings.Contains(q.URL.Path, "/synthetic/catalog/") {
				rw.WriteHeader(http.StatusForbidden)
				return true
			}
			return false
		})
		w.o.Target.Path = path
		_, err := staying.Read(t.Context(), w.o, nil)
		if (err != nil) != ends || len(w.warns) == 0 {
			t.Errorf("%q: %v, %q", path, err, w.warns)
		}
	}
}

// Of an index that is deleted, entries that something else has stay.
func TestBelow(t *testing.T) {
	w := newWorld(t, mirrortest.Shape{IndexEvery: 1})
	items := w.items("op0.v1.0.0")
	o := w.o
	o.Gone = []staying.Catalog{w.published("op0.v1.0.0")}
	below := func() int {
		t.Helper()
		needs, err := staying.Read(t.Context(), o, items[:1])
		w.fatal(err)
		all, err := needs.Decide(t.Context())
		w.fatal(err)
		d := all[0]
		if d.Err != nil || len(d.Entries) != 2 {
			t.Fatalf("%+v", d)
		}
		found, err := d.In.Below(t.Context(), d.Top.Digest, d.Entries)
		w.fatal(err)
		return len(found)
	}
	if n := below(); n != 2 {
		t.Errorf("%d entries are deleted with the index", n)
	}
	of := w.Images[0]
	entries, err := staying.Entries(w.Manifest(of.Repository, of.Digest.String()))
	w.fatal(err)
	one := w.Manifest(of.Repository, entries[0].Digest.String())
	w.AddManifest(of.Repository, "single", v1.MediaTypeImageManifest, one)
	if n := below(); n != 1 {
		t.Errorf("%d entries are deleted with the index, one of which has a tag", n)
	}
}
