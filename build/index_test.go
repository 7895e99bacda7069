package build

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
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
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/layers"
)

// database is the input of an image with arbitrary bytes in place of a database, which is not read here.
func database(text string) IndexInput {
	return IndexInput{FS: fstest.MapFS{"made.db": &fstest.MapFile{Data: []byte(text), Mode: 0o600}}, Name: "made.db",
		Packages: []string{"foo"}}
}

func index1(t testing.TB, in IndexInput, o Options) *Image {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	img, err := Index(t.Context(), in, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	return img
}

// serverOf returns a function that creates servers and counts calls.
func serverOf(t testing.TB, made *int) func(v1.Platform) (Server, error) {
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	return func(p v1.Platform) (Server, error) {
		*made++
		return serverBytes(program(t, machines[p.Architecture], "server for "+p.Architecture), p)
	}
}

var amd64, arm64 = v1.Platform{OS: "linux", Architecture: "amd64"}, v1.Platform{OS: "linux", Architecture: "arm64"}

// The image has the configuration of opm's Dockerfile, and the same input gives the same image.
func TestIndexImage(t *testing.T) {
	var digests []string
	for range 2 {
		img := index1(t, database("rows"),
			Options{Servers: []Server{server(t, "amd64", elf.EM_X86_64)}, Labels: map[string]string{"a": "b"}})
		digests = append(digests, img.Digest.String())
		dir := filepath.Join(t.TempDir(), "out")
		push(t, img, "oci:"+dir+":v1")
		opened, tr := tree(t, "oci:"+dir+":v1", v1.Platform{}, "database", "etc", "tmp", "configs", "cache")
		if got := names(t, tr); !slices.Equal(got, []string{"database/index.db", "etc/nsswitch.conf"}) {
			t.Errorf("files: %q", got)
		}
		if got, err := fs.ReadFile(tr, "database/index.db"); err != nil || string(got) != "rows" {
			t.Errorf("database: %q, %v", got, err)
		}
		if info, err := fs.Stat(tr, "database/index.db"); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("any user must be able to read the database: %v, %v", info.Mode(), err)
		}
		want := v1.ImageConfig{
			User: "1001", WorkingDir: "/", Entrypoint: []string{"/bin/opm"},
			Cmd: []string{"registry", "serve", "--database", "/database/index.db"},
			Env: []string{defaultPath}, ExposedPorts: map[string]struct{}{"50051/tcp": {}},
			Labels: map[string]string{"a": "b", DatabaseLabel: "/database/index.db"},
		}
		if got := opened.Config.Config; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if img.Totals.Packages != 1 || img.Totals.Layers != 2 || img.BaseServer != "" || img.Hidden != nil {
			t.Errorf("%+v", img)
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("digests: %q", digests)
	}
}

// A base whose configuration starts opm serves; otherwise a server is added.
func TestServerOfTheBase(t *testing.T) {
	for name, c := range map[string]struct {
		entrypoint, cmd []string
		force           bool
		program         string // the serving program; the base's if made is 0
		made            int
	}{
		"opm's image": {entrypoint: []string{"/bin/opm"}, program: "/bin/opm"},
		"opm somewhere else": {entrypoint: []string{"/usr/local/bin/opm", "--debug"},
			program: "/usr/local/bin/opm"},
		"opm as the command": {cmd: []string{"/bin/opm", "serve"}, program: "/bin/opm"},
		"another program":    {entrypoint: []string{"/bin/registry-server"}, program: "/bin/opm", made: 1},
		"opm is only an argument": {entrypoint: []string{"/bin/sh", "-c"}, cmd: []string{"/bin/opm"},
			program: "/bin/opm", made: 1},
		"nothing":                   {program: "/bin/opm", made: 1},
		"nothing, but it is known ": {program: "/bin/opm", force: true},
	} {
		t.Run(name, func(t *testing.T) {
			base := layoutOf(t,
				baseImage{config: v1.ImageConfig{Entrypoint: c.entrypoint, Cmd: c.cmd, User: "nobody",
					Labels: map[string]string{"maintainer": "x"}}, platforms: []v1.Platform{amd64}})
			ref, err := NamedBase(imagetest.Client(t), base)
			if err != nil {
				t.Fatal(err)
			}
			made := 0
			cache := func(p cataloglayer.Package) (cataloglayer.File, error) {
				return cataloglayer.File{Name: "x.cache"}, nil
			}
			o := Options{Base: ref, severalPlatforms: []v1.Platform{amd64}, serverOf: serverOf(t, &made),
				useBaseServer: c.force, caches: cataloglayer.Caches{Native: cache}}
			for _, img := range []*Image{index1(t, database("rows"), o), catalog(t, CatalogInput{FS: sampleFS()}, o)} {
				var config v1.Image
				if err := json.Unmarshal(img.configs[img.Platforms[0].Config], &config); err != nil {
					t.Fatal(err)
				}
				if got := config.Config.Entrypoint; !slices.Equal(got, []string{c.program}) {
					t.Errorf("entrypoint %q", got)
				}
				if img.Layers[0].Kind != LayerBase || config.Config.Labels["maintainer"] != "x" {
					t.Error("the base's layer or its labels are gone")
				}
				if own := c.made == 0; (img.BaseServer == c.program) != own ||
					(img.Layers[1].Kind == LayerServer) == own {
					t.Errorf("server of the base %q, layer 1 is %s", img.BaseServer, img.Layers[1].Kind)
				}
				if cmd := strings.Join(config.Config.Cmd, " "); strings.Contains(cmd, "cache-dir") && c.made == 0 {
					t.Errorf("the base's server gets a cache that it does not know: %s", cmd)
				}
			}
			if made != 2*c.made {
				t.Errorf("%d servers were made", made)
			}
		})
	}
}

// A base that is an index image is hidden in either format of the new one, including its labels; the bytes stay in its
// layers.
func TestBaseThatIsAnIndex(t *testing.T) {
	old := map[string]string{"configs/old/catalog.json": "{}", "cache/old.cache": "x", "database/index.db": "old",
		"var/other.db": "old", "bin/tool": "x"}
	for name, c := range map[string]struct {
		labels map[string]string
		gone   []string
		hidden []string
	}{
		"a catalog": {map[string]string{ConfigsLabel: "/configs"},
			[]string{"configs/old/catalog.json", "cache/old.cache"}, []string{"/configs"}},
		"a database": {map[string]string{DatabaseLabel: "/database/index.db"}, []string{"database/index.db"},
			[]string{"/database/index.db"}},
		"a database elsewhere": {map[string]string{DatabaseLabel: "/var/other.db"}, []string{"var/other.db"},
			[]string{"/var/other.db"}},
		"both": {map[string]string{DatabaseLabel: "database/index.db", ConfigsLabel: "configs"},
			[]string{"database/index.db", "configs/old/catalog.json", "cache/old.cache"},
			[]string{"/configs", "/database/index.db"}},
	} {
		t.Run(name, func(t *testing.T) {
			labels := maps.Clone(c.labels)
			labels["maintainer"] = "x"
			ref, err := NamedBase(imagetest.Client(t),
				layoutOf(t, baseImage{config: v1.ImageConfig{Entrypoint: []string{"/bin/opm"}, Labels: labels},
					files: old, platforms: []v1.Platform{amd64}}))
			if err != nil {
				t.Fatal(err)
			}
			made := 0
			o := Options{Base: ref, severalPlatforms: []v1.Platform{amd64}, serverOf: serverOf(t, &made)}
			for want, img := range map[string]*Image{"database": index1(t, database("rows"), o),
				"catalog": catalog(t, CatalogInput{FS: sampleFS()}, o)} {
				dir := filepath.Join(t.TempDir(), "out")
				push(t, img, "oci:"+dir+":v1")
				opened, tr := tree(t, "oci:"+dir+":v1", v1.Platform{}, ".")
				kept := map[string]string{"maintainer": "x", DatabaseLabel: "/database/index.db"}
				if want == "catalog" {
					kept = map[string]string{"maintainer": "x", ConfigsLabel: "/configs"}
				}
				if got := opened.Config.Config.Labels; !maps.Equal(got, kept) {
					t.Errorf("%s: labels %v", want, got)
				}
				files := names(t, tr)
				for _, gone := range c.gone {
					if slices.Contains(files, gone) && (want != "database" || gone != "database/index.db") {
						t.Errorf("%s: %s is seen", want, gone)
					}
				}
				if !slices.Contains(files, "bin/tool") {
					t.Errorf("%s: the base's other files are gone: %q", want, files)
				}
				if db, err := fs.ReadFile(tr,
					"database/index.db"); want == "database" && (err != nil || string(db) != "rows") {
					t.Errorf("%q, %v", db, err)
				}
				if n, own := len(img.Layers), want == "database" && name == "a database"; (n == 2) != own {
					// nothing is to be hidden but what the image's own file takes the place of
					t.Errorf("%s: %d layers", want, n)
				}
				if !slices.Equal(img.Hidden, c.hidden) {
					t.Errorf("%s: told %q", want, img.Hidden)
				}
			}
		})
	}
	for label, at := range map[string]string{DatabaseLabel: "/bin/opm", ConfigsLabel: "/bin"} {
		ref, err := NamedBase(imagetest.Client(t), layoutOf(t,
			baseImage{config: v1.ImageConfig{Labels: map[string]string{label: at}}, platforms: []v1.Platform{amd64}}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Index(t.Context(), database("rows"), Options{Dir: t.TempDir(), Base: ref}); err == nil ||
			!strings.Contains(err.Error(), "has the invalid path") {
			t.Errorf("%s=%s: %v", label, at, err)
		}
	}
}

// The platforms are the requested ones; the base must have all of them.
func TestIndexForSeveralPlatforms(t *testing.T) {
	for name, c := range map[string]struct {
		base     baseImage
		of       []v1.Platform
		made     int
		problems []string
	}{
		"without a base": {of: []v1.Platform{amd64, arm64}, made: 2},
		"upon a base that serves": {base: baseImage{config: v1.ImageConfig{Entrypoint: []string{"/bin/opm"}},
			platforms: []v1.Platform{amd64, arm64}}, of: []v1.Platform{amd64, arm64}},
		"upon a base without a server": {base: baseImage{platforms: []v1.Platform{amd64, arm64}},
			of: []v1.Platform{arm64, amd64}, made: 2},
		"the base lacks one": {base: baseImage{platforms: []v1.Platform{amd64}},
			of: []v1.Platform{amd64, arm64}, problems: []string{"base image", "linux/arm64"}},
		"the base's index lacks one": {base: baseImage{platforms: []v1.Platform{amd64,
			{OS: "linux", Architecture: "s390x"}}}, of: []v1.Platform{amd64, arm64},
			problems: []string{"base image", "linux/arm64", "linux/s390x"}},
	} {
		t.Run(name, func(t *testing.T) {
			made := 0
			o := Options{Dir: t.TempDir(), severalPlatforms: c.of, serverOf: serverOf(t, &made)}
			if c.base.platforms != nil {
				var err error
				if o.Base, err = NamedBase(imagetest.Client(t), layoutOf(t, c.base)); err != nil {
					t.Fatal(err)
				}
			}
			img, err := Index(t.Context(), database("rows"), o)
			if c.problems != nil {
				for _, p := range c.problems {
					if err == nil || !strings.Contains(err.Error(), p) {
						t.Errorf("%v has no %q", err, p)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			dir := filepath.Join(t.TempDir(), "out")
			push(t, img, "oci:"+dir+":v1")
			for i, p := range c.of {
				opened, tr := tree(t, "oci:"+dir+":v1", p, "database", "bin/tool")
				if opened.Config.Architecture != p.Architecture || !slices.Contains(names(t, tr),
					"database/index.db") || !platform.Equal(img.Platforms[i].Platform, p) {
					t.Errorf("%+v: %q", p, names(t, tr))
				}
				if c.base.platforms != nil {
					if text, err := fs.ReadFile(tr, "bin/tool"); err != nil || string(text) != p.Architecture {
						t.Errorf("the base for %s has %q, %v", p.Architecture, text, err)
					}
				}
			}
			if made != c.made {
				t.Errorf("%d servers were made", made)
			}
		})
	}
}

// baseImage is a base for some platforms with one layer each, in which bin/tool contains the architecture unless files
// overrides it.
type baseImage struct {
	config    v1.ImageConfig
	files     map[string]string
	platforms []v1.Platform
}

// layoutOf writes an OCI layout of the image and returns its name.
func layoutOf(t testing.TB, b baseImage) string {
	t.Helper()
	o := Options{Dir: t.TempDir(), severalPlatforms: b.platforms}
	o.purpose = purpose{"test", func(c *v1.ImageConfig, _ *Options, _ *base) { *c = b.config }, nil}
	if err := o.normalize(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "base")
	index := v1.Index{MediaType: v1.MediaTypeImageIndex}
	index.SchemaVersion = 2
	for _, p := range b.platforms {
		files := b.files
		if files == nil {
			files = map[string]string{"bin/tool": p.Architecture}
		}
		one := o
		one.severalPlatforms = []v1.Platform{p}
		img, err := writeImage(t.Context(), &one, make([]*base, 1),
			[]part{{kind: LayerPackages, layer: fileLayer(files)}})
		if err != nil {
			t.Fatal(err)
		}
		push(t, img, "oci:"+dir+":"+p.Architecture)
		platform := p
		index.Manifests = append(index.Manifests,
			v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: img.Digest, Size: int64(len(img.manifest)),
				Platform: &platform})
	}
	if len(b.platforms) == 1 {
		return "oci:" + dir + ":" + b.platforms[0].Architecture
	}
	return "oci:" + dir + ":" + addIndex(t, dir, index)
}

func fileLayer(files map[string]string) layers.Layer {
	l := layers.Layer{Name: "files"}
	for name, text := range files {
		l.Entries = append(l.Entries, layers.Bytes(name, 0o755, []byte(text)))
	}
	return l
}

// addIndex adds an index of images in a layout under the tag "all".
func addIndex(t testing.TB, dir string, index v1.Index) string {
	t.Helper()
	text, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	d := digest.FromBytes(text)
	if err := os.WriteFile(filepath.Join(dir, "blobs", "sha256", d.Encoded()), text, 0o600); err != nil {
		t.Fatal(err)
	}
	top := v1.Index{MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{{
		MediaType: v1.MediaTypeImageIndex, Digest: d, Size: int64(len(text)),
		Annotations: map[string]string{v1.AnnotationRefName: "all"},
	}}}
	top.SchemaVersion = 2
	if text, err = json.Marshal(top); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "index.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return "all"
}

// In a catalog with changed packages, the others keep their files byte for byte, and their layers.
func TestCatalogWithChangedPackages(t *testing.T) {
	in := sampleFS()
	in["foo/deep/more.yaml"] = file("---\nschema: example.com/y\npackage: foo\nname: deep\n")
	before := catalog(t, CatalogInput{FS: in}, Options{})
	changed := fstest.MapFS{"all.yaml": file(strings.ReplaceAll(pkg("foo"), "1.0.0",
		"2.0.0") + strings.ReplaceAll(pkg("two"), "1.0.0", "2.0.0") + pkg("new"))}
	c, err := declcfg.Load(t.Context(), changed, declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	img := catalog(t, CatalogInput{FS: in, Blobs: c.Blobs(), Changed: []string{"foo", "two", "new", "bar"}}, Options{})
	dir := filepath.Join(t.TempDir(), "out")
	push(t, img, "oci:"+dir)
	_, tr := tree(t, "oci:"+dir, v1.Platform{}, "configs")
	sub, _ := fs.Sub(tr, "configs")
	want := []string{"foo/catalog.yaml", "new/catalog.json", "one/teams/both.yaml", "teams/both.yaml",
		"two/catalog.yaml"}
	if got := names(t, sub); !slices.Equal(got, want) {
		t.Errorf("files %q\nwant  %q", got, want)
	}
	var all strings.Builder
	for _, name := range want {
		text, err := fs.ReadFile(sub, name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	if n := strings.Count(all.String(), "v2.0.0"); n != 4 || strings.Contains(all.String(), "bar.v1") {
		t.Errorf("%d mentions of v2.0.0 in\n%s", n, &all)
	}
	old := map[string]digest.Digest{}
	for _, l := range before.Layers {
		old[strings.Join(l.Packages, ",")] = l.Digest
	}
	for _, l := range img.Layers {
		name := strings.Join(l.Packages, ",")
		if same := l.Digest == old[name]; same != (name == "one" || name == "") {
			t.Errorf("the layer of package %q is the same: %v", name, same)
		}
	}
	// The same as a directory, which replaces no existing one.
	at := filepath.Join(t.TempDir(), "made", "configs")
	same := CatalogInput{FS: in, Blobs: c.Blobs(), Changed: []string{"foo", "two", "new", "bar"}}
	if err := same.WriteDir(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if got := names(t, os.DirFS(at)); !slices.Equal(got, want) {
		t.Errorf("files %q\nwant  %q", got, want)
	}
	for _, name := range want {
		a, _ := fs.ReadFile(sub, name)
		if b, err := os.ReadFile(filepath.Join(at, name)); err != nil || string(a) != string(b) {
			t.Errorf("%s is not what it is in the image: %v", name, err)
		}
	}
	if err := same.WriteDir(t.Context(), at); err == nil {
		t.Error("a directory was replaced")
	}
	if left := names(t, os.DirFS(filepath.Dir(at))); len(left) != len(want) {
		t.Errorf("left behind: %q", left)
	}
	if _, err := Catalog(t.Context(), CatalogInput{FS: in, Blobs: c.Blobs(), Changed: []string{"foo"}},
		Options{Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "not one of the changed packages") {
		t.Errorf("a package that is not announced: %v", err)
	}
}
