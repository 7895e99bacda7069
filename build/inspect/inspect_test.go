package inspect_test

import (
	"archive/tar"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/inspect"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/layers"
)

// An image built by bindery has no differences, whatever options it was built with.
func TestImagesBuiltHereAreTheSame(t *testing.T) {
	servers := []build.Server{server(t, "amd64", elf.EM_X86_64), server(t, "arm64", elf.EM_AARCH64)}
	many := fstest.MapFS{}
	for _, name := range strings.Fields("a b c d e f g h i j k l") {
		many[name+"/catalog.yaml"] = file(pkg("p" + name))
	}
	base := filepath.Join(t.TempDir(), "base")
	write(t, sample(), cached(build.Options{Servers: servers}, build.ServeCacheNative), "oci:"+base+":v1")
	below, err := build.NamedBase(imagetest.Client(t), "oci:"+base+":v1")
	if err != nil {
		t.Fatal(err)
	}
	onBase := build.Options{Base: below}
	if err := onBase.SetServer(build.ServerBase, []v1.Platform{{OS: "linux", Architecture: "amd64"}},
		&build.Embedded{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		in       fstest.MapFS
		o        build.Options
		dest     string
		packages int
		images   int
	}{
		"gzip": {sample(), cached(build.Options{Servers: servers[:1]}, build.ServeCacheNative), "oci", 4,
			1},
		"zstd": {sample(), cached(build.Options{Compression: layers.Zstd}, build.ServeCacheNative),
			"oci-archive", 4, 1},
		"two platforms": {sample(), cached(build.Options{Servers: servers}, build.ServeCacheNative), "oci", 4, 2},
		"twins": {sample(), cached(build.Options{Servers: servers, Compression: build.CompressionAuto},
			build.ServeCacheNative), "oci", 4, 4},
		"docker": {sample(),
			cached(build.Options{Servers: servers[:1], Format: build.FormatDocker}, build.ServeCacheNative), "dir", 4,
			1},
		"without cache": {sample(), build.Options{}, "oci", 4, 1},
		"few layers": {many, cached(build.Options{Servers: servers[:1], MaxLayers: 5}, build.ServeCacheNative),
			"oci", 12, 1},
		"empty": {fstest.MapFS{}, cached(build.Options{Servers: servers[:1]}, build.ServeCacheNative),
			"oci", 0, 1},
		"on an index": {many, cached(build.Options{Base: below, Servers: servers}, build.ServeCacheNative),
			"oci", 12, 2},
		"base's server": {many, onBase, "oci", 12, 1},
		"executable": {fstest.MapFS{"foo/catalog.yaml": {Data: []byte(pkg("foo")), Mode: 0o755}},
			cached(build.Options{}, build.ServeCacheNative), "oci", 1, 1},
		"of no package": {fstest.MapFS{"x/y.yaml": file("---\nschema: free\nname: a\n")},
			cached(build.Options{}, build.ServeCacheNative), "oci", 0, 1},
		"docker on an index": {many,
			cached(build.Options{Base: below, Servers: servers[:1], Format: build.FormatDocker},
				build.ServeCacheNative), "dir", 12, 1},
		"other creation": {sample(), build.Options{Created: time.Unix(1e9, 0), Labels: map[string]string{"a": "b"}},
			"oci", 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dest := c.dest + ":" + filepath.Join(t.TempDir(), "out")
			write(t, c.in, c.o, dest)
			shallow := inspect.Inspect(survey(t, dest))
			r := examine(t, dest)
			if !r.Proof.Same {
				t.Errorf("differences: %+v", r.Proof.Differences)
			}
			if r.Kind != inspect.Catalog || !r.Built || len(r.Packages) != c.packages ||
				r.Proof.Packages != c.packages || len(r.Images) != c.images {
				t.Errorf("%s, built %v, %d packages, %d images: %+v", r.Kind, r.Built, len(r.Packages), len(r.Images),
					r.Proof)
			}
			own := 0
			for n, l := range r.Layers {
				if l.Kind != "base" {
					own++
				}
				if l.Uncompressed == 0 || !slices.Equal(l.Packages, shallow.Layers[n].Packages) {
					t.Errorf("layer %s: %d bytes, packages %q, and the image says %q", l.Digest, l.Uncompressed,
						l.Packages, shallow.Layers[n].Packages)
				}
			}
			if r.Proof.Rebuilt != own || r.Proof.Layers != len(r.Layers) {
				t.Errorf("%d of %d own layers built again, %d of %d read", r.Proof.Rebuilt, own, r.Proof.Layers,
					len(r.Layers))
			}
			for _, k := range r.Caches {
				if k.State != inspect.CacheValid && len(c.in) > 0 {
					t.Errorf("cache %+v", k)
				}
			}
		})
	}
}

// A layer that is both in the base and on top of it is listed twice: first as a base layer, then with its packages.
func TestRepeatedLayersAreListedByPosition(t *testing.T) {
	dir := t.TempDir()
	in := fstest.MapFS{"foo/catalog.yaml": file(pkg("foo"))}
	write(t, in, cached(build.Options{}, build.ServeCacheNative), "oci:"+dir+":v1")
	below, err := build.NamedBase(imagetest.Client(t), "oci:"+dir+":v1")
	if err != nil {
		t.Fatal(err)
	}
	write(t, in, cached(build.Options{Base: below}, build.ServeCacheNative), "oci:"+dir+":v2")
	shallow := inspect.Inspect(survey(t, "oci:"+dir+":v2"))
	deep := examine(t, "oci:"+dir+":v2")
	for _, r := range []*inspect.Report{shallow, deep} {
		var got []string
		for _, l := range r.Layers {
			got = append(got, l.Kind+" "+strings.Join(l.Packages, ","))
		}
		if want := []string{"base ", "reset ", "packages foo"}; !slices.Equal(got, want) ||
			r.Layers[0].Digest != r.Layers[2].Digest {
			t.Errorf("layers %q, want %q", got, want)
		}
		if r.Size != r.Layers[0].Size+r.Layers[1].Size {
			t.Errorf("%d bytes", r.Size)
		}
	}
	if p := deep.Proof; !p.Same || p.Layers != 3 || p.Rebuilt != 2 ||
		deep.Uncompressed != deep.Layers[0].Uncompressed+deep.Layers[1].Uncompressed {
		t.Errorf("%+v", p)
	}
}

// Every change to an image is found and reported under the right subject, even if all digests match.
func TestDifferencesAreFound(t *testing.T) {
	at := filepath.Join(t.TempDir(), "out")
	write(t, sample(), cached(build.Options{Servers: []build.Server{server(t, "amd64", elf.EM_X86_64)}},
		build.ServeCacheNative), "oci:"+at+":v1")
	if r := examine(t, takeApart(t, at).layout(nil)); !r.Proof.Same {
		t.Fatalf("an image that was not changed: %+v", r.Proof.Differences)
	}
	const foo, fooCache = "configs/foo/catalog.yaml", "cache/foo.cache"
	for name, c := range map[string]struct {
		change func(f *forgery)
		about  inspect.Subject
		text   string
	}{
		"mode of a file": {func(f *forgery) { _, e := f.entry(foo); e.Mode = 0o600 }, inspect.AboutMode, "0600"},
		"mode of a directory": {func(f *forgery) { _, e := f.entry("configs/foo/"); e.Mode = 0o750 }, inspect.AboutMode,
			"0750"},
		"mode of a cache": {func(f *forgery) { _, e := f.entry(fooCache); e.Mode = 0o640 }, inspect.AboutMode,
			"0640"},
		"owner": {func(f *forgery) { _, e := f.entry(foo); e.Uid = 1001 }, inspect.AboutLayer,
			"owner 1001:0"},
		"time": {func(f *forgery) { _, e := f.entry(foo); e.ModTime = time.Unix(1, 0) },
			inspect.AboutLayer, "time 1970-01-01T00:00:01Z"},
		"order": {func(f *forgery) { l, _ := f.entry(foo); slices.Reverse(l.entries[len(l.entries)-2:]) },
			inspect.AboutLayer, "rebuilt"},
		"content": {func(f *forgery) { _, e := f.entry(foo); e.content = append(e.content, "# more\n"...) },
			inspect.AboutCache, "other files"},
		"answers of a cache": {func(f *forgery) { _, e := f.entry(fooCache); e.content[110] ^= 1 }, inspect.AboutCache,
			"differs from the one rebuilt"},
		"index of a cache": {func(f *forgery) { _, e := f.entry(fooCache); e.content[len(e.content)-3] ^= 1 },
			inspect.AboutCache, "checksum"},
		"cache of another": {func(f *forgery) {
			_, e := f.entry(fooCache)
			_, o := f.entry(
				"cache/bar.cache")
			e.content = o.content
		}, inspect.AboutCache, "other files"},
		"missing cache": {func(f *forgery) { f.remove(fooCache) }, inspect.AboutCache, "missing"},
		"one cache too many": {func(f *forgery) {
			l, _ := f.entry(foo)
			l.entries = append(l.entries, regular("cache/x.cache", "x"))
		}, inspect.AboutCache, "not the cache of a package"},
		"missing label": {func(f *forgery) { delete(f.config.Config.Labels, build.ConfigsLabel) },
			inspect.AboutLabel, "missing"},
		"another label": {func(f *forgery) { f.config.Config.Labels[build.ConfigsLabel] = "/elsewhere" },
			inspect.AboutLabel, "/elsewhere"},
		"label of a database": {func(f *forgery) { f.config.Config.Labels[build.DatabaseLabel] = "/database/index.db" },
			inspect.AboutLabel, "differ"},
		"packages of a layer": {func(f *forgery) {
			l, _ := f.entry(foo)
			l.annotations[build.AnnotationPackages] = "foo,more"
		}, inspect.AboutAnnotation, "more"},
		"kind of a layer": {func(f *forgery) {
			l, _ := f.entry(foo)
			l.annotations[build.AnnotationKind] = "strange"
		}, inspect.AboutAnnotation, "strange"},
		"catalog as server": {func(f *forgery) {
			l, _ := f.entry(foo)
			l.annotations[build.AnnotationKind] = "server"
		}, inspect.AboutServer, "does not belong"},
		"catalog as base": {func(f *forgery) { l, _ := f.entry(foo); l.annotations[build.AnnotationKind] = "base" },
			inspect.AboutCatalog, "not a package layer"},
		"catalog as reset": {func(f *forgery) {
			l, _ := f.entry(foo)
			l.annotations[build.AnnotationKind] = "reset"
		}, inspect.AboutLayer, "hides"},
		"key": {func(f *forgery) {
			l, _ := f.entry(foo)
			l.annotations[build.AnnotationKey] = "no digest"
		}, inspect.AboutAnnotation, "no digest"},
		"another's key": {func(f *forgery) {
			l, _ := f.entry(foo)
			o, _ := f.entry("configs/bar/bar.yaml")
			l.annotations[build.AnnotationKey] = o.annotations[build.AnnotationKey]
		}, inspect.AboutAnnotation, "this version"},
		"invalid catalog": {func(f *forgery) {
			_, e := f.entry(foo)
			e.content = []byte(strings.Replace(string(e.content), "defaultChannel: stable", "defaultChannel: nosuch",
				1))
		}, inspect.AboutCatalog, "nosuch"},
		"no catalog": {func(f *forgery) { _, e := f.entry(foo); e.content = []byte("{{{") },
			inspect.AboutCatalog, "catalog.yaml"},
		"two packages in a file": {func(f *forgery) {
			_, e := f.entry(foo)
			e.content = append(e.content,
				pkg("more")...)
		}, inspect.AboutCatalog, "2 packages"},
		"another package's place": {func(f *forgery) { _, e := f.entry(foo); e.content = []byte(pkg("more")) },
			inspect.AboutCatalog, "belongs in"},
		"foreign file": {func(f *forgery) {
			l, _ := f.entry(foo)
			l.entries = append(l.entries, regular("etc/passwd", "x"))
		}, inspect.AboutLayer, "does not belong"},
		"link": {func(f *forgery) {
			l, _ := f.entry(foo)
			l.entries = append(l.entries,
				forgedEntry{tar.Header{Typeflag: tar.TypeSymlink, Name: "configs/foo/link", Linkname: "/etc/passwd",
					Mode: 0o777}, nil})
		}, inspect.AboutLayer, "neither a file"},
		"layer on top": {func(f *forgery) { f.onTop(regular("configs/more.yaml", pkg("more"))) },
			inspect.AboutCatalog, "not a package layer"},
		"replaced on top": {func(f *forgery) { f.onTop(regular(foo, pkg("foo"))) }, inspect.AboutCatalog,
			"hidden in the image"},
		"hidden on top": {func(f *forgery) { f.onTop(regular(".wh.configs", "")) }, inspect.AboutCatalog,
			"hidden in the image"},
		"hidden by a directory": {func(f *forgery) { f.onTop(regular("configs/foo/.wh..wh..opq", "")) },
			inspect.AboutCatalog, "hidden in the image"},
		"hidden from engines only": {func(f *forgery) {
			f.onTop(regular(".wh.configs", ""), regular("configs/foo/other.yaml", pkg("foo")))
		}, inspect.AboutCatalog, "configs/bar/bar.yaml: OLM v1 shows it"},
		"hidden from OLM v1 only": {func(f *forgery) {
			l, _ := f.entry(foo)
			l.entries = append(l.entries, regular("configs/foo/.wh.catalog.yaml", ""))
		}, inspect.AboutCatalog, foo + ": container engines show it"},
		"cache hidden": {func(f *forgery) { f.onTop(regular(".wh.cache", "")) }, inspect.AboutCache, "is missing"},
		"package twice": {func(f *forgery) {
			f.layers = append(f.layers, f.layers[2])
			f.config.History = append(f.config.History, f.config.History[2])
		}, inspect.AboutCatalog, "is in the layers"},
		"server replaced on top": {func(f *forgery) { f.onTop(regular("bin/opm", "x")) }, inspect.AboutServer,
			"hidden in the image"},
		"server hidden on top": {func(f *forgery) { f.onTop(regular(".wh.bin", "")) }, inspect.AboutServer,
			"bin/opm: it is in layer"},
		"probe replaced on top": {func(f *forgery) { f.onTop(regular("bin/grpc_health_probe", "x")) },
			inspect.AboutServer, "hidden in the image"},
		"server's mode": {func(f *forgery) { _, e := f.entry("bin/opm"); e.Mode = 0o700 }, inspect.AboutMode,
			"execute"},
		"server for another": {func(f *forgery) {
			_, e := f.entry("bin/opm")
			e.content[18] = byte(elf.EM_AARCH64)
		}, inspect.AboutServer, "not for amd64"},
		"no server": {func(f *forgery) { f.remove("bin/opm"); f.remove("bin/grpc_health_probe") },
			inspect.AboutServer, "no server"},
		"more beside the server": {func(f *forgery) {
			l, _ := f.entry("bin/opm")
			l.entries = append(l.entries, regular("bin/sh", "x"))
		}, inspect.AboutServer, "does not belong"},
		"history": {func(f *forgery) { f.config.History = f.config.History[1:] }, inspect.AboutConfig,
			"history"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := takeApart(t, at)
			c.change(f)
			expect(t, examine(t, f.layout(nil)), c.about, c.text)
		})
	}
	for name, c := range map[string]struct {
		entry v1.Descriptor
		text  string
	}{
		"platform": {v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}, "linux/s390x"},
		"twin": {v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"},
			Annotations: map[string]string{build.AnnotationZstd: "true"}}, "zstd"},
	} {
		t.Run("index's "+name, func(t *testing.T) {
			expect(t, examine(t, takeApart(t, at).layout(&c.entry)), inspect.AboutIndex, c.text)
		})
	}
	// docker leaves out of an index the variant that the architecture has by default.
	f := takeApart(t, at)
	f.config.Variant = "v1"
	if r := examine(t, f.layout(&v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}})); !r.Proof.Same {
		t.Errorf("an index without the variant: %+v", r.Proof.Differences)
	}
}

// expect fails unless the report has a difference about the subject with the text.
func expect(t *testing.T, r *inspect.Report, about inspect.Subject, text string) {
	t.Helper()
	if r.Proof.Same || !slices.ContainsFunc(r.Proof.Differences, func(d inspect.Difference) bool {
		return d.About == about && strings.Contains(d.File+": "+d.Message, text)
	}) {
		t.Errorf("no difference about %s with %q: %+v", about, text, r.Proof.Differences)
	}
}

// A layer that does not match its digest is a difference; a layer beyond a limit is an error.
func TestLayersThatAreNotWhatTheyShouldBe(t *testing.T) {
	at := filepath.Join(t.TempDir(), "out")
	write(t, sample(), cached(build.Options{}, build.ServeCacheNative), "oci:"+at+":v1")
	r := examine(t, "oci:"+at+":v1")
	_, err := inspect.Examine(t.Context(), survey(t, "oci:"+at+":v1"),
		inspect.Options{Limits: images.Limits{Uncompressed: 2000}})
	if !errors.Is(err, images.ErrLimit) {
		t.Errorf("got %v", err)
	}
	blob := filepath.Join(at, "blobs", "sha256", r.Layers[1].Digest.Encoded())
	text, err := os.ReadFile(blob)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(blob, text, 0o644); err != nil {
		t.Fatal(err)
	}
	r = examine(t, "oci:"+at+":v1")
	expect(t, r, inspect.AboutLayer, "mismatch")
	if len(r.Proof.Differences) != 1 || r.Proof.Layers != len(r.Layers)-1 {
		t.Errorf("%+v", r.Proof)
	}
}

// Images of other tools are examined by their merged file system.
func TestForeignImages(t *testing.T) {
	native := func(name, file string) string {
		at := filepath.Join(t.TempDir(), "out")
		write(t, fstest.MapFS{name + "/catalog.yaml": {Data: []byte(pkg(name)), Mode: 0o644}},
			cached(build.Options{}, build.ServeCacheNative), "oci:"+at+":v1")
		_, e := takeApart(t, at).entry(file)
		return string(e.content)
	}
	labels := map[string]string{build.ConfigsLabel: "/configs"}
	cmd := []string{"serve", "/configs", "--cache-dir=/cache"}
	for name, c := range map[string]struct {
		image testregistry.Image
		about inspect.Subject // empty if the image has no differences
		text  string
		state inspect.CacheState
	}{
		"one layer": {testregistry.Image{Labels: labels,
			Layers: []map[string]string{{"configs/all.yaml": pkg("foo") + pkg("bar"), "configs/README": "x",
				"configs/.indexignore": "README\n"}}}, "", "", ""},
		"replaced below": {testregistry.Image{Labels: labels,
			Layers: []map[string]string{{"configs/a.yaml": "{{{"}, {"configs/a.yaml": pkg("foo")},
				{"configs/b/c.yaml": pkg("bar")}}}, "", "", ""},
		"invalid": {testregistry.Image{Labels: labels,
			Layers: []map[string]string{{"configs/a.yaml": pkg("foo") + pkg("foo")}}}, inspect.AboutCatalog, "foo", ""},
		"nothing there": {testregistry.Image{Labels: labels, Layers: []map[string]string{{"etc/x": ""}}},
			inspect.AboutCatalog, "does not exist", ""},
		"native cache": {testregistry.Image{Labels: labels, Cmd: cmd,
			Layers: []map[string]string{{"configs/foo/catalog.yaml": pkg("foo"),
				"cache/foo.cache": native("foo", "cache/foo.cache")}}},
			"", "", inspect.CacheValid},
		"stale cache": {testregistry.Image{Labels: labels, Cmd: cmd,
			Layers: []map[string]string{{"configs/foo/catalog.yaml": pkg("foo") + "# more\n",
				"cache/foo.cache": native("foo", "cache/foo.cache")}}},
			inspect.AboutCache, "does not match", inspect.CacheInvalid},
		"no cache": {testregistry.Image{Labels: labels, Cmd: cmd,
			Layers: []map[string]string{{"configs/a.yaml": pkg("foo")}}}, inspect.AboutCache, "is missing",
			inspect.CacheMissing},
		"pogreb cache": {testregistry.Image{Labels: labels,
			Cmd:    []string{"serve", "/configs", "--cache-dir", "/tmp/cache"},
			Layers: []map[string]string{{"configs/a.yaml": pkg("foo"), "tmp/cache/pogreb.v1/digest": "x"}}},
			inspect.AboutCache, "tmp/cache", inspect.CacheInvalid},
		"damaged database": {testregistry.Image{Labels: map[string]string{build.DatabaseLabel: "/db"},
			Layers: []map[string]string{{"db": "no database"}}}, inspect.AboutDatabase, "not a SQLite database", ""},
		"missing database": {testregistry.Image{Labels: map[string]string{build.DatabaseLabel: "/db"},
			Layers: []map[string]string{{"x": ""}}}, inspect.AboutDatabase, "not exist", ""},
		"anything": {testregistry.Image{Layers: []map[string]string{{"etc/x": ""}}}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "layout")
			c.image.WriteLayout(t, dir, "v1")
			r := examine(t, "oci:"+dir+":v1")
			if c.about == "" && !r.Proof.Same {
				t.Errorf("differences: %+v", r.Proof.Differences)
			} else if c.about != "" {
				expect(t, r, c.about, c.text)
			}
			if r.Built || c.state != "" && (len(r.Caches) != 1 || r.Caches[0].State != c.state) {
				t.Errorf("built %v, caches %+v", r.Built, r.Caches)
			}
			if name == "replaced below" && (len(r.Packages) != 2 || r.Packages[1].Layers[0] != r.Layers[1].Digest ||
				!slices.Equal(r.Layers[2].Packages, []string{"bar"})) {
				t.Errorf("packages %+v", r.Packages)
			}
		})
	}
}

func TestDatabaseAndBundleImages(t *testing.T) {
	at := filepath.Join(t.TempDir(), "index")
	img, err := build.Index(t.Context(), build.IndexInput{FS: os.DirFS("../../testdata/db"), Name: "small.db"},
		build.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	carry(t, img, "oci:"+at+":v1")
	r := examine(t, "oci:"+at+":v1")
	f := takeApart(t, at)
	f.layers[0].annotations[build.AnnotationPackages] = "nosuch"
	expect(t, examine(t, f.layout(nil)), inspect.AboutAnnotation, "nosuch")
	_, e := f.entry("database/index.db")
	e.content = e.content[:1000]
	expect(t, examine(t, f.layout(nil)), inspect.AboutDatabase, "")
	if r.Kind != inspect.Database || len(r.Packages) == 0 {
		t.Errorf("%s with packages %+v", r.Kind, r.Packages)
	}

	at = filepath.Join(t.TempDir(), "bundle")
	in := build.BundleInput{FS: os.DirFS("../../testdata/bundles/etcd/0.9.4"), ManifestsDir: "manifests",
		MetadataDir: "metadata"}
	in.Annotations = annotationsOf(t, in)
	if img, err = build.Bundle(t.Context(), in, build.Options{Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	carry(t, img, "oci:"+at+":v1")
	if r := examine(t, "oci:"+at+":v1"); !r.Proof.Same || r.Kind != inspect.Bundle || r.Proof.Rebuilt != 2 {
		t.Errorf("%s: %+v", r.Kind, r.Proof)
	}
	f = takeApart(t, at)
	f.config.Config.Labels["operators.operatorframework.io.bundle.channels.v1"] = "other"
	expect(t, examine(t, f.layout(nil)), inspect.AboutLabel, "other")
}

// Inspect fetches only manifests and configurations from a registry.
func TestInspectAsksForNoLayer(t *testing.T) {
	reg := testregistry.New(t)
	reg.AddIndex(t, "catalog", "v1", map[string]string{"a": "b"}, []testregistry.Image{
		{Layers: []map[string]string{{"configs/a.yaml": pkg("foo")}},
			Labels: map[string]string{build.ConfigsLabel: "/configs"}},
		{Layers: []map[string]string{{"configs/a.yaml": pkg("foo")}},
			Platform: v1.Platform{OS: "linux", Architecture: "arm64"}},
	})
	plain := true
	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read, Options: registries.Options{Temp: t.TempDir(),
		Registry: registries.Config{PlainHTTP: true, SkipTLSVerify: &plain}}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s, err := imagetest.Survey(t, client, reg.Host()+"/catalog:v1")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := inspect.Inspect(s)
	if len(r.Images) != 2 || r.Images[1].Platform != "linux/arm64" || len(r.Layers) != 1 || r.Annotations["a"] != "b" {
		t.Errorf("%+v", r)
	}
	if !strings.HasSuffix(r.Reference, "/catalog@"+r.Digest.String()) {
		t.Errorf("reference %s", r.Reference)
	}
	if n := reg.Count("GET /v2/catalog/blobs/"); n != 2 {
		t.Errorf("%d blobs were asked for, want the configurations: %q", n, reg.Requests())
	}
}
