package declcfg_test

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
)

// The positions that a load reports for documents delimit the texts of its blobs: parsing each text alone gives the
// blob.
func TestDocumentsOfALoad(t *testing.T) {
	fsys, err := declcfg.OpenDir("../testdata/fbc/mini")
	if err != nil {
		t.Fatal(err)
	}
	type document struct {
		declcfg.Document
		schema, pkg, name string
	}
	var mu sync.Mutex
	files := map[string][]document{}
	if _, err := declcfg.Load(context.Background(), fsys,
		declcfg.LoadOptions{Skeleton: true, Document: func(b declcfg.Blob, d declcfg.Document) {
			mu.Lock()
			defer mu.Unlock()
			files[d.File] = append(files[d.File], document{d, b.BlobSchema(), b.BlobPackage(), b.BlobName()})
		}}); err != nil {
		t.Fatal(err)
	}
	for name, documents := range files {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range documents {
			c, err := declcfg.Read(context.Background(), strings.NewReader(string(data[d.Start:d.End])), name,
				declcfg.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for b := range c.Blobs() {
				if b.BlobSchema() != d.schema || b.BlobPackage() != d.pkg || b.BlobName() != d.name {
					t.Errorf("%s: read %s %s", d, b.BlobSchema(), b.BlobName())
				}
				documents = documents[1:]
			}
		}
		if len(documents) != 0 {
			t.Errorf("%s: %d documents hold no blob", name, len(documents))
		}
	}
	if len(files) < 5 {
		t.Errorf("told of %d files", len(files))
	}
}

// A skeleton load keeps everything of the packages that are requested completely, even if they share a file with
// others.
func TestWholePackagesOfASkeletonLoad(t *testing.T) {
	const text = `---
schema: olm.bundle
name: NAME.v1
package: NAME
image: reg.example/NAME:1
extra: 1
properties:
- type: olm.package
  value: {packageName: NAME, version: 1.0.0}
- type: olm.bundle.object
  value: {data: e30=}
---
schema: other
package: NAME
`
	fsys := fstest.MapFS{
		"catalog.yaml":   {Data: []byte(strings.ReplaceAll(text, "NAME", "a") + strings.ReplaceAll(text, "NAME", "b"))},
		"b/catalog.yaml": {Data: []byte(strings.ReplaceAll(strings.ReplaceAll(text, "NAME", "b"), "b.v1", "b.v2"))},
	}
	c, err := declcfg.Load(context.Background(), fsys,
		declcfg.LoadOptions{Skeleton: true, Whole: func(pkg string) bool { return pkg == "b" }})
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{Skeleton: true, Unknown: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range unknown.Bundles {
		if b := &unknown.Bundles[i]; !b.Reduced() || len(b.Unknown) != 1 || string(b.Unknown[0].Value) != "1" {
			t.Errorf("%s: unknown fields %v", b.Name, b.Unknown)
		}
	}
	if len(unknown.Others) != 3 || string(unknown.Others[1].Blob) != `{"package":"a","schema":"other"}` {
		t.Errorf("unknown schemas: %+v", unknown.Others)
	}
	for i := range c.Bundles {
		b := &c.Bundles[i]
		objects, err := b.Objects()
		if whole := b.Package == "b"; b.Reduced() == whole || (len(b.Unknown) == 1) != whole ||
			whole && (err != nil || len(objects) != 1) || !b.HasObjects {
			t.Errorf("%s: %d objects, %v", b.Name, len(objects), err)
		}
	}
	whole := slices.DeleteFunc(c.Others, func(m declcfg.Meta) bool { return m.Blob == nil })
	if len(c.Bundles) != 3 || len(whole) != 2 || whole[0].Package != "b" {
		t.Errorf("%d bundles, %d others", len(c.Bundles), len(whole))
	}
}
