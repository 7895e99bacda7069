package index_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// A mapping has exactly the images that the catalog needs.
func TestMirrorMapsTheImagesOfACatalog(t *testing.T) {
	dir := clitest.WorkDir(t)
	for _, selection := range []string{"", "--heads-only", "--channel alpha",
		"--package etcd --package silicom-sts-operator"} {
		var of string
		switch selection {
		case "--package etcd --package silicom-sts-operator":
			of = clitest.Done(t, dir, "bindery", "list", "images", "small.db")
		default:
			of = clitest.Done(t, dir, "bindery",
				append([]string{"list", "images", "small.db"}, strings.Fields(selection)...)...)
		}
		mapping := clitest.Done(t, dir, "bindery",
			append([]string{"registry", "mirror", "-d", "small.db", "--to", "m.test/p"},
				strings.Fields(selection)...)...)
		lines, images := strings.Fields(mapping), strings.Fields(of)
		if len(lines) != len(images) || len(images) == 0 {
			t.Fatalf("%s: %d lines for %d images", selection, len(lines), len(images))
		}
		for i, line := range lines {
			source, destination, ok := strings.Cut(line, "=")
			if !ok || !strings.HasPrefix(source, images[i]) || !strings.HasPrefix(destination, "m.test/p/") {
				t.Errorf("%s: %q is not the mapping of %q", selection, line, images[i])
			}
		}
	}
	var rows []map[string]string
	if err := json.Unmarshal(
		[]byte(clitest.Done(t, dir, "bindery", "registry", "mirror", "small.db", "--to", "m.test", "-o", "json", "--package",
			"etcd")), &rows); err != nil || len(rows) == 0 || rows[0]["source"] == "" || rows[0]["destination"] == "" {
		t.Errorf("%v, %v", rows, err)
	}
}

// A mirror set for a cluster has either the images named by digest or those named by tag; a warning reports the others.
func TestMirrorTellsWhatASetDoesNotHold(t *testing.T) {
	dir := clitest.WorkDir(t)
	for format, want := range map[string]string{
		"idms":            "warning: 19 images are named by tag, which idms does not map: use -o itms\n",
		"icsp":            "warning: 19 images are named by tag, which icsp does not map: use -o itms\n",
		"itms":            "images are named by digest, which itms does not map: use -o idms\n",
		"mapping":         "",
		"registries-conf": "",
	} {
		got := clitest.RunProgram(t, dir, "bindery", "registry", "mirror", "small.db", "--to", "m.test", "-o", format)
		if got.Status != 0 || got.Stdout == "" || (want == "") != (got.Stderr == "") || !strings.Contains(got.Stderr,
			want) {
			t.Errorf("%s: status %d, %q", format, got.Status, got.Stderr)
		}
	}
}

// With the generated registries.conf, a catalog and its bundles are read from the mirror while the original registry is
// unavailable.
func TestMirrorIsReadByItsConfiguration(t *testing.T) {
	recorded := testregistry.Recorded(t)
	conf := recorded.RegistriesConf(t, testregistry.RecordedHost)
	dir := clitest.WorkDir(t)
	const ref = testregistry.RecordedHost + "/community/etcd:v0.9.4"
	target := testregistry.New(t)
	own := clitest.Done(t, dir, "bindery", "render", ref, "--registries-conf", conf, "--no-cache")

	mapping := clitest.Done(t, dir, "bindery", "registry", "mirror", "small.db", "--to", target.Host()+"/olm", "--use-http",
		"--max-components", "2", "--package", "etcd")
	copied := 0
	for _, line := range strings.Fields(mapping) {
		source, destination, _ := strings.Cut(line, "=")
		name, ok := strings.CutPrefix(source, testregistry.RecordedHost+"/")
		if !ok {
			continue // the images that operators run are not recorded
		}
		repository, tag, _ := strings.Cut(name, ":")
		to, toTag, _ := strings.Cut(strings.TrimPrefix(destination, target.Host()+"/"), ":")
		if !strings.HasPrefix(to, "olm/community-") || tag != toTag {
			t.Errorf("mapped %s", line)
		}
		copyTo(t, target, to, tag, recorded, repository)
		copied++
	}
	if copied != 6 {
		t.Fatalf("%d images copied", copied)
	}
	file := filepath.Join(dir, "registries.conf")
	text := clitest.Done(t, dir, "bindery", "registry", "mirror", "small.db", "--to", target.Host()+"/olm", "--use-http",
		"--max-components", "2", "-o", "registries-conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	recorded.Forget()
	if got := clitest.Done(t, dir, "bindery", "render", ref, "--registries-conf", file, "--no-cache"); got != own {
		t.Error("the mirror renders otherwise")
	}
	if asked := recorded.Requests(); len(asked) != 0 {
		t.Errorf("the registry itself was asked: %v", asked)
	}
	clitest.Done(t, dir, "bindery", "index", "export", "-i", "small.db", "-p", "etcd", "-f", "out", "--registries-conf", file,
		"--no-cache")
}

// copyTo copies an image of one platform between registries.
func copyTo(t *testing.T, target *testregistry.Registry, to, tag string, source *testregistry.Registry,
	repository string) {
	t.Helper()
	text := source.Manifest(repository, tag)
	var m v1.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	for _, d := range append(m.Layers, m.Config) {
		answer, err := http.Get("http://" + source.Host() + "/v2/" + repository + "/blobs/" + string(d.Digest))
		if err != nil {
			t.Fatal(err)
		}
		blob, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if target.AddBlob(blob) != d.Digest {
			t.Fatalf("blob %s of %s cannot be copied", d.Digest, repository)
		}
	}
	target.AddManifest(to, tag, m.MediaType, text)
}
