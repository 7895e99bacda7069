package resources_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/resources"
)

const hexA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func ref(t *testing.T, text string) imageset.Ref {
	t.Helper()
	r, err := imageset.ParseRef(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func image(t *testing.T, from, to string) resources.Copied {
	t.Helper()
	return resources.Copied{Source: ref(t, from), Destination: ref(t, to)}
}

// make1 returns the files by name.
func make1(t *testing.T, images []resources.Copied, o resources.Options) (map[string]string, []string) {
	t.Helper()
	o.CreatedAt = time.Date(2026, 8, 1, 2, 3, 4, 0, time.UTC)
	made, warnings, err := o.Make(images)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range made {
		out[f.Name] = string(f.Data)
	}
	return out, warnings
}

func TestScopes(t *testing.T) {
	one := []resources.Copied{image(t, "h/x@sha256:"+hexA, "t/m/x:sha256-"+hexA)}
	for name, c := range map[string]struct {
		images []resources.Copied
		o      resources.Options
		want   string
		warns  bool
	}{
		"namespace": {[]resources.Copied{image(t, "h/a/b@sha256:"+hexA, "t/m/a/b:x")}, resources.Options{},
			"  - mirrors:\n    - t/m/a\n    source: h/a\n", false},
		"a whole registry": {one, resources.Options{}, "  - mirrors:\n    - t/m\n    source: h\n", true},
		"repository":       {one, resources.Options{Repositories: true}, "    - t/m/x\n    source: h/x\n", false},
		"moved": {[]resources.Copied{image(t, "h/a/b@sha256:"+hexA, "t/m/c/b:x")}, resources.Options{},
			"    - t/m/c/b\n    source: h/a/b\n", false},
		"not the same part": {[]resources.Copied{image(t, "h/a/b@sha256:"+hexA, "t/m/xa/b:x")}, resources.Options{},
			"    - t/m/xa/b\n    source: h/a/b\n", false},
		"two mirrors": {[]resources.Copied{image(t, "h/a/b@sha256:"+hexA, "t/z/b:x"), image(t, "h/a/b@sha256:"+hexA,
			"t/y/b:x")}, resources.Options{}, "  - mirrors:\n    - t/y/b\n    - t/z/b\n    source: h/a/b\n", false},
	} {
		files, warnings := make1(t, c.images, c.o)
		if text := files["idms-oc-mirror.yaml"]; !strings.Contains(text, c.want) || len(files) != 1 {
			t.Errorf("%s: got %v", name, files)
		}
		if len(warnings) > 0 != c.warns {
			t.Errorf("%s: warnings %v", name, warnings)
		}
	}
}

// A set that is too large for a cluster is split, and nothing is lost.
func TestLargeSetsAreSplit(t *testing.T) {
	var images []resources.Copied
	const n = 5000
	for i := range n {
		images = append(images, image(t, fmt.Sprintf("h/namespace-%d/b@sha256:%s", i, hexA),
			fmt.Sprintf("registry.example.com:5000/mirror/namespace-%d/b:x", i)))
	}
	files, _ := make1(t, images, resources.Options{})
	text := files["idms-oc-mirror.yaml"]
	objects := strings.Split(text, "---\n")[1:]
	if len(objects) != 2 || !strings.Contains(objects[1], "name: idms-operator-1\n") ||
		strings.Count(text, "source: ") != n {
		t.Errorf("%d objects, %d entries", len(objects), strings.Count(text, "source: "))
	}
	for _, o := range objects {
		if len(o) > 250_000 {
			t.Errorf("%d bytes", len(o))
		}
	}
}

func TestCatalogNames(t *testing.T) {
	label := regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	catalog := func(to string) resources.Copied {
		c := image(t, "h/c:v1", to)
		c.Catalog = true
		return c
	}
	long := strings.Repeat("a", 70)
	files, warnings := make1(t, []resources.Copied{catalog("t/a/cat:v4.18"), catalog("t/b/cat:v4.18"),
		catalog("t/c.d/my.cat:V1_x"), catalog("t/" + long + ":v1"), catalog("t/under_score:v1"), catalog("t/x:1-"),
		catalog("t/d@sha256:" + hexA)}, resources.Options{})
	for _, want := range []string{"cs-cat-v4-18.yaml", "cc-cat-v4-18.yaml", "cs-my-cat-v1-x.yaml",
		"cs-d-" + hexA[:12] + ".yaml"} {
		if files[want] == "" {
			t.Errorf("no %s", want)
		}
	}
	if len(files) != 14 || len(warnings) != 1 || !strings.Contains(warnings[0], "t/b/cat:v4.18") {
		t.Errorf("%d files, %v", len(files), warnings)
	}
	for name, text := range files {
		if base := strings.TrimSuffix(name, ".yaml"); !label.MatchString(base) || !strings.Contains(text,
			"name: "+base) {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

func TestPinnedCatalog(t *testing.T) {
	c := image(t, "h/c:v1", "t/c:v1")
	c.Catalog, c.Digest = true, "sha256:"+hexA
	files, _ := make1(t, []resources.Copied{c}, resources.Options{PinCatalogs: true})
	if !strings.Contains(files["cs-c-v1.yaml"], "image: t/c@sha256:"+hexA) ||
		!strings.Contains(files["cc-c-v1.yaml"], "ref: t/c@sha256:"+hexA) ||
		!strings.Contains(files["cc-c-v1.yaml"], "createdBy: bindery") {
		t.Errorf("got %v", files)
	}
}

func TestTemplate(t *testing.T) {
	const head = "apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\n"
	for text, want := range map[string]string{
		head: "", head + "spec: {sourceType: grpc, priority: 010}\n": "",
		head + "spec: {sourceType: internal}\n": "not grpc",
		head + "spec: {configMap: x}\n":         "configMap", "kind: CatalogSource\n": "is not", "": "EOF",
		head + "---\na: b\n":                    "more",
		head + "metadata: {annotations: [x]}\n": "json", "[": "yaml",
		head + strings.Repeat("x", 2<<20) + ": 1": "limit"} {
		tpl, err := resources.ParseTemplate([]byte(text))
		if (err == nil) != (want == "") || err != nil && (!errors.Is(err, fault.ErrInvalid) ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("%.80q: %v", text, err)
		}
		if err != nil {
			continue
		}
		c := image(t, "h/c:v1", "t/c:v1")
		c.Catalog, c.Template = true, tpl
		files, _ := make1(t, []resources.Copied{c, c}, resources.Options{})
		if !strings.Contains(files["cs-c-v1.yaml"], "image: t/c:v1") {
			t.Errorf("got %v", files)
		}
	}
	if _, err := resources.ReadTemplate(t.Context(), filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestLists(t *testing.T) {
	c := image(t, "h/c:v1", "t/c:v1")
	c.Catalog = true
	layout := image(t, "oci:///x", "t/x:latest")
	files, _ := make1(t, []resources.Copied{image(t, "h/a/b:v1@sha256:"+hexA, "t/m/a/b:v1"), c, layout},
		resources.Options{Lists: true, Policy: true})
	if got, want := files["mapping.txt"], "docker://h/a/b@sha256:"+hexA+"=docker://t/m/a/b:v1\n"+
		"docker://h/c:v1=docker://t/c:v1\noci:///x=docker://t/x:latest\n"; got != want {
		t.Errorf("got\n%s", got)
	}
	if !strings.Contains(files["icsp-oc-mirror.yaml"], "repositoryDigestMirrors:\n  - mirrors:\n    - t/m/a\n") {
		t.Errorf("got %v", files)
	}
	path := filepath.Join(t.TempDir(), "registries.conf")
	if err := os.WriteFile(path, []byte(files["registries.conf"]), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := sysregistriesv2.FindRegistry(&types.SystemContext{SystemRegistriesConfPath: path,
		SystemRegistriesConfDirPath: t.TempDir()}, "h/a/b:v1")
	if err != nil || r == nil || len(r.Mirrors) != 1 || r.Mirrors[0].Location != "t/m/a/b" {
		t.Errorf("got %+v, %v\n%s", r, err, files["registries.conf"])
	}
}

// The same images in any order give the same bytes.
func TestOrderDoesNotMatter(t *testing.T) {
	var images []resources.Copied
	for i := range 20 {
		c := image(t, fmt.Sprintf("h/a%d/b:v1@sha256:%s", i%7, hexA), fmt.Sprintf("t/x%d/b:v1", i))
		c.Catalog = i%5 == 0
		images = append(images, c)
	}
	want, _, err := resources.Options{Lists: true}.Make(images)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(images)
	got, _, err := resources.Options{Lists: true}.Make(images)
	if err != nil || len(got) != len(want) {
		t.Fatal(err)
	}
	for i := range got {
		if got[i].Name != want[i].Name || !bytes.Equal(got[i].Data, want[i].Data) {
			t.Errorf("%s differs:\n%s\n%s", got[i].Name, got[i].Data, want[i].Data)
		}
	}
}

// Files of an earlier set go when the new ones are there; others stay, and after an error everything does.
func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "working-dir", "cluster-resources")
	c := image(t, "h/c:v1", "t/c:v1")
	c.Catalog = true
	first, _, err := resources.Options{Lists: true}.Make([]resources.Copied{c, image(t, "h/a/b:v1", "t/a/b:v1")})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if removed, err := resources.Write(ctx, dir, first, false); err != nil || len(removed) != 0 {
		t.Fatal(removed, err)
	}
	for name, text := range map[string]string{"cs-other-v1.yaml": "metadata:\n  annotations:\n    createdBy: " +
		"oc-mirror v2\n",
		"own.yaml": "createdBy: bindery\n", "cc-mine.yaml": "kind: ClusterCatalog\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.Destination.Tag = "v2"
	second, _, err := resources.Options{}.Make([]resources.Copied{c})
	if err != nil {
		t.Fatal(err)
	}
	names := func() string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return strings.Join(out, " ")
	}
	before := names()
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := resources.Write(cancelled, dir, second, false); err == nil || names() != before {
		t.Errorf("%v: %s", err, names())
	}
	removed, err := resources.Write(ctx, dir, second, false)
	if err != nil || strings.Join(removed, " ") != "cc-c-v1.yaml cs-c-v1.yaml itms-oc-mirror.yaml registries.conf" {
		t.Errorf("%v, %v", removed, err)
	}
	if got := names(); got != "cc-c-v2.yaml cc-mine.yaml cs-c-v2.yaml cs-other-v1.yaml mapping.txt own.yaml" {
		t.Errorf("got %s", got)
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add([]byte("apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {labels: {a: b}}\n"))
	f.Add([]byte(
		`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource","spec":{"icon":{"base64data":"x"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tpl, err := resources.ParseTemplate(data)
		if err != nil {
			return
		}
		c := image(t, "h/c:v1", "t/c:v1")
		c.Catalog, c.Template = true, tpl
		files, _ := make1(t, []resources.Copied{c}, resources.Options{})
		if _, err := resources.ParseTemplate([]byte(files["cs-c-v1.yaml"])); err != nil {
			t.Fatalf("%v\n%s", err, files["cs-c-v1.yaml"])
		}
	})
}
