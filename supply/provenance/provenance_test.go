package provenance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/opencontainers/go-digest"
)

func sha(c string) digest.Digest { return digest.Digest("sha256:" + strings.Repeat(c, 64)) }

// exampleBuild is the build of the contract's example.
func exampleBuild() *Build {
	return &Build{
		Command: "build catalog",
		Parameters: map[string]any{"caches": []string{"native"}, "compression": "gzip", "format": "oci",
			"maxLayers": 100,
			"platforms": []string{"linux/amd64"}, "sourceDateEpoch": 0},
		Dependencies: []Dependency{
			{Name: "server", URI: "pkg:generic/bindery-server@v0.1.0?arch=amd64&os=linux", Digest: sha("6")},
			{Name: "base", URI: "registry.example.com/base/static:v1", Digest: sha("e")},
			{Name: "lock:registry.example.com/acme/tiny-bundle:v0.1.0",
				URI:    "registry.example.com/acme/tiny-bundle:v0.1.0",
				Digest: sha("a")},
			{Name: "source:catalog", Digest: sha("d")},
		},
		Version: "v0.1.0", Go: "go1.26.8", Program: sha("9"), Subject: sha("0"),
	}
}

func TestStatement(t *testing.T) {
	predicate, err := exampleBuild().Predicate()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Statement(sha("0"), "registry.example.com/acme/catalog", PredicateType, predicate)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/statement.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The order of dependencies does not matter, and one that is given twice is listed once.
func TestPredicateIsDeterministic(t *testing.T) {
	want, err := exampleBuild().Predicate()
	if err != nil {
		t.Fatal(err)
	}
	turned := exampleBuild()
	slices.Reverse(turned.Dependencies)
	turned.Dependencies = append(turned.Dependencies, turned.Dependencies[0])
	got, err := turned.Predicate()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(turned.Dependencies) != 5 {
		t.Error("the build was changed")
	}
}

func TestTimes(t *testing.T) {
	b := exampleBuild()
	b.Started = time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	b.Finished = b.Started.Add(time.Minute)
	text, err := b.Predicate()
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		RunDetails struct{ Metadata map[string]string }
	}
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	m := p.RunDetails.Metadata
	if m["startedOn"] != "2026-01-02T02:04:05Z" || m["finishedOn"] != "2026-01-02T02:05:05Z" ||
		m["invocationId"] != "urn:"+sha("0").String() {
		t.Errorf("%v", m)
	}
}

func TestBuildTypes(t *testing.T) {
	for command, want := range map[string]string{"build catalog": "catalog", "index add": "index-add",
		"migrate": "migrate"} {
		if got := buildType(command); got != buildTypes+want+"/v1" {
			t.Errorf("%s: %s", command, got)
		}
	}
}

// The digest of a tree is that of the list that sha256sum prints.
func TestTree(t *testing.T) {
	files := fstest.MapFS{
		"b/c.yaml": {Data: []byte("c")}, "b.yaml": {Data: []byte("b")}, "a": {Data: []byte("a")},
		".git/config": {Data: []byte("x")}, "sub/.git/config": {Data: []byte("x")},
		"link": {Data: []byte("a"), Mode: fs.ModeSymlink | 0o777},
	}
	var list strings.Builder
	for _, name := range []string{"a", "b.yaml", "b/c.yaml"} {
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(files[name].Data), name)
	}
	want := digest.FromString(list.String())
	got, err := Tree(context.Background(), files, nil)
	if err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if same, err := Tree(context.Background(), files, []string{"b/c.yaml", "a", "b.yaml"}); err != nil || same != want {
		t.Errorf("the same files by name: %s, %v", same, err)
	}
	if one, err := Tree(context.Background(), files, []string{"a"}); err != nil || one == want {
		t.Errorf("one file: %s, %v", one, err)
	}
	if none, err := Tree(context.Background(), files, []string{}); err != nil || none != digest.FromString("") {
		t.Errorf("no files: %s, %v", none, err)
	}
}

// Names that would make two trees have one list are refused, and so is what cannot be read.
func TestTreesWithoutADigest(t *testing.T) {
	if _, err := Tree(context.Background(), fstest.MapFS{"a\nb": {}}, nil); err == nil {
		t.Error("a line feed in a name")
	}
	if _, err := Tree(context.Background(), fstest.MapFS{}, []string{"missing"}); err == nil {
		t.Error("a missing file")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Tree(ctx, os.DirFS(dir), nil); err == nil {
		t.Error("a context that has ended")
	}
}
