package render_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/render"
)

const (
	configsLabel  = "operators.operatorframework.io.index.configs.v1"
	databaseLabel = "operators.operatorframework.io.index.database.v1"
)

// client returns a client of the test's registry, which also answers for the recorded registry's name.
func client(t *testing.T, r *testregistry.Registry) *images.Client {
	t.Helper()
	yes := true
	c, err := images.NewClient(images.ClientOptions{Policy: policy.Read, Options: registries.Options{Temp: t.TempDir(), Registry: registries.Config{
		SkipTLSVerify: &yes, PlainHTTP: true, RegistriesConf: r.RegistriesConf(t, testregistry.RecordedHost),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Every recorded bundle image is rendered with the same bytes as by opm.
func TestRecordedBundleImages(t *testing.T) {
	r := testregistry.Recorded(t)
	o := render.Options{Images: client(t, r)}
	answers := recorded.All(t)
	names, err := os.ReadDir(filepath.Join(string(answers), "golden-bundles"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		at := strings.LastIndex(n.Name(), "-v")
		for strings.Contains(n.Name()[:at], "-v") {
			at = strings.LastIndex(n.Name()[:at], "-v")
		}
		group := "community"
		if strings.HasPrefix(n.Name(), "synth-") {
			group = "synth"
		}
		ref := fmt.Sprintf("%s/%s/%s:%s", testregistry.RecordedHost, group, n.Name()[:at], n.Name()[at+1:])
		for file, format := range map[string]declcfg.Format{"render-image.json": declcfg.FormatJSON,
			"render-image.yaml": declcfg.FormatYAML} {
			want := answers.File(t, filepath.Join("golden-bundles", n.Name(), file))
			got, err := text(t, format, o, ref)
			if err != nil {
				t.Errorf("%s: %v", ref, err)
			} else if got != string(want) {
				t.Errorf("%s: %s differs from opm's", ref, file)
			}
		}
	}
	if len(names) < 29 {
		t.Errorf("only %d answers", len(names))
	}
}

// A catalog, a database and a bundle give the same blobs from disk and from an image, in a registry and in a layout,
// whatever else is in the image.
func TestImageOfEveryKind(t *testing.T) {
	db, err := os.ReadFile("../testdata/db/small.db")
	if err != nil {
		t.Fatal(err)
	}
	dbFile := filepath.Join(t.TempDir(), "small.db")
	if err := os.WriteFile(dbFile, db, 0o600); err != nil {
		t.Fatal(err)
	}
	catalog := t.TempDir()
	blobs := `{"schema":"olm.package","name":"a","defaultChannel":"x"}
{"schema":"olm.channel","package":"a","name":"x","entries":[{"name":"a.v1"}]}
{"schema":"olm.bundle","package":"a","name":"a.v1","image":"example.test/a:1","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}
`
	if err := os.WriteFile(filepath.Join(catalog, "catalog.json"), []byte(blobs), 0o600); err != nil {
		t.Fatal(err)
	}
	r := testregistry.New(t)
	below := map[string]string{"bin/tool": "program", "configs/old/catalog.json": `{"schema":"old"}`,
		"database/index.db": "old"}
	for _, c := range []struct {
		name, path string
		image      testregistry.Image
	}{
		{"database", dbFile, testregistry.Image{
			Labels: map[string]string{databaseLabel: "/database/index.db", configsLabel: "/configs"},
			Layers: []map[string]string{below, {"database/index.db": string(db)}},
		}},
		{"catalog", catalog, testregistry.Image{
			Labels: map[string]string{configsLabel: "/configs"},
			Layers: []map[string]string{below, {"configs/.wh.old": ""}, {"configs/a/catalog.json": blobs}},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, err := text(t, declcfg.FormatJSON, render.Options{}, c.path)
			if err != nil {
				t.Fatal(err)
			}
			r.AddImage(t, "index/"+c.name, "v1", c.image)
			layout := filepath.Join(t.TempDir(), "layout")
			c.image.WriteLayout(t, layout, "v1")
			temp := t.TempDir()
			o := render.Options{Images: client(t, r), TempDir: temp}
			for _, ref := range []string{r.Host() + "/index/" + c.name + ":v1",
				"docker://" + r.Host() + "/index/" + c.name + ":v1", "oci:" + layout + ":v1"} {
				got, err := text(t, declcfg.FormatJSON, o, ref)
				if err != nil {
					t.Errorf("%s: %v", ref, err)
				} else if got != want {
					t.Errorf("%s is rendered in another way than %s", ref, c.path)
				}
			}
			if left, _ := fs.Glob(os.DirFS(temp), "*"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// Many references are rendered to the merged stream of their blobs, in order, and the errors of all of them are
// reported.
func TestManyImages(t *testing.T) {
	r := testregistry.Recorded(t)
	temp := t.TempDir()
	var pulled []string
	o := render.Options{Images: client(t, r), TempDir: temp, ResolveDigests: true,
		Opened: func(p render.OpenedImage) { pulled = append(pulled, p.Digest) }}
	etcd, skupper := testregistry.RecordedHost+"/community/etcd:v0.9.4",
		testregistry.RecordedHost+"/community/skupper-operator:v1.9.4"
	got, err := text(t, declcfg.FormatNDJSON, o, skupper, etcd, skupper)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], `"etcdoperator.v0.9.4"`) || lines[1] != lines[2] {
		t.Errorf("%d lines", len(lines))
	}
	const digest = "/community/etcd@sha256:20764874ca1b2665ae825cd2e3bfbf0c1e242ec0e116e9f6a2f56aa5b5ba677a"
	if !strings.Contains(lines[0], `"image":"`+testregistry.RecordedHost+digest+`"`) || len(pulled) != 3 {
		t.Errorf("%.300s\n%q", lines[0], pulled)
	}
	_, err = text(t, declcfg.FormatNDJSON, o, etcd, r.Host()+"/no/such:v1", skupper, r.Host()+"/nor/this:v1")
	if err == nil || !strings.Contains(err.Error(), "no/such") || !strings.Contains(err.Error(), "nor/this") {
		t.Errorf("%v", err)
	}
	if left, _ := fs.Glob(os.DirFS(temp), "*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestKindsThatAreNotAllowed(t *testing.T) {
	r := testregistry.New(t)
	r.AddImage(t, "b", "v1",
		testregistry.Image{Labels: map[string]string{"operators.operatorframework.io.bundle.package.v1": "b"}})
	r.AddImage(t, "none", "v1", testregistry.Image{})
	r.AddImage(t, "other", "v1", testregistry.Image{Labels: map[string]string{"maintainer": "x"}})
	r.AddImage(t, "out", "v1", testregistry.Image{Labels: map[string]string{configsLabel: "/../../etc"}})
	o := render.Options{Images: client(t, r), Allow: []render.Kind{render.CatalogImage, render.CatalogDirectory}}
	for repository, want := range map[string]string{
		"b":     "cannot render bundle image: not allowed",
		"none":  "image has no labels",
		"other": `found labels "maintainer"`,
		"out":   "is not a path in the image",
	} {
		_, err := text(t, declcfg.FormatJSON, o, r.Host()+"/"+repository+":v1")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", repository, err)
		}
		if repository == "b" && !errors.Is(err, render.ErrNotAllowed) {
			t.Errorf("%v is not ErrNotAllowed", err)
		}
	}
	// ".." in a package name cannot leave the directory, and a name longer than any path is refused.
	blob := `{"schema":"olm.package","name":"p","defaultChannel":"c"}`
	r.AddImage(t, "dots", "v1", testregistry.Image{Labels: map[string]string{configsLabel: "/configs..v2"},
		Layers: []map[string]string{{"configs..v2/p/catalog.json": blob}}})
	if got, err := text(t, declcfg.FormatJSON, o, r.Host()+"/dots:v1"); err != nil || !strings.Contains(got, `"p"`) {
		t.Errorf("got %s, %v", got, err)
	}
	r.AddImage(t, "deep", "v1",
		testregistry.Image{Labels: map[string]string{configsLabel: strings.Repeat("/a", 40_000)}})
	if _, err := text(t, declcfg.FormatJSON, o, r.Host()+"/deep:v1"); !errors.Is(err, images.ErrLimit) ||
		len(err.Error()) > 1000 {
		t.Errorf("got %.2000v", err)
	}
	dir := t.TempDir()
	for _, sub := range []string{"manifests", "metadata"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := text(t, declcfg.FormatJSON, o, dir); !errors.Is(err, render.ErrNotAllowed) {
		t.Errorf("%v", err)
	}
}

// If only annotations.yaml in the image names the manifests directory, the bundle is the same as from its directory.
// For other errors the image is not read a second time.
func TestBundleImagesAreReadAgainForDirectoriesOnly(t *testing.T) {
	csv := func(name string) string {
		return `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"` +
			name + `"},"spec":{"version":"1.0.0"}}`
	}
	labels := map[string]string{bundle.AnnotationPackage: "p"}
	notes := "annotations:\n  " + bundle.AnnotationPackage + ": p\n  " + bundle.AnnotationChannels + ": a\n"
	for _, c := range []struct {
		name   string
		files  map[string]string
		want   string // a part of the answer or the error
		layers int    // requests for the layer
	}{
		{"as usual", map[string]string{"manifests/csv.json": csv("usual"), "metadata/annotations.yaml": notes},
			`"usual"`, 1},
		{"elsewhere", map[string]string{"deploy/csv.json": csv("elsewhere"),
			"metadata/annotations.yaml": notes + "  " + bundle.AnnotationManifests + ": deploy/\n"}, `"elsewhere"`, 2},
		{"elsewhere, and something in the usual place", map[string]string{
			"manifests/csv.json": csv("usual"), "deploy/csv.json": csv("elsewhere"),
			"metadata/annotations.yaml": notes + "  " + bundle.AnnotationManifests + ": deploy/\n",
		}, `"elsewhere"`, 2},
		{"nowhere", map[string]string{"manifests/csv.json": csv("usual"),
			"metadata/annotations.yaml": notes + "  " + bundle.AnnotationManifests + ": deploy/\n"}, `"usual"`, 2},
		{"without a CSV",
			map[string]string{"manifests/a.json": `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`,
				"metadata/annotations.yaml": notes}, "no csv in bundle", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := testregistry.New(t)
			r.AddImage(t, "p", "v1", testregistry.Image{Labels: labels, Layers: []map[string]string{c.files}})
			warned := map[string]int{}
			got, err := text(t, declcfg.FormatNDJSON,
				render.Options{Images: client(t, r), Warn: func(_ declcfg.Position, text string) { warned[text]++ }},
				r.Host()+"/p:v1")
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got %s", got)
			}
			if n := r.Count("GET /v2/p/blobs/") - 1; n != c.layers { // without the configuration's request
				t.Errorf("%d requests of the layer", n)
			}
			for text, times := range warned {
				if times > 1 {
					t.Errorf("%d times: %s", times, text)
				}
			}
		})
	}
	t.Run("a registry that fails", func(t *testing.T) {
		r := testregistry.New(t)
		d := r.AddImage(t, "p", "v1", testregistry.Image{Labels: labels,
			Layers: []map[string]string{{"manifests/csv.json": csv("usual"), "metadata/annotations.yaml": notes}}})
		var m v1.Manifest
		if err := json.Unmarshal(r.Manifest("p", d.String()), &m); err != nil {
			t.Fatal(err)
		}
		layer := "/v2/p/blobs/" + m.Layers[0].Digest.String()
		r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
			if q.URL.Path != layer {
				return false
			}
			w.WriteHeader(http.StatusInternalServerError)
			return true
		})
		if got, err := text(t, declcfg.FormatNDJSON, render.Options{Images: client(t, r)},
			r.Host()+"/p:v1"); !errors.Is(err, images.ErrRegistry) {
			t.Errorf("got %s, %v", got, err)
		}
		if n := r.Count("GET " + layer); n != 1 {
			t.Errorf("%d requests of the layer", n)
		}
	})
}

// Blobs that do not fit into memory are written to a file and read back unchanged.
func TestSpool(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	var layers []string
	r := testregistry.New(t)
	for i := range 40 {
		csv := fmt.Sprintf(
			`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"p.v1.0.%d"},"spec":{"version":"1.0.%d","description":%q}}`, i, i, big)
		r.AddImage(t, "p", fmt.Sprint(i), testregistry.Image{
			Labels: map[string]string{"operators.operatorframework.io.bundle.package.v1": "p"},
			Layers: []map[string]string{{
				"manifests/csv.json": csv,
				"metadata/annotations.yaml": "annotations:\n  operators.operatorframework.io.bundle.package.v1: " +
					"p\n  operators.operatorframework.io.bundle.channels.v1: a\n",
			}},
		})
		layers = append(layers, fmt.Sprintf("%s/p:%d", r.Host(), i))
	}
	temp := t.TempDir()
	o := render.Options{Images: client(t, r), TempDir: temp}
	got, err := text(t, declcfg.FormatNDJSON, o, layers...)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Count([]byte(got), []byte("\n"))
	for _, i := range []int{0, 7, 39} {
		alone, err := text(t, declcfg.FormatNDJSON, o, layers[i])
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got, alone) {
			t.Errorf("bundle %d came out in another way", i)
		}
	}
	if lines != 40 {
		t.Errorf("%d lines", lines)
	}
	if left, _ := fs.Glob(os.DirFS(temp), "*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
