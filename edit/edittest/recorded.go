package edittest

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testbundles"
	"github.com/operator-bindery/bindery/sqlite"
)

// Registry is the prefix of the recorded bundles' image references.
const Registry = "127.0.0.1:5056/"

// Refs expands "REPOSITORY: TAG TAG..." lists.
func Refs(lists ...string) []string {
	var out []string
	for _, l := range lists {
		repository, tags, _ := strings.Cut(l, ":")
		for tag := range strings.FieldsSeq(tags) {
			out = append(out, Registry+repository+":"+tag)
		}
	}
	return out
}

var additions sync.Map

// RecordedAddition reads a recorded bundle.
func RecordedAddition(t testing.TB, image string) edit.Addition {
	t.Helper()
	if a, ok := additions.Load(image); ok {
		return a.(edit.Addition)
	}
	tagged := image
	if strings.Contains(image, "@") {
		tagged = tagOf(t, image)
	}
	repository, tag, _ := strings.Cut(strings.TrimPrefix(tagged, Registry), ":")
	dir := testbundles.Write(t, t.TempDir(), filepath.Base(repository)+"-"+tag)
	b, err := bundle.Read(context.Background(), os.DirFS(dir), bundle.ReadOptions{})
	if err != nil {
		t.Fatalf("%s: %v", image, err)
	}
	a, err := edit.NewAddition(b, image)
	if err != nil {
		t.Fatal(err)
	}
	additions.Store(image, a)
	return a
}

// tagOf finds the tag of a recorded image given by digest.
func tagOf(t testing.TB, image string) string {
	t.Helper()
	_, digest, _ := strings.Cut(image, "@")
	f, err := os.Open(filepath.Join(string(recorded.All(t)), "images-dev.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Split(lines.Text(), "\t"); len(fields) > 1 && fields[1] == digest {
			return fields[0]
		}
	}
	t.Fatalf("no recorded image has the digest %s", digest)
	return ""
}

func DatabaseOf(t testing.TB, from recorded.Collection, name string) *declcfg.Catalog {
	t.Helper()
	db, err := sqlite.Open(context.Background(), from.Database(t, name), sqlite.Options{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c := &declcfg.Catalog{}
	for b, err := range db.Blobs(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		c.Add(b)
	}
	return c
}
