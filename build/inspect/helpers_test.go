package inspect_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/inspect"
	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/images/library"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
)

// pkg returns the catalog of a small package as YAML.
func pkg(name string) string {
	return fmt.Sprintf(`---
schema: olm.package
name: %[1]s
defaultChannel: stable
---
schema: olm.channel
package: %[1]s
name: stable
entries:
- name: %[1]s.v1.0.0
---
schema: olm.bundle
package: %[1]s
name: %[1]s.v1.0.0
image: registry.example.com/%[1]s@sha256:%[2]s
properties:
- type: olm.package
  value:
    packageName: %[1]s
    version: 1.0.0
`, name, strings.Repeat("a", 64))
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o640} }

// sample is a catalog with a package in a directory, a package in a file at the root, two packages in one file, and
// blobs without a package.
func sample() fstest.MapFS {
	return fstest.MapFS{
		"foo/catalog.yaml": file(pkg("foo")),
		"bar.yaml":         file(pkg("bar")),
		"teams/both.yaml":  file(pkg("one") + pkg("two") + "---\nschema: example.com/none\nname: free\n"),
		"misc/extra.json":  file(`{"schema":"example.com/x","package":"foo","name":"y"}`),
	}
}

// server returns a file with the ELF header of a server and nothing else.
func server(t testing.TB, arch string, m elf.Machine) build.Server {
	t.Helper()
	b := make([]byte, 64)
	copy(b, "\x7fELF\x02\x01\x01")
	b[16], b[18], b[19], b[20] = byte(elf.ET_EXEC), byte(m), byte(m>>8), 1
	b[52], b[54], b[58] = 64, 56, 64
	path := filepath.Join(t.TempDir(), "opm")
	if err := os.WriteFile(path, append(b, "server for "+arch...), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := build.ServerFile(path, v1.Platform{OS: "linux", Architecture: arch})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// cached are options with serve caches.
func cached(o build.Options, kinds ...build.ServeCache) build.Options {
	if err := o.SetServeCaches(kinds...); err != nil {
		panic(err)
	}
	return o
}

// write builds a catalog image and writes it to dest.
func write(t testing.TB, in fs.FS, o build.Options, dest string) {
	t.Helper()
	o.Dir = t.TempDir()
	img, err := build.Catalog(t.Context(), build.CatalogInput{FS: in}, o)
	if err != nil {
		t.Fatal(err)
	}
	carry(t, img, dest)
}

func carry(t testing.TB, img *build.Image, dest string) {
	t.Helper()
	defer img.Close()
	d, err := images.BuiltIn().Parse(dest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := images.Copy(t.Context(), img.Store(), img.Top(), []transport.Destination{d},
		images.CopyOptions{Options: registries.Options{Temp: t.TempDir()}, Transports: library.Transports(images.BuiltIn())}); err != nil {
		t.Fatal(err)
	}
}

// survey opens an image.
func survey(t testing.TB, name string) *images.Survey {
	t.Helper()
	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read, Options: registries.Options{Temp: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	s, err := imagetest.Survey(t, client, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func examine(t testing.TB, name string) *inspect.Report {
	t.Helper()
	r, err := inspect.Examine(t.Context(), survey(t, name), inspect.Options{Temp: t.TempDir(), Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// forgery is an image of one platform, decoded so that tests can change it and write it with matching digests.
type forgery struct {
	t        testing.TB
	manifest v1.Manifest
	config   v1.Image
	layers   []forgedLayer
}

type forgedLayer struct {
	entries     []forgedEntry
	annotations map[string]string
}

type forgedEntry struct {
	tar.Header
	content []byte
}

// takeApart decodes an image with gzip layers from an OCI layout with one manifest.
func takeApart(t testing.TB, layout string) *forgery {
	t.Helper()
	f := &forgery{t: t}
	blob := func(d digest.Digest) []byte {
		text, err := os.ReadFile(filepath.Join(layout, "blobs", "sha256", d.Encoded()))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var index v1.Index
	text, err := os.ReadFile(filepath.Join(layout, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		text func() []byte
		into any
	}{
		{func() []byte { return text }, &index},
		{func() []byte { return blob(index.Manifests[0].Digest) }, &f.manifest},
		{func() []byte { return blob(f.manifest.Config.Digest) }, &f.config},
	} {
		if err := json.Unmarshal(part.text(), part.into); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range f.manifest.Layers {
		z, err := gzip.NewReader(bytes.NewReader(blob(l.Digest)))
		if err != nil {
			t.Fatal(err)
		}
		layer := forgedLayer{annotations: l.Annotations}
		for tr := tar.NewReader(z); ; {
			h, err := tr.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(tr)
			if err != nil {
				t.Fatal(err)
			}
			layer.entries = append(layer.entries, forgedEntry{*h, content})
		}
		f.layers = append(f.layers, layer)
	}
	return f
}

// entry finds an entry and its layer.
func (f *forgery) entry(name string) (*forgedLayer, *forgedEntry) {
	f.t.Helper()
	for n := range f.layers {
		for m := range f.layers[n].entries {
			if e := &f.layers[n].entries[m]; e.Name == name {
				return &f.layers[n], e
			}
		}
	}
	f.t.Fatalf("no entry %q", name)
	return nil, nil
}

// remove deletes an entry from its layer.
func (f *forgery) remove(name string) {
	f.t.Helper()
	l, _ := f.entry(name)
	l.entries = slices.DeleteFunc(l.entries, func(e forgedEntry) bool { return e.Name == name })
}

// onTop adds a layer, as another tool would.
func (f *forgery) onTop(entries ...forgedEntry) {
	f.layers = append(f.layers, forgedLayer{entries: entries})
	f.config.History = append(f.config.History, v1.History{CreatedBy: "another tool"})
}

func regular(name, content string) forgedEntry {
	return forgedEntry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}, []byte(content)}
}

// layout writes the image to a new OCI layout with digests that match the changed content. If entry is not nil, it is
// put into an index with that entry.
func (f *forgery) layout(entry *v1.Descriptor) string {
	f.t.Helper()
	dir := f.t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		f.t.Fatal(err)
	}
	put := func(text []byte) v1.Descriptor {
		d := digest.FromBytes(text)
		if err := os.WriteFile(filepath.Join(dir, "blobs", "sha256", d.Encoded()), text, 0o644); err != nil {
			f.t.Fatal(err)
		}
		return v1.Descriptor{Digest: d, Size: int64(len(text))}
	}
	object := func(v any, mediaType string) v1.Descriptor {
		text, err := json.Marshal(v)
		if err != nil {
			f.t.Fatal(err)
		}
		d := put(text)
		d.MediaType = mediaType
		return d
	}
	m, config := f.manifest, f.config
	m.Layers, config.RootFS.DiffIDs = nil, nil
	for _, l := range f.layers {
		var plain, packed bytes.Buffer
		w := tar.NewWriter(&plain)
		for _, e := range l.entries {
			h := e.Header
			h.Size, h.Format = int64(len(e.content)), tar.FormatUnknown
			if err := w.WriteHeader(&h); err != nil {
				f.t.Fatal(err)
			}
			if _, err := w.Write(e.content); err != nil {
				f.t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			f.t.Fatal(err)
		}
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(plain.Bytes()); err != nil {
			f.t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			f.t.Fatal(err)
		}
		d := put(packed.Bytes())
		d.MediaType, d.Annotations = v1.MediaTypeImageLayerGzip, l.annotations
		m.Layers = append(m.Layers, d)
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, digest.FromBytes(plain.Bytes()))
	}
	m.Config = object(config, v1.MediaTypeImageConfig)
	top := object(m, v1.MediaTypeImageManifest)
	if entry != nil {
		of := *entry
		of.MediaType, of.Digest, of.Size = top.MediaType, top.Digest, top.Size
		top = object(v1.Index{Versioned: m.Versioned, MediaType: v1.MediaTypeImageIndex,
			Manifests: []v1.Descriptor{of}}, v1.MediaTypeImageIndex)
	}
	top.Annotations = map[string]string{v1.AnnotationRefName: "v1"}
	text, err := json.Marshal(v1.Index{Versioned: m.Versioned, MediaType: v1.MediaTypeImageIndex,
		Manifests: []v1.Descriptor{top}})
	if err != nil {
		f.t.Fatal(err)
	}
	for name, text := range map[string]string{"index.json": string(text),
		"oci-layout": `{"imageLayoutVersion":"1.0.0"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			f.t.Fatal(err)
		}
	}
	return "oci:" + dir + ":v1"
}

// annotationsOf returns the annotations of a bundle.
func annotationsOf(t testing.TB, in build.BundleInput) map[string]string {
	t.Helper()
	b, err := bundle.Read(t.Context(), in.FS, bundle.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return b.Annotations
}
