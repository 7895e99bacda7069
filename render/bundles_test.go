package render_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/render"
)

// whole keeps a bundle as it was read.
func whole(b render.FetchedBundle) (render.FetchedBundle, error) { return b, nil }

// etcdImage returns the image of a bundle from testdata.
func etcdImage(t *testing.T) testregistry.Image {
	t.Helper()
	files := testregistry.Files(t, "../testdata/bundles/etcd/0.9.4", "")
	return testregistry.Image{Layers: []map[string]string{files}, Labels: map[string]string{
		bundle.AnnotationMediaType: "registry+v1", bundle.AnnotationManifests: "manifests/",
		bundle.AnnotationMetadata: "metadata/",
		bundle.AnnotationPackage:  "etcd", bundle.AnnotationChannels: "alpha",
	}}
}

// A bundle is the same from every source; only one from a registry has an image name.
func TestBundlesOfEveryKind(t *testing.T) {
	r := testregistry.New(t)
	digest := r.AddImage(t, "acme/etcd", "v0.9.4", etcdImage(t))
	layout := filepath.Join(t.TempDir(), "layout")
	etcdImage(t).WriteLayout(t, layout, "v0.9.4")
	name := r.Host() + "/acme/etcd:v0.9.4"
	template, err := render.ParseImageTemplate("registry.example.com/{{.Package}}:v{{.Version}}")
	if err != nil {
		t.Fatal(err)
	}
	const templated = "registry.example.com/etcd:v0.9.4"
	const dir = "../testdata/bundles/etcd/0.9.4"
	refs := []string{name, dir, "docker://" + name, "oci:" + layout + ":v0.9.4"}
	for _, c := range []struct {
		rule   string
		o      render.Options
		images []string
	}{
		{"as given", render.Options{}, []string{name, "", name, ""}},
		{"by digest", render.Options{ResolveDigests: true},
			[]string{r.Host() + "/acme/etcd@" + digest.String(), "", r.Host() + "/acme/etcd@" + digest.String(), ""}},
		{"from a template", render.Options{ImageTemplate: template}, []string{name, templated, name, templated}},
		{"one at a time", render.Options{Fetches: 1}, []string{name, "", name, ""}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			c.o.Images = client(t, r)
			got, err := render.Bundles(context.Background(), refs, c.o, whole)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(refs) {
				t.Fatalf("%d bundles for %d references", len(got), len(refs))
			}
			for i, b := range got {
				if b.Reference != refs[i] || b.Image != c.images[i] || b.Bundle.CSV.Name != "etcdoperator.v0.9.4" ||
					len(b.Bundle.Objects) == 0 {
					t.Errorf("%s: got %q as %q", refs[i], b.Bundle.CSV.Name, b.Image)
				}
			}
		})
	}
}

// Every reference that is not a bundle is reported with its name; the bundles that could be read are returned all the
// same.
func TestBundlesTellsOfEachThatIsNone(t *testing.T) {
	r := testregistry.New(t)
	r.AddImage(t, "acme/etcd", "v0.9.4", etcdImage(t))
	r.AddImage(t, "acme/catalog", "v1", testregistry.Image{Labels: map[string]string{configsLabel: "/configs"}})
	r.AddImage(t, "acme/index", "v1",
		testregistry.Image{Labels: map[string]string{databaseLabel: "/database/index.db"}})
	catalog := t.TempDir()
	good := r.Host() + "/acme/etcd:v0.9.4"
	bad := map[string]string{
		r.Host() + "/acme/catalog:v1":  "it is a catalog image, not a bundle",
		r.Host() + "/acme/index:v1":    "it is a database image, not a bundle",
		catalog:                        "it is a catalog directory, not a bundle",
		"../testdata/db/small.db":      "it is a database, not a bundle",
		r.Host() + "/acme/missing:v1":  "manifest",
		"../testdata/NOTICE":           "unsupported file type",
		"acme/short":                   "no full name of an image",
		filepath.Join(catalog, "none"): "no full name of an image",
	}
	refs := []string{good}
	for ref := range bad {
		refs = append(refs, ref)
	}
	slices.Sort(refs[1:])
	got, err := render.Bundles(context.Background(), append(refs, good), render.Options{Images: client(t, r)}, whole)
	if len(got) != 2 || got[0].Reference != good || got[1].Reference != good {
		t.Errorf("%d bundles", len(got))
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != len(bad) {
		t.Fatalf("%v", err)
	}
	for i, err := range joined.Unwrap() {
		var of *render.ReferenceError
		if !errors.As(err, &of) || of.Reference != refs[i+1] {
			t.Errorf("error %d is not about %q: %v", i, refs[i+1], err)
			continue
		}
		if !strings.Contains(err.Error(), bad[of.Reference]) || strings.HasPrefix(bad[of.Reference],
			"it is a") != errors.Is(err, render.ErrNotBundle) {
			t.Errorf("%v, want %q", err, bad[of.Reference])
		}
	}
}

// After twenty failures no further bundle is fetched, unless KeepGoing is set.
func TestBundlesGivesUp(t *testing.T) {
	refs := make([]string, 100)
	for i := range refs {
		refs[i] = "../testdata/db/small.db"
	}
	for keepGoing, want := range map[bool]int{false: 20, true: 100} {
		_, err := render.Bundles(context.Background(), refs, render.Options{KeepGoing: keepGoing, Fetches: 1}, whole)
		if n := len(err.(interface{ Unwrap() []error }).Unwrap()); n != want {
			t.Errorf("keep going %v: %d errors, want %d", keepGoing, n, want)
		}
	}
}

// An error of the callback is reported with the reference; after cancellation only the cause is returned.
func TestBundles(t *testing.T) {
	const dir = "../testdata/bundles/etcd/0.9.4"
	other := errors.New("no room")
	got, err := render.Bundles(context.Background(), []string{dir, dir}, render.Options{},
		func(b render.FetchedBundle) (string, error) {
			return b.Bundle.Package, other
		})
	var of *render.ReferenceError
	if len(got) != 0 || !errors.Is(err, other) || !errors.As(err, &of) || of.Reference != dir {
		t.Errorf("%q, %v", got, err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(os.ErrDeadlineExceeded)
	if got, err := render.Bundles(ctx, []string{dir}, render.Options{}, whole); got != nil || !errors.Is(err,
		os.ErrDeadlineExceeded) {
		t.Errorf("%v, %v", got, err)
	}
}
