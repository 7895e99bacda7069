package generate_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/bundle/generate"
)

const (
	csvText = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: " +
		"NAME\nspec:\n  replaces: OLD\n"
	roleYML = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: r\n"
)

func csv(name, replaces string) string {
	return strings.NewReplacer("NAME", name, "OLD", replaces).Replace(csvText)
}

// tree writes files below a new directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// contents returns the files of a tree.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			out[filepath.ToSlash(rel)+"/"] = ""
			return nil
		}
		out[filepath.ToSlash(rel)] = read(t, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func equal(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: got %q, want %q", name, got[name], text)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is new", name)
		}
	}
}

func TestMediaType(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  bundle.MediaType
		err   string
	}{
		"a CSV": {map[string]string{"a.yaml": csv("a", ""), "r.yaml": roleYML},
			bundle.RegistryV1, ""},
		"a CRD alone": {map[string]string{"crd.json": `{"apiVersion":"v1","kind":"CustomResourceDefinition"}`},
			bundle.Plain, ""},
		"a CSV that cannot be parsed": {map[string]string{"a.yaml": "kind: ClusterServiceVersion\n bad: [\n"},
			bundle.Plain, ""},
		"a CSV that cannot be parsed, a CRD": {map[string]string{"a.json": `{"kind":"ClusterServiceVersion"`,
			"crd.yaml": "kind: CustomResourceDefinition\n"}, bundle.Plain, ""},
		"YAML that is no object": {map[string]string{"values.yaml": "a: 1\n"}, bundle.Plain, ""},
		"other objects": {map[string]string{"r.yaml": roleYML, "README.md": "text"},
			bundle.Plain, ""},
		"a chart": {map[string]string{"Chart.yaml": "name: c\n", "values.yaml": "a: 1\n"},
			bundle.Helm, ""},
		"a chart without a name is none": {map[string]string{"Chart.yaml": "version: 1\n", "r.yaml": roleYML},
			bundle.Plain, ""},
		"no manifest": {map[string]string{"README.md": "text", "x": "\x00\x01"}, "",
			"contains no yaml files"},
		"only the first document counts": {map[string]string{"r.yaml": roleYML + "---\n" + csv("a", "")},
			bundle.Plain, ""},
		"directories do not count": {map[string]string{"r.yaml": roleYML, "sub/a.yaml": csv("a", "")},
			bundle.Plain, ""},
		"a mounted ConfigMap's own is no file": {map[string]string{"..data/a.yaml": csv("a", ""), "..x": "y",
			"r.yaml": roleYML}, bundle.Plain, ""},
		"a file too large": {map[string]string{"a.yaml": strings.Repeat("#", 5<<20)}, "",
			"limit exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for n, text := range c.files {
				fsys[n] = &fstest.MapFile{Data: []byte(text)}
			}
			got, err := generate.DetectMediaType(fsys)
			if c.err == "" && (err != nil || got != c.want) ||
				c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// appRegistry returns the directory of a package in the format before bundles.
func appRegistry(t *testing.T) string {
	return tree(t, map[string]string{
		"README.md": "text",
		"x.package.yaml": "packageName: acme\nchannels:\n- name: stable\n  currentCSV: acme.v2\n- name: " +
			"alpha\n  currentCSV: acme.v3\n- name: other\n  currentCSV: acme.v0\ndefaultChannel: stable\n",
		"1.0.0/csv.yaml":       csv("acme.v1", ""),
		"2.0.0/csv.yaml":       csv("acme.v2", "acme.v1"),
		"3.0.0/csv.yaml":       csv("acme.v3", "") + "  skips:\n  - acme.v2\n",
		"docs/page.md":         "no bundle",
		"loop/csv.yaml":        csv("acme.loop", "acme.loop"),
		"loop/nested/csv.yaml": csv("acme.nested", ""),
	})
}

func TestInference(t *testing.T) {
	for name, c := range map[string]struct {
		dir   string
		given generate.Metadata
		want  generate.Metadata
		err   string
	}{
		"everything": {"1.0.0", generate.Metadata{},
			generate.Metadata{Package: "acme", Channels: "alpha,stable", DefaultChannel: "stable"}, ""},
		"a default channel elsewhere": {"3.0.0", generate.Metadata{},
			generate.Metadata{Package: "acme", Channels: "alpha"}, ""},
		"channels only": {"2.0.0", generate.Metadata{Package: "mine"},
			generate.Metadata{Package: "mine", Channels: "alpha,stable", DefaultChannel: "stable"}, ""},
		"package only": {"2.0.0", generate.Metadata{Channels: "beta"},
			generate.Metadata{Package: "acme", Channels: "beta"}, ""},
		"nothing to infer": {"2.0.0", generate.Metadata{Package: "mine", Channels: "stable"},
			generate.Metadata{Package: "mine", Channels: "stable"}, ""},
		"in no channel": {"loop", generate.Metadata{}, generate.Metadata{},
			"error interpreting channels, please manually input channels instead"},
		"no CSV": {"docs", generate.Metadata{MediaType: bundle.Plain}, generate.Metadata{},
			"please manually input channels and packageName"},
		"no package.yaml": {"loop/nested", generate.Metadata{}, generate.Metadata{},
			"please manually input channels and packageName"},
	} {
		t.Run(name, func(t *testing.T) {
			root := appRegistry(t)
			before := contents(t, root)
			work := t.TempDir()
			r, err := generate.Generate(context.Background(),
				generate.Options{Dir: filepath.Join(root, c.dir), WorkDir: work, OutputDir: filepath.Join(work, "out"),
					Metadata: c.given})
			equal(t, contents(t, root), before)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %s", err, c.err)
				}
				equal(t, contents(t, work), map[string]string{"./": ""})
				return
			}
			if c.want.MediaType = bundle.RegistryV1; err != nil || r.Metadata != c.want {
				t.Errorf("got %+v, %v", r.Metadata, err)
			}
		})
	}
}

func TestOnlyChannelIsTheDefault(t *testing.T) {
	got, err := generate.InferPackage(fstest.MapFS{
		"package.yaml": {Data: []byte("packageName: p\nchannels: [{name: only, currentCSV: a}]\n")},
		"1/a.yaml":     {Data: []byte(csv("a", ""))},
	}, "1")
	if err != nil || got.DefaultChannel != "only" || got.Name != "p" {
		t.Errorf("got %+v, %v", got, err)
	}
}

var given = generate.Metadata{Package: "p", Channels: "a"}

// Existing files with other content stay unless Overwrite is set; files with the same content are not written.
func TestOverwrite(t *testing.T) {
	work := tree(t, map[string]string{"manifests/a.yaml": csv("a", ""), "metadata/annotations.yaml": "mine",
		"bundle.Dockerfile": "mine too"})
	o := generate.Options{Dir: filepath.Join(work, "manifests"), WorkDir: work, Metadata: given}
	before := contents(t, work)
	_, err := generate.Generate(context.Background(), o)
	if !errors.Is(err, generate.ErrExists) || !errors.Is(err, fs.ErrExist) || strings.Count(err.Error(), "exist") != 2 {
		t.Errorf("got %v", err)
	}
	equal(t, contents(t, work), before)

	o.Overwrite = true
	r, err := generate.Generate(context.Background(), o)
	if err != nil || len(r.Written) != 2 {
		t.Errorf("got %+v, %v", r, err)
	}
	o.Overwrite = false
	if r, err = generate.Generate(context.Background(), o); err != nil || len(r.Written) != 0 {
		t.Errorf("the second time: %+v, %v", r, err)
	}
}

// A failure undoes what was written before it.
func TestFailureLeavesEverythingAsItWas(t *testing.T) {
	work := tree(t, map[string]string{"manifests/a.yaml": csv("a", ""), "out/manifests/a.yaml": "old",
		"out/metadata": "a file"})
	before := contents(t, work)
	_, err := generate.Generate(context.Background(),
		generate.Options{Dir: filepath.Join(work, "manifests"), OutputDir: filepath.Join(work, "out"), WorkDir: work,
			Metadata: given, Overwrite: true})
	if err == nil {
		t.Error("no error")
	}
	equal(t, contents(t, work), before)

	work = tree(t, map[string]string{"manifests/a.yaml": csv("a", ""), "manifests/b.yaml": roleYML})
	before = contents(t, work)
	ctx, cancel := context.WithCancel(context.Background())
	_, err = generate.Generate(ctx, generate.Options{Dir: filepath.Join(work, "manifests"),
		OutputDir: filepath.Join(work, "x", "y"), WorkDir: work, Metadata: given,
		Info: func(m string) {
			if strings.HasPrefix(m, "Writing bundle.Dockerfile") {
				cancel()
			}
		}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	equal(t, contents(t, work), before)
}

// Directories below the manifests are copied with their names.
func TestNestedCopy(t *testing.T) {
	work := tree(t, map[string]string{"m/a.yaml": csv("a", ""), "m/sub/deeper/b.yaml": roleYML})
	if _, err := generate.Generate(context.Background(),
		generate.Options{Dir: filepath.Join(work, "m"), OutputDir: filepath.Join(work, "out"), WorkDir: work,
			Metadata: given}); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(work, "out", "manifests", "sub", "deeper", "b.yaml")); got != roleYML {
		t.Errorf("got %q", got)
	}
}

func TestRefusedDirectories(t *testing.T) {
	outside := tree(t, map[string]string{"secret.yaml": roleYML})
	for name, prepare := range map[string]func(dir string) generate.Options{
		"missing": func(dir string) generate.Options { return generate.Options{Dir: filepath.Join(dir, "nosuch")} },
		"a file": func(dir string) generate.Options {
			return generate.Options{Dir: filepath.Join(dir, "m", "a.yaml")}
		},
		"a link out of it": func(dir string) generate.Options {
			if err := os.Symlink(filepath.Join(outside, "secret.yaml"), filepath.Join(dir, "m", "0.yaml")); err != nil {
				t.Fatal(err)
			}
			return generate.Options{Dir: filepath.Join(dir, "m")}
		},
		"output in the manifests": func(dir string) generate.Options {
			return generate.Options{Dir: filepath.Join(dir, "m"), OutputDir: filepath.Join(dir, "m", "out")}
		},
		"a link in place of an output": func(dir string) generate.Options {
			if err := os.Symlink(filepath.Join(outside, "secret.yaml"),
				filepath.Join(dir, "bundle.Dockerfile")); err != nil {
				t.Fatal(err)
			}
			return generate.Options{Dir: filepath.Join(dir, "m"), Overwrite: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, map[string]string{"m/a.yaml": csv("a", "")})
			o := prepare(dir)
			o.WorkDir, o.Metadata = dir, given
			before, kept := contents(t, dir), contents(t, outside)
			if _, err := generate.Generate(context.Background(), o); err == nil {
				t.Error("no error")
			}
			equal(t, contents(t, dir), before)
			equal(t, contents(t, outside), kept)
		})
	}
}

func TestTextCannotBecomeInstructions(t *testing.T) {
	m := generate.Metadata{MediaType: bundle.RegistryV1, Package: `a "b" $c\`, Channels: "x y"}
	text, err := m.Dockerfile("scratch", "my manifests", "meta[data]")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`package.v1="a \"b\" \$c\\"`, `channels.v1="x y"`,
		`COPY ["my manifests","/manifests/"]`, `COPY ["meta[[]data]","/metadata/"]`} {
		if !strings.Contains(string(text), line+"\n") {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
	for _, bad := range []generate.Metadata{{Package: "a\nRUN x"}, {Channels: "\x1b[31m"}, {DefaultChannel: "\xff"}} {
		if _, err := bad.Dockerfile("scratch", "m", "n"); err == nil {
			t.Errorf("%+v is taken into the Dockerfile", bad)
		}
		if _, err := bad.Annotations(); err == nil {
			t.Errorf("%+v is taken into the annotations", bad)
		}
	}
	for _, base := range []string{"", "a b", "a\nRUN x"} {
		if _, err := given.Dockerfile(base, "m", "n"); err == nil {
			t.Errorf("base image %q is taken", base)
		}
	}
}

func TestCompare(t *testing.T) {
	m := generate.Metadata{MediaType: bundle.RegistryV1, Package: "p", Channels: "a"}
	existing := m.Map()
	existing["more"] = "x"
	if err := m.Compare(existing); err != nil {
		t.Error(err)
	}
	delete(existing, bundle.AnnotationPackage)
	existing[bundle.AnnotationChannels] = "b"
	err := m.Compare(existing)
	want := "Expect field \"" + bundle.AnnotationChannels + "\" to have value \"a\" instead of \"b\"\nMissing field: " +
		bundle.AnnotationPackage
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
