package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
)

// manifestCatalog has a bundle with every combination of manifests, and exceeds the memory of a spill.
func manifestCatalog(t *testing.T) *declcfg.Catalog {
	t.Helper()
	c := &declcfg.Catalog{Packages: []declcfg.Package{{Name: "p", DefaultChannel: "c", Description: "text"}}}
	channel := declcfg.Channel{Name: "c", Package: "p"}
	filler := strings.Repeat("x", 300<<10)
	csv := declcfg.NewBundleObject(
		[]byte(`{"kind":"ClusterServiceVersion","metadata":{"annotations":{"olm.substitutesFor":"p.v0"}},"x":"` +
			filler + `"}`))
	other := declcfg.NewBundleObject([]byte("kind: ConfigMap\ndata: {x: " + filler + "}\n"))
	metadata := declcfg.Property{Type: declcfg.PropertyCSVMetadata, Value: json.RawMessage(`{"displayName":"P"}`)}
	for i, properties := range [][]declcfg.Property{{csv}, {csv, other}, {other, csv}, {other}, {other, metadata},
		{csv, metadata}, {metadata}, {}} {
		version := fmt.Sprintf("0.0.%d", i)
		if i == 2 {
			version += "+build"
		}
		name := fmt.Sprintf("p.v%d", i)
		entry := declcfg.ChannelEntry{Name: name}
		if i > 0 {
			entry.Replaces = fmt.Sprintf("p.v%d", i-1)
		}
		channel.Entries = append(channel.Entries, entry)
		p, err := declcfg.NewProperty(declcfg.PropertyPackage, property.Package{PackageName: "p", Version: version})
		if err != nil {
			t.Fatal(err)
		}
		c.Bundles = append(c.Bundles,
			declcfg.Bundle{Name: name, Package: "p", Image: "example.test/p:" + name, Properties: append(properties, p),
				HasObjects: i < 6})
	}
	c.Channels = append(c.Channels, channel)
	return c
}

// A cache built with spilled manifests has the same bytes as one encoded at once, with and without a directory for
// temporary files.
func TestSpilledManifestsMakeTheSameCache(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("another variable names the directory for temporary files")
	}
	catalog := manifestCatalog(t)
	var text bytes.Buffer
	if err := declcfg.FormatJSON.Write(&text, catalog.Blobs()); err != nil {
		t.Fatal(err)
	}
	dir, gone := t.TempDir(), filepath.Join(t.TempDir(), "gone")
	writeTree(t, dir, map[string]string{"p/catalog.json": text.String()})
	whole, err := declcfg.Load(t.Context(), os.DirFS(dir), declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tmp := range []string{t.TempDir(), gone} {
		t.Setenv("TMPDIR", tmp)
		cache := t.TempDir()
		got, err := load(t, dir, LoadOptions{CacheDir: cache})
		if err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(got.log, "no temporary file"); told != (tmp == gone) {
			t.Errorf("log: %s", got.log)
		}
		file, err := os.ReadFile(filepath.Join(cache, CacheFileName("p")))
		if err != nil {
			t.Fatal(err)
		}
		p, err := OpenPackage(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		want, err := EncodePackage(whole, nil, p.Sources()...)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(file, want) {
			t.Error("the cache differs from that of the catalog as a whole")
		}
		sameRecords(t, whole, catalog)
	}
}

// sameRecords compares a store built from a stream of blobs with one encoded at once.
func sameRecords(t *testing.T, whole, moving *declcfg.Catalog) {
	t.Helper()
	store, err := Load(t.Context(), Blobs("blobs", moving.Blobs()), LoadOptions{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if objects, err := moving.Bundles[0].Objects(); err != nil || len(objects) != 1 || len(objects[0]) < 300<<10 {
		t.Errorf("the load has changed blobs that it was lent: %d objects, %v", len(objects), err)
	}
	file, err := EncodePackage(whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := OpenPackage(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	got := store.Packages()[0]
	read := func(p *Package) (all []byte) {
		for rec := range p.records() {
			buf := make([]byte, rec.length)
			if err := p.read(buf, rec); err != nil {
				t.Fatal(err)
			}
			all = append(all, buf...)
		}
		return all
	}
	if !bytes.Equal(read(got), read(want)) {
		t.Error("the answers of blobs in motion differ from those of the catalog as a whole")
	}
}
