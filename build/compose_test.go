package build

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// fakeCache is a cache that depends on the catalog.
func fakeCache(c cataloglayer.Package) (cataloglayer.File, error) {
	return cataloglayer.File{Name: c.Name + ".cache", Content: fmt.Appendf(nil, "%s %v", c.Name, c.Sources)}, nil
}

// wholeCache is a cache of all packages.
var wholeCache = cataloglayer.Extra{ID: "whole", Dir: "tmp/cache",
	Whole: func(_ context.Context, _ string, all []opmcache.Package) ([]layers.Entry, error) {
		var names []string
		for _, p := range all {
			names = append(names, p.Name)
		}
		return []layers.Entry{layers.Bytes("tmp/cache/whole", 0o644, fmt.Append(nil, names))}, nil
	}}

// packageFS returns a catalog directory with packages of various sizes.
func packageFS(names ...string) fstest.MapFS {
	out := fstest.MapFS{}
	for _, name := range names {
		text := pkg(name)
		h := digest.FromString(name).Encoded()
		text += "# " + strings.Repeat(h, int(h[0])*int(h[1])%97) + "\n"
		out[name+"/catalog.yaml"] = file(text)
	}
	return out
}

// published builds the image of a catalog and opens it as a reference whose image is the directory of its layers.
func published(t testing.TB, in CatalogInput, o Options) Reference {
	t.Helper()
	o.Dir = t.TempDir()
	return openedImage(t, o.Dir, catalog(t, in, o))
}

func openedImage(t testing.TB, name string, img *Image) Reference {
	t.Helper()
	src, err := images.At(t.Context(), img.Store(), img.Top())
	if err != nil {
		t.Fatal(err)
	}
	open, err := src.Image(t.Context(), v1.Platform{})
	if err != nil {
		t.Fatal(err)
	}
	open.Name = "oci:" + name
	r := Reference{Image: name, Read: func(ctx context.Context) (CatalogInput, func() error, error) {
		tree, err := open.Extract(ctx, []string{cataloglayer.ConfigsDir}, images.ExtractOptions{})
		if err != nil {
			return CatalogInput{}, nil, err
		}
		configs, err := fs.Sub(tree, cataloglayer.ConfigsDir)
		if err != nil {
			return CatalogInput{}, nil, err
		}
		c, err := declcfg.Load(ctx, configs, declcfg.LoadOptions{Skeleton: true})
		if err != nil {
			return CatalogInput{}, nil, err
		}
		files, err := FilesOf(c)
		return CatalogInput{FS: configs, Files: files}, tree.Close, err
	}}
	r.Stack, r.NoStack = ReadStack(open)
	return r
}

func composed1(t testing.TB, in ComposeInput, o Options) *Image {
	t.Helper()
	o.Dir = t.TempDir()
	img, err := Compose(t.Context(), in, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	return img
}

// withoutLayers removes the package layers, so that reading one fails.
func withoutLayers(t testing.TB, refs ...Reference) {
	t.Helper()
	for _, r := range refs {
		for _, l := range r.Stack.Layers {
			if err := os.Remove(filepath.Join(r.Image, l.Digest.Encoded())); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Composing images of single packages gives the image of the union of their catalogs, whatever their order and the
// number of layers.
func TestCompositionIsTheImageOfTheUnion(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	amd, arm := server(t, "amd64", elf.EM_X86_64), server(t, "arm64", elf.EM_AARCH64)
	for n, o := range []Options{
		{},
		{Compression: layers.Zstd, caches: cataloglayer.Caches{Native: fakeCache}},
		{Servers: []Server{amd, arm}, caches: cataloglayer.Caches{Native: fakeCache}},
		{MaxLayers: 6, caches: cataloglayer.Caches{Native: fakeCache}, Servers: []Server{amd}},
		{MaxLayers: 3},
		{MaxLayers: 7, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
		{Format: FormatDocker, caches: cataloglayer.Caches{Native: fakeCache}},
		{caches: cataloglayer.Caches{Extra: []cataloglayer.Extra{wholeCache}}, MaxLayers: 20},
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var names []string
			in := ComposeInput{}
			parts := o
			parts.Format, parts.MaxLayers, parts.Labels, parts.Annotations, parts.caches.Extra = FormatOCI, 0, nil, nil,
				nil
			for i := range 10 + random.IntN(5) {
				name := fmt.Sprintf("pkg-%d", i*7919%101)
				names = append(names, name)
				r := published(t, CatalogInput{FS: packageFS(name)}, parts)
				if r.NoStack != nil {
					t.Fatal(r.NoStack)
				}
				r.Name = name
				in.References = append(in.References, r)
			}
			want := catalog(t, CatalogInput{FS: packageFS(names...)}, o)
			random.Shuffle(len(in.References), func(i, j int) {
				in.References[i], in.References[j] = in.References[j], in.References[i]
			})
			for _, in.Verify = range []bool{true, false} {
				got := composed1(t, in, o)
				if got.Digest != want.Digest {
					t.Fatalf("verify %t: %s\n%s\n%s", in.Verify, got.Digest, got.manifest, want.manifest)
				}
			}
			if o.caches.Extra != nil {
				return // all of it has to be read
			}
			planned, ls, err := in.Plan(t.Context(),
				Options{Dir: t.TempDir(), MaxLayers: o.MaxLayers, caches: cataloglayer.Caches{Native: o.caches.Native},
					Servers: o.Servers})
			if err != nil {
				t.Fatal(err)
			}
			stacked := 0
			for _, r := range planned {
				stacked += len(r.Stacked)
			}
			if alone := o.MaxLayers == 0; alone != (stacked == len(names)) ||
				len(ls) != want.Totals.Layers-len(o.Servers) {
				t.Errorf("%d of %d packages are stacked in %d layers", stacked, len(names), len(ls))
			}
		})
	}
}

// Stacked layers are not read: they need not even exist.
func TestStackedLayersAreNotRead(t *testing.T) {
	a, b := published(t, CatalogInput{FS: packageFS("a")}, Options{}), published(t, CatalogInput{FS: packageFS("b")},
		Options{})
	a.Name, b.Name = "a", "b"
	in := ComposeInput{References: []Reference{a, b}}
	want := catalog(t, CatalogInput{FS: packageFS("a", "b")}, Options{})
	copied := "oci:" + filepath.Join(t.TempDir(), "copy") + ":v1"
	push(t, composed1(t, in, Options{}), copied)
	_, whole := tree(t, copied, v1.Platform{}, ".")
	if got := names(t, whole); !slices.Equal(got, []string{"configs/a/catalog.yaml", "configs/b/catalog.yaml"}) {
		t.Errorf("the copy has %v", got)
	}
	withoutLayers(t, a, b)
	got := composed1(t, in, Options{})
	if got.Digest != want.Digest {
		t.Errorf("%s instead of %s", got.Digest, want.Digest)
	}
	for _, l := range got.Layers {
		if l.From == "" {
			t.Errorf("layer %v was written", l.Packages)
		}
	}
	if _, _, err := got.open(t.Context(), got.Layers[0].Digest); err == nil {
		t.Error("a layer that is not there can be opened")
	}
}

// Whether an image can be stacked depends on its metadata only.
func TestWhatCanBeStacked(t *testing.T) {
	plain := published(t, CatalogInput{FS: packageFS("a")}, Options{caches: cataloglayer.Caches{Native: fakeCache}})
	for name, c := range map[string]struct {
		image Reference
		why   string
	}{
		"one package":      {plain, ""},
		"several packages": {published(t, CatalogInput{FS: packageFS("a", "b", "c")}, Options{}), ""},
		"shared layers": {published(t, CatalogInput{FS: packageFS("a", "b", "c", "d")}, Options{MaxLayers: 2}),
			""},
		"docker format": {published(t, CatalogInput{FS: packageFS("a")}, Options{Format: FormatDocker}),
			"docker manifests"},
		"blobs of no package": {published(t, CatalogInput{FS: sampleFS()}, Options{}), "without a package"},
		"empty catalog":       {published(t, CatalogInput{FS: fstest.MapFS{}}, Options{}), "without a package"},
		"database":            {openedImage(t, "", index1(t, database("db"), Options{Dir: t.TempDir()})), "database"},
	} {
		t.Run(name, func(t *testing.T) {
			switch {
			case c.why == "" && c.image.NoStack != nil:
				t.Error(c.image.NoStack)
			case c.why != "" && (c.image.NoStack == nil || !strings.Contains(c.image.NoStack.Error(), c.why)):
				t.Errorf("%v", c.image.NoStack)
			}
		})
	}
	img := plain.Stack.Layers[0].remote.image
	for name, change := range map[string]func(*images.Image){
		"another kind of layer": func(i *images.Image) { i.Layers[0].Annotations[AnnotationKind] = "cache" },
		"a layer on top":        func(i *images.Image) { i.Layers = append(i.Layers, v1.Descriptor{}) },
		"a path as a package":   func(i *images.Image) { i.Layers[0].Annotations[AnnotationPackages] = "../a" },
		"not in order":          func(i *images.Image) { i.Layers[0].Annotations[AnnotationPackages] = "b,a" },
		"twice":                 func(i *images.Image) { i.Layers[0].Annotations[AnnotationPackages] = "a,a" },
		"an unknown codec":      func(i *images.Image) { i.Layers[0].MediaType = "application/x" },
		"opm's cache": func(i *images.Image) {
			i.Config.Config.Cmd = []string{"serve", "/configs",
				"--cache-dir=/tmp/cache"}
		},
		"another directory": func(i *images.Image) {
			i.Config.Config.Labels = map[string]string{ConfigsLabel: "/catalog"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := *img
			changed.Layers = slices.Clone(img.Layers)
			changed.Layers[0].Annotations = map[string]string{AnnotationKind: string(LayerPackages),
				AnnotationPackages: "a"}
			if _, err := ReadStack(&changed); err != nil {
				t.Fatal(err)
			}
			change(&changed)
			if s, err := ReadStack(&changed); err == nil {
				t.Errorf("stacked: %+v", s)
			}
		})
	}
}

// Layers that cannot be stacked are packed again, with the same resulting image.
func TestLayersThatDoNotFitArePacked(t *testing.T) {
	for name, c := range map[string]struct {
		part, whole Options
		only        bool
		why         string
	}{
		"no cache": {Options{}, Options{caches: cataloglayer.Caches{Native: fakeCache}}, false,
			"no serve cache"},
		"a cache": {Options{caches: cataloglayer.Caches{Native: fakeCache}}, Options{}, false,
			"have a serve cache"},
		"zstd in docker's":  {Options{Compression: layers.Zstd}, Options{Format: FormatDocker}, false, "docker"},
		"other compression": {Options{Compression: layers.Zstd}, Options{}, true, "zstd"},
		"twins":             {Options{}, Options{Compression: CompressionAuto}, false, "two compressions"},
	} {
		t.Run(name, func(t *testing.T) {
			r := published(t, CatalogInput{FS: packageFS("a", "b")}, c.part)
			r.Name = "a"
			got := composed1(t, ComposeInput{References: []Reference{r}, AnyPackages: true, OneCompression: c.only},
				c.whole)
			if want := catalog(t, CatalogInput{FS: packageFS("a", "b")}, c.whole); got.Digest != want.Digest {
				t.Errorf("%s instead of %s", got.Digest, want.Digest)
			}
			if a := got.Composed[0]; len(a.Packed) != 2 || len(a.Stacked) != 0 || !strings.Contains(a.Why, c.why) {
				t.Errorf("%+v", a)
			}
		})
	}
}

// Layers of several packages are stacked completely if there are enough layers, and divided otherwise.
func TestSharedLayers(t *testing.T) {
	four := published(t, CatalogInput{FS: packageFS("a", "b", "c", "d")}, Options{MaxLayers: 3})
	one := published(t, CatalogInput{FS: packageFS("e")}, Options{})
	in := ComposeInput{References: []Reference{one, four}, AnyPackages: true}
	got := composed1(t, in, Options{})
	if n := len(four.Stack.Layers) + 1; got.Totals.Layers != n || got.Totals.Packages != 5 ||
		len(got.Composed[1].Stacked) != 4 {
		t.Errorf("%+v", got.Totals)
	}
	few := Options{MaxLayers: 2}
	if got, want := composed1(t, in, few), catalog(t, CatalogInput{FS: packageFS("a", "b", "c", "d", "e")},
		few); got.Digest != want.Digest {
		t.Errorf("%s instead of %s", got.Digest, want.Digest)
	}
}

// Blobs of no package are in one layer, in an order that does not depend on that of the references.
func TestBlobsOfNoPackageAreInTheirOrder(t *testing.T) {
	var refs []Reference
	for _, name := range []string{"a", "b"} {
		in := packageFS(name)
		in["free-"+name+".yaml"] = file("---\nschema: example.com/none\nname: " + name + "\n")
		r := published(t, CatalogInput{FS: in}, Options{})
		r.Name = name
		refs = append(refs, r)
	}
	first := composed1(t, ComposeInput{References: refs}, Options{caches: cataloglayer.Caches{Native: fakeCache}})
	slices.Reverse(refs)
	if second := composed1(t, ComposeInput{References: refs},
		Options{caches: cataloglayer.Caches{Native: fakeCache}}); second.Digest != first.Digest {
		t.Errorf("%s, and in another order %s", first.Digest, second.Digest)
	}
}

// A reference has exactly the package that it is named after, and no package comes from two references.
func TestReferencesHoldWhatTheyAreNamedFor(t *testing.T) {
	named := func(name string, fsys fs.FS, stacked bool) Reference {
		o := Options{}
		if !stacked {
			o.Format = FormatDocker
		}
		r := published(t, CatalogInput{FS: fsys}, o)
		r.Name = name
		return r
	}
	for _, stacked := range []bool{true, false} {
		a, ab := named("a", packageFS("a"), stacked), named("b", packageFS("a", "b"), stacked)
		for name, c := range map[string]struct {
			in   ComposeInput
			want []string
		}{
			"another package": {ComposeInput{References: []Reference{named("x", packageFS("a"), stacked)}},
				[]string{`reference "x"`, `does not contain the package that it is named after, but "a"`}},
			"one too many": {ComposeInput{References: []Reference{ab}},
				[]string{`packages other than the one it is named after: "a"`}},
			"twice": {ComposeInput{References: []Reference{a, ab}, AnyPackages: true},
				[]string{`package "a" is already in reference "a"`}},
			"none": {ComposeInput{References: []Reference{named("a", fstest.MapFS{}, stacked)}},
				[]string{"contains no package"}},
			"everything": {ComposeInput{References: []Reference{a, ab, named("x", packageFS("c"), stacked)}},
				[]string{`packages other than`, `"a" is already in reference "a"`, `does not contain`}},
		} {
			t.Run(fmt.Sprint(name, " ", stacked), func(t *testing.T) {
				dir := t.TempDir()
				_, err := Compose(t.Context(), c.in, Options{Dir: dir})
				if !errors.Is(err, ErrPackages) {
					t.Fatal(err)
				}
				for _, want := range c.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("no %q in %v", want, err)
					}
				}
				if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
					t.Errorf("left behind: %v, %v", left, err)
				}
			})
		}
	}
}

// liar publishes an image whose manifest claims that the layer has the package a.
func liar(t testing.TB, entries ...layers.Entry) Reference {
	t.Helper()
	o := Options{Dir: t.TempDir(), purpose: catalogPurpose()}
	if err := o.normalize(); err != nil {
		t.Fatal(err)
	}
	img, err := writeImage(t.Context(), &o, make([]*base, 1),
		[]part{{kind: LayerPackages, packages: []string{"a"}, layer: layers.Layer{Name: "a", Entries: entries}}})
	if err != nil {
		t.Fatal(err)
	}
	r := openedImage(t, "", img)
	if r.Name = "a"; r.NoStack != nil {
		t.Fatal(r.NoStack)
	}
	return r
}

// Annotations are trusted unless everything is verified: then only layers that match the catalog are used.
func TestVerifiedCompositionsHoldWhatTheCatalogsMake(t *testing.T) {
	honest := layers.Bytes("configs/a/catalog.yaml", 0o644, packageFS("a")["a/catalog.yaml"].Data)
	want := catalog(t, CatalogInput{FS: packageFS("a")}, Options{})
	more := liar(t, honest, layers.Bytes("bin/opm", 0o755, []byte("evil")))
	got := composed1(t, ComposeInput{References: []Reference{more}, Verify: true}, Options{})
	if got.Digest != want.Digest || len(got.Composed[0].Packed) != 1 || !strings.Contains(got.Composed[0].Why,
		"differs from the rebuilt one") {
		t.Errorf("%s instead of %s: %+v", got.Digest, want.Digest, got.Composed)
	}
	if got := composed1(t, ComposeInput{References: []Reference{more}}, Options{}); got.Digest == want.Digest {
		t.Error("the layer is not another one")
	}
	// The same if the layers have another compression than the packed ones.
	zstd := published(t, CatalogInput{FS: packageFS("a")}, Options{Compression: layers.Zstd})
	zstd.Name = "a"
	in := ComposeInput{References: []Reference{zstd}}
	plain := composed1(t, in, Options{})
	in.Verify = true
	if got := composed1(t, in, Options{}); got.Digest != plain.Digest || len(got.Composed[0].Stacked) != 1 {
		t.Errorf("%s\n%s", got.manifest, plain.manifest)
	}
	other := liar(t, layers.Bytes("configs/b/catalog.yaml", 0o644, []byte(pkg("b"))))
	_, err := Compose(t.Context(), ComposeInput{References: []Reference{other}, Verify: true},
		Options{Dir: t.TempDir()})
	if !errors.Is(err, ErrPackages) || !strings.Contains(err.Error(), `annotated with "a", but it contains "b"`) {
		t.Errorf("%v", err)
	}
}

// If several references cannot be read, all are reported; a cancelled composition leaves no files.
func TestReferencesThatCannotBeRead(t *testing.T) {
	broken := func(name string) Reference {
		return Reference{Name: name, Image: "example.com/" + name, NoStack: errors.New("foreign"),
			Read: func(context.Context) (CatalogInput, func() error, error) {
				return CatalogInput{}, nil, errors.New("cannot be read")
			}}
	}
	dir := t.TempDir()
	in := ComposeInput{References: []Reference{broken("a"), broken("b")}}
	_, err := Compose(t.Context(), in, Options{Dir: dir})
	var about *ReferenceError
	if !errors.As(err, &about) || !strings.Contains(err.Error(), `"a"`) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compose(ctx, in, Options{Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := Compose(t.Context(), ComposeInput{}, Options{Dir: dir}); err == nil {
		t.Error("a composition of nothing")
	}
}
