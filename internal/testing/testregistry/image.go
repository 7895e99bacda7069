package testregistry

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Image is a small image that a test builds from files. The names in a layer are relative to the image's root.
type Image struct {
	// Platform is linux/amd64 if empty.
	Platform v1.Platform
	Labels   map[string]string
	// Entrypoint and Cmd are the command of the image.
	Entrypoint, Cmd []string
	Layers          []map[string]string
	// LayerAnnotations are those of the layers' descriptors, as many or none.
	LayerAnnotations []map[string]string
	// Links are symbolic links in a layer above the others, by name.
	Links map[string]string
	// Annotations are those of the manifest.
	Annotations map[string]string
}

// blobs returns the image's manifest and every blob it names.
func (i Image) blobs(t testing.TB) (manifest []byte, blobs [][]byte) {
	t.Helper()
	config := v1.Image{Platform: i.platform(),
		Config: v1.ImageConfig{Labels: i.Labels, Entrypoint: i.Entrypoint, Cmd: i.Cmd}}
	config.RootFS.Type = "layers"
	m := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Annotations: i.Annotations, Layers: []v1.Descriptor{}}
	archives := [][]byte{}
	for _, files := range i.Layers {
		archives = append(archives, archive(t, files))
	}
	if i.Links != nil {
		archives = append(archives, linkArchive(t, i.Links))
	}
	for n, plain := range archives {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(plain); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, digest.FromBytes(plain))
		d := describe(v1.MediaTypeImageLayerGzip, packed.Bytes())
		if n < len(i.LayerAnnotations) {
			d.Annotations = i.LayerAnnotations[n]
		}
		m.Layers = append(m.Layers, d)
		blobs = append(blobs, packed.Bytes())
	}
	text := marshal(t, config)
	m.Config = describe(v1.MediaTypeImageConfig, text)
	return marshal(t, m), append(blobs, text)
}

func (i Image) platform() v1.Platform {
	if i.Platform.OS == "" {
		return v1.Platform{OS: "linux", Architecture: "amd64"}
	}
	return i.Platform
}

// AddIndex stores images for several platforms and their index under REPOSITORY:TAG. more are additional entries of the
// index that are not images.
func (r *Registry) AddIndex(t testing.TB, repository, tag string, annotations map[string]string, of []Image,
	more ...v1.Descriptor) digest.Digest {
	t.Helper()
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex,
		Annotations: annotations}
	for _, i := range of {
		manifest, blobs := i.blobs(t)
		for _, b := range blobs {
			r.AddBlob(b)
		}
		r.AddManifest(repository, "", v1.MediaTypeImageManifest, manifest)
		d, platform := describe(v1.MediaTypeImageManifest, manifest), i.platform()
		d.Platform = &platform
		index.Manifests = append(index.Manifests, d)
	}
	index.Manifests = append(index.Manifests, more...)
	return r.AddManifest(repository, tag, v1.MediaTypeImageIndex, marshal(t, index))
}

func describe(mediaType string, content []byte) v1.Descriptor {
	return v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// archive returns a tar archive of the files and their parent directories, sorted.
func archive(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	made := map[string]bool{".": true}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		var dirs []string
		for d := path.Dir(name); !made[d]; d = path.Dir(d) {
			made[d] = true
			dirs = append(dirs, d)
		}
		slices.Reverse(dirs)
		for _, d := range dirs {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: d + "/", Mode: 0o755}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644,
			Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// linkArchive returns a tar archive of symbolic links.
func linkArchive(t testing.TB, links map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(links)) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: links[name],
			Mode: 0o777}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// AddImage stores an image under REPOSITORY:TAG.
func (r *Registry) AddImage(t testing.TB, repository, tag string, i Image) digest.Digest {
	t.Helper()
	manifest, blobs := i.blobs(t)
	for _, b := range blobs {
		r.AddBlob(b)
	}
	return r.AddManifest(repository, tag, v1.MediaTypeImageManifest, manifest)
}

// WriteLayout creates an OCI layout that holds the image under a tag. The directory must not exist.
func (i Image) WriteLayout(t testing.TB, dir, tag string) digest.Digest {
	t.Helper()
	manifest, blobs := i.blobs(t)
	d := describe(v1.MediaTypeImageManifest, manifest)
	d.Annotations = map[string]string{v1.AnnotationRefName: tag}
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex,
		Manifests: []v1.Descriptor{d}}
	at := filepath.Join(dir, "blobs", "sha256")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		filepath.Join(dir, v1.ImageLayoutFile): marshal(t, v1.ImageLayout{Version: v1.ImageLayoutVersion}),
		filepath.Join(dir, v1.ImageIndexFile):  marshal(t, index),
	}
	for _, b := range append(blobs, manifest) {
		files[filepath.Join(at, digest.FromBytes(b).Encoded())] = b
	}
	for name, content := range files {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return d.Digest
}

// Files reads the regular files below a directory and returns them below prefix, for a layer.
func Files(t testing.TB, dir, prefix string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		files[path.Join(prefix, filepath.ToSlash(rel))] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
