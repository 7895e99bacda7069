package build

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// nameIn is the name of the package in a catalog of one package; empty for blobs of no package.
func nameIn(c *declcfg.Catalog) string {
	for _, p := range c.Packages {
		return p.Name
	}
	return ""
}

// extra is a cache with a file for each package and one that names all files of all packages.
func extra(dir string) cataloglayer.Extra {
	return cataloglayer.Extra{
		ID: "test.1", Dir: dir,
		Package: func(c *declcfg.Catalog) ([]layers.Entry, error) {
			return []layers.Entry{
				layers.Dir("tmp", 0o777|fs.ModeSticky),
				layers.Bytes(dir+"/of-"+nameIn(c), 0o644, []byte(fmt.Sprint(len(c.Bundles), " bundles"))),
			}, nil
		},
		Whole: func(_ context.Context, _ string, all []opmcache.Package) ([]layers.Entry, error) {
			var b strings.Builder
			for _, p := range all {
				for _, f := range p.Files {
					r, err := f.Open()
					if err != nil {
						return nil, err
					}
					n, err := io.Copy(io.Discard, r)
					if err := errors.Join(err, r.Close()); err != nil || n != f.Size {
						return nil, fmt.Errorf("%d bytes: %w", n, err)
					}
					fmt.Fprintf(&b, "%s: %s\n", p.Name, f.Name)
				}
			}
			return []layers.Entry{layers.Dir("tmp", 0o777|fs.ModeSticky),
				layers.Bytes(dir+"/all", 0o644, []byte(b.String()))}, nil
		},
	}
}

func TestExtraCaches(t *testing.T) {
	native := func(p cataloglayer.Package) (cataloglayer.File, error) {
		return cataloglayer.File{Name: "_" + p.Name, Content: []byte("x")}, nil
	}
	serves := []Server{server(t, "amd64", elf.EM_X86_64)}
	for name, c := range map[string]struct {
		o      Options
		cmd    string
		native bool
	}{
		"alone":                {Options{}, "/tmp/cache", false},
		"alone, with a server": {Options{Servers: serves}, "/tmp/cache", false},
		"with the server's own": {Options{Servers: serves, caches: cataloglayer.Caches{Native: native}},
			"/cache", true},
		"with another's, for some server": {Options{caches: cataloglayer.Caches{Native: native}}, "/tmp/cache", true},
		"few layers":                      {Options{MaxLayers: 3}, "/tmp/cache", false},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.caches.Extra = []cataloglayer.Extra{extra("tmp/cache")}
			img := catalog(t, CatalogInput{FS: sampleFS()}, c.o)
			top := img.Layers[len(img.Layers)-1]
			if top.Kind != LayerCache || len(top.Packages) != 0 ||
				c.o.MaxLayers != 0 && len(img.Layers) > c.o.MaxLayers {
				t.Errorf("%d layers, the last is %+v", len(img.Layers), top)
			}
			dir := filepath.Join(t.TempDir(), "out")
			push(t, img, "oci:"+dir)
			opened, tr := tree(t, "oci:"+dir, v1.Platform{}, "tmp", "cache")
			if want := []string{"serve", "/configs", "--cache-dir=" + c.cmd}; !slices.Equal(opened.Config.Config.Cmd,
				want) {
				t.Errorf("command %q, want %q", opened.Config.Config.Cmd, want)
			}
			all, err := fs.ReadFile(tr, "tmp/cache/all")
			const want = ": configs/teams/both.yaml\nbar: configs/bar/bar.yaml\nfoo: configs/foo/catalog.yaml\nfoo: " +
				"configs/foo/misc/extra.json\n" +
				"one: configs/one/teams/both.yaml\ntwo: configs/two/teams/both.yaml\n"
			if err != nil || string(all) != want {
				t.Errorf("%v\n%s\nwant\n%s", err, all, want)
			}
			for _, pkg := range []string{"", "bar", "foo", "one", "two"} {
				text, err := fs.ReadFile(tr, "tmp/cache/of-"+pkg)
				if n := min(1, len(pkg)); err != nil || string(text) != fmt.Sprint(n, " bundles") {
					t.Errorf("%q: %s, %v", pkg, text, err)
				}
				if _, err := fs.Stat(tr, "cache/_"+pkg); (err == nil) != c.native {
					t.Errorf("%q: native cache: %v", pkg, err)
				}
			}
		})
	}
}

func TestExtraCacheOfAChangedPackage(t *testing.T) {
	o := Options{caches: cataloglayer.Caches{Extra: []cataloglayer.Extra{extra("tmp/cache")}}}
	before := catalog(t, CatalogInput{FS: sampleFS()}, o)
	in := sampleFS()
	in["foo/catalog.yaml"].Data = bytes.ReplaceAll(in["foo/catalog.yaml"].Data, []byte("abc"), []byte("abd"))
	after := catalog(t, CatalogInput{FS: in}, o)
	var changed []string
	for i, l := range after.Layers {
		if l.Digest != before.Layers[i].Digest {
			changed = append(changed, string(l.Kind)+" "+strings.Join(l.Packages, ","))
		}
	}
	if !slices.Equal(changed, []string{"packages foo"}) { // the file of all packages contains only names
		t.Errorf("changed layers: %q", changed)
	}
}

func TestExtraCachesThatFail(t *testing.T) {
	failing := errors.New("cannot be encoded")
	one := cataloglayer.Extra{ID: "x", Dir: "a",
		Package: func(*declcfg.Catalog) ([]layers.Entry, error) { return nil, failing }}
	all := cataloglayer.Extra{ID: "x", Dir: "a",
		Whole: func(context.Context, string, []opmcache.Package) ([]layers.Entry, error) { return nil, failing }}
	odd := cataloglayer.Extra{ID: "x", Dir: "a", Package: func(c *declcfg.Catalog) ([]layers.Entry, error) {
		return []layers.Entry{layers.Dir("a", 0o755), layers.Bytes("a/"+nameIn(c)+"f", 0o644, nil),
			layers.Dir("a", 0o700)}, nil
	}}
	for name, c := range map[string]struct {
		extra []cataloglayer.Extra
		err   string
	}{
		"package":         {[]cataloglayer.Extra{one}, failing.Error()},
		"all":             {[]cataloglayer.Extra{all}, failing.Error()},
		"modes":           {[]cataloglayer.Extra{odd}, "two modes"},
		"same place":      {[]cataloglayer.Extra{extra("x"), extra("x")}, "two caches in /x"},
		"no ID":           {[]cataloglayer.Extra{{Dir: "x"}}, "without an ID"},
		"the whole image": {[]cataloglayer.Extra{{ID: "x", Dir: "."}}, "without a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Dir: t.TempDir(), caches: cataloglayer.Caches{Extra: c.extra}}
			if _, err := Catalog(t.Context(), CatalogInput{FS: sampleFS()}, o); err == nil ||
				!strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v, want %q", err, c.err)
			}
		})
	}
}

func TestCacheOfTheBaseIsHidden(t *testing.T) {
	old := map[string]string{"configs/old/catalog.json": "{}", "tmp/cache/pogreb.v1/digest": "x", "tmp/other": "x"}
	ref, err := NamedBase(imagetest.Client(t), layoutOf(t,
		baseImage{config: v1.ImageConfig{Labels: map[string]string{ConfigsLabel: "/configs"}}, files: old,
			platforms: []v1.Platform{amd64}}))
	if err != nil {
		t.Fatal(err)
	}
	img := catalog(t, CatalogInput{FS: sampleFS()},
		Options{Base: ref, caches: cataloglayer.Caches{Extra: []cataloglayer.Extra{extra("tmp/cache")}}})
	dir := filepath.Join(t.TempDir(), "out")
	push(t, img, "oci:"+dir)
	_, tr := tree(t, "oci:"+dir, v1.Platform{}, "tmp")
	files := names(t, tr)
	if slices.Contains(files, "tmp/cache/pogreb.v1/digest") || !slices.Contains(files, "tmp/other") ||
		!slices.Contains(files, "tmp/cache/all") {
		t.Errorf("files %q", files)
	}
	hide, _, err := reset(
		[]*base{{config: v1.Image{Config: v1.ImageConfig{Labels: map[string]string{ConfigsLabel: "/configs"}}}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(hide.layer.Entries,
		func(e layers.Entry) bool { return e.Name == "tmp" && e.Mode == 0o777|fs.ModeSticky }) {
		t.Errorf("nobody may write to /tmp any more: %v", hide.layer.Entries)
	}
}

// TestKnownLayersWithExtraCaches builds with and without extra caches with the same layer cache: layers are never
// confused.
func TestKnownLayersWithExtraCaches(t *testing.T) {
	dir := t.TempDir()
	json, other := extra("tmp/cache"), extra("tmp/cache")
	other.ID = "test.2"
	top := cataloglayer.Extra{ID: "top.1", Dir: "tmp/cache", Whole: json.Whole}
	for _, xs := range [][]cataloglayer.Extra{nil, {json}, {top}, {other}} {
		want, _ := build1(t, sampleFS(), Options{caches: cataloglayer.Caches{Extra: xs}})
		for round, hits := range []int{0, len(want.Layers)} {
			img, _ := build1(t, sampleFS(), Options{caches: cataloglayer.Caches{Extra: xs}, Cache: knownIn(t, dir)})
			if len(xs) == 1 && xs[0].ID == "top.1" {
				hits = len(want.Layers) - 1 + round // it shares only those layers that have no caches
			}
			if img.Digest != want.Digest || remembered(img) != hits {
				t.Errorf("%v, round %d: %d layers from before, %s, want %d and %s", xs, round, remembered(img),
					img.Digest, hits, want.Digest)
			}
		}
	}
	in := sampleFS()
	in["foo/catalog.yaml"].Data = append(in["foo/catalog.yaml"].Data, "# more\n"...)
	o := Options{caches: cataloglayer.Caches{Extra: []cataloglayer.Extra{json}}}
	want, _ := build1(t, in, o)
	o.Cache = knownIn(t, dir)
	if img, _ := build1(t, in, o); img.Digest != want.Digest || remembered(img) != len(want.Layers)-2 {
		t.Errorf("one package changed: %d layers from before, %s, want %s", remembered(img), img.Digest, want.Digest)
	}
}
