package generate_test

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/bundle/generate"
)

func annotationsText(t *testing.T, m generate.Metadata, more string) string {
	t.Helper()
	text, err := m.Annotations()
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + more
}

var plainMetadata = generate.Metadata{MediaType: bundle.RegistryV1, Package: "p", Channels: "a,b", DefaultChannel: "b"}

func TestSource(t *testing.T) {
	own := annotationsText(t, plainMetadata, "  operators.operatorframework.io.test.config.v1: tests/scorecard/\n")
	whole := map[string]string{"manifests/a.yaml": csv("a", ""), "metadata/annotations.yaml": own,
		"metadata/dependencies.yaml":  "dependencies: []\n",
		"tests/scorecard/config.yaml": "x", "Dockerfile": "y"}
	elsewhere := map[string]string{"deploy/olm/a.yaml": csv("a", ""),
		"metadata/annotations.yaml": strings.ReplaceAll(own, ": manifests/", ": deploy/olm")}
	bare := map[string]string{"1.0.0/a.yaml": csv("a", "")}
	for name, c := range map[string]struct {
		files     map[string]string
		dir       string
		o         generate.SourceOptions
		has       string // the files of the source
		manifests string
		generated bool
		want      generate.Metadata // of a generated one
		err       string
	}{
		"a whole bundle": {whole, ".", generate.SourceOptions{},
			"Dockerfile manifests/a.yaml metadata/annotations.yaml metadata/dependencies.yaml " +
				"tests/scorecard/config.yaml", "manifests", false, generate.Metadata{}, ""},
		"its manifests": {whole, "manifests", generate.SourceOptions{},
			"Dockerfile manifests/a.yaml metadata/annotations.yaml metadata/dependencies.yaml " +
				"tests/scorecard/config.yaml", "manifests", false, generate.Metadata{}, ""},
		"the same words": {whole, ".",
			generate.SourceOptions{Metadata: generate.Metadata{Package: "p", DefaultChannel: "b"}},
			"manifests/a.yaml metadata/annotations.yaml metadata/dependencies.yaml tests/scorecard/config.yaml",
			"manifests", false, generate.Metadata{}, ""},
		"other words": {whole, ".", generate.SourceOptions{Metadata: generate.Metadata{Package: "q"}},
			"", "", false, generate.Metadata{}, `to have value "q" instead of "p"`},
		"other words, overwritten": {whole, ".",
			generate.SourceOptions{Metadata: generate.Metadata{Channels: "b"}, Overwrite: true},
			"manifests/a.yaml metadata/annotations.yaml metadata/dependencies.yaml", "manifests", true,
			generate.Metadata{MediaType: bundle.RegistryV1, Package: "p", Channels: "b", DefaultChannel: "b"}, ""},
		"manifests elsewhere": {elsewhere, ".", generate.SourceOptions{},
			"deploy/olm/a.yaml metadata/annotations.yaml", "deploy/olm", false, generate.Metadata{}, ""},
		"manifests not where it says": {map[string]string{"m/a.yaml": csv("a", ""), "metadata/annotations.yaml": own},
			"m", generate.SourceOptions{}, "manifests/a.yaml metadata/annotations.yaml", "manifests", false,
			generate.Metadata{}, ""},
		"nothing but manifests": {bare, "1.0.0",
			generate.SourceOptions{Metadata: generate.Metadata{Package: "p", Channels: "a"}},
			"manifests/a.yaml metadata/annotations.yaml", "manifests", true,
			generate.Metadata{MediaType: bundle.RegistryV1, Package: "p", Channels: "a"}, ""},
		"nothing to infer from": {bare, "1.0.0", generate.SourceOptions{}, "", "", false, generate.Metadata{},
			"please manually input channels and packageName"},
		"plain": {map[string]string{"manifests/r.yaml": roleYML}, ".",
			generate.SourceOptions{Plain: true, Metadata: generate.Metadata{Package: "p"}},
			"manifests/r.yaml metadata/annotations.yaml", "manifests", true,
			generate.Metadata{MediaType: bundle.PlainV0, Package: "p"}, ""},
		"plain of registry+v1": {whole, ".", generate.SourceOptions{Plain: true}, "", "", false,
			generate.Metadata{}, `to have value "plain+v0" instead of "registry+v1"`},
		"no manifests": {map[string]string{"metadata/annotations.yaml": own}, ".",
			generate.SourceOptions{}, "", "", false, generate.Metadata{}, "no such file"},
		"no directory": {whole, "nosuch/dir", generate.SourceOptions{}, "", "", false,
			generate.Metadata{}, "no such file"},
		"broken annotations": {map[string]string{"manifests/a.yaml": csv("a", ""),
			"metadata/annotations.yaml": "annotations: [a]"}, ".", generate.SourceOptions{}, "", "", false,
			generate.Metadata{}, "metadata/annotations.yaml"},
		"annotations lead out": {map[string]string{"manifests/a.yaml": csv("a", ""),
			"metadata/annotations.yaml": "annotations:\n  " + bundle.AnnotationManifests + ": ../../etc\n"}, ".",
			generate.SourceOptions{}, "", "", false, generate.Metadata{}, "is not a directory of the bundle"},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, c.files)
			before := contents(t, root)
			c.o.Dir = filepath.Join(root, c.dir)
			s, err := generate.OpenSource(c.o)
			equal(t, contents(t, root), before)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var has []string
			err = fs.WalkDir(s.FS, ".", func(name string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					has = append(has, name)
				}
				return err
			})
			if got := strings.Join(has, " "); err != nil || got != c.has || s.ManifestsDir != c.manifests ||
				s.Generated != c.generated {
				t.Errorf("got %q, %q, %v, %v", got, s.ManifestsDir, s.Generated, err)
			}
			if !c.generated {
				if want := plainMetadata.Package; s.Annotations[bundle.AnnotationPackage] != want {
					t.Errorf("annotations %q", s.Annotations)
				}
				return
			}
			if s.Metadata != c.want || !maps.Equal(s.Annotations, c.want.Map()) {
				t.Errorf("got %+v and %q", s.Metadata, s.Annotations)
			}
			text, err := fs.ReadFile(s.FS, "metadata/annotations.yaml")
			if err != nil || string(text) != annotationsText(t, c.want, "") {
				t.Errorf("got %s, %v", text, err)
			}
		})
	}
}

func TestOtherWordsAreAClassOfErrors(t *testing.T) {
	root := tree(t, map[string]string{"manifests/a.yaml": csv("a", ""),
		"metadata/annotations.yaml": annotationsText(t, plainMetadata, "")})
	_, err := generate.OpenSource(generate.SourceOptions{Dir: root, Metadata: generate.Metadata{Package: "q"}})
	if !errors.Is(err, generate.ErrMetadata) {
		t.Errorf("got %v", err)
	}
}

// The operator's tests are put into the image where the annotations say, also if these are overridden with the same
// values.
func TestSourceTests(t *testing.T) {
	for dir, want := range map[string]string{"tests/scorecard/": "tests/scorecard", "nosuch/": "", "../x": "",
		"manifests/a.yaml": "", "": ""} {
		for _, m := range []generate.Metadata{{}, {Package: "p", Channels: "a,b"}} {
			root := tree(t, map[string]string{"manifests/a.yaml": csv("a", ""), "tests/scorecard/c.yaml": "x",
				"metadata/annotations.yaml": annotationsText(t, plainMetadata,
					"  operators.operatorframework.io.test.config.v1: \""+dir+"\"\n")})
			s, err := generate.OpenSource(generate.SourceOptions{Dir: root, Metadata: m})
			if err != nil {
				t.Fatal(err)
			}
			if s.TestsDir != want {
				t.Errorf("%q, %+v: got %q", dir, m, s.TestsDir)
			}
			if info, err := fs.Stat(s.FS, path.Join(want, "c.yaml")); want != "" && (err != nil || info.Size() != 1) {
				t.Errorf("%+v: %v", m, err)
			}
			s.Close()
		}
	}
}
