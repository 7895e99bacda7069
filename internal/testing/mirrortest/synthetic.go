package mirrortest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Shape is how large a synthetic source is and what is in it. Images are counted from 0 over all bundles; a zero Every
// is never.
type Shape struct {
	// Packages, and Bundles of each in one channel; one if zero.
	Packages, Bundles int
	// Images are the related images of each bundle beside its own image. The last one of a package's bundles is the
	// same for all of them.
	Images int
	// SharedLayers is how many different layers images share, each image one of them; none if zero.
	SharedLayers int
	// LayerBytes is the size of a layer; 1,000 if zero. LargeBytes is that of every LargeEvery-th image.
	LayerBytes, LargeBytes, LargeEvery int
	// IndexEvery images are for amd64 and arm64, SignedEvery have a signature by tag, and TagEvery are named by tag.
	IndexEvery, SignedEvery, TagEvery int
	// Version is the tag of the catalog, and part of what its last bundles are made of; v1 if empty.
	Version string
}

// Named is an image that a synthetic catalog names.
type Named struct {
	// Ref is what the catalog has.
	Ref             string
	Repository, Tag string
	Digest          digest.Digest
	Package, Bundle string
	// IsBundle tells that it is the image of the bundle.
	IsBundle, Signed bool
}

// Synthetic is a catalog whose images are all in a registry.
type Synthetic struct {
	*testregistry.Registry
	// Catalog is its name at [Host], by tag. Images are in the order of the catalog, each once.
	Catalog string
	Images  []Named
}

// synthesis is the making of one catalog.
type synthesis struct {
	testing.TB
	Shape
	r     *testregistry.Registry
	out   *Synthetic
	count int
}

// Synthesize starts a registry with a catalog of the shape and all images that it names.
func Synthesize(t testing.TB, s Shape) *Synthetic {
	t.Helper()
	r := testregistry.New(t)
	return AddSynthetic(t, r, s)
}

// AddSynthetic adds a catalog of the shape and its images to a registry. Catalogs with the same shape but for the
// version share all images but those of the last bundle of each package.
func AddSynthetic(t testing.TB, r *testregistry.Registry, s Shape) *Synthetic {
	t.Helper()
	s.Packages, s.Bundles, s.LayerBytes = cmp.Or(s.Packages, 1), cmp.Or(s.Bundles, 1), cmp.Or(s.LayerBytes, 1000)
	s.Version = cmp.Or(s.Version, "v1")
	m := &synthesis{TB: t, Shape: s, r: r,
		out: &Synthetic{Registry: r, Catalog: Host + "/synthetic/catalog:" + s.Version}}
	files := map[string]string{}
	for p := range s.Packages {
		name := fmt.Sprintf("op%d", p)
		files["configs/"+name+"/catalog.json"] = m.pkg(name)
	}
	labels := map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"}
	var of []testregistry.Image
	for _, arch := range []string{"amd64", "arm64"} {
		of = append(of, testregistry.Image{Platform: v1.Platform{OS: "linux", Architecture: arch}, Labels: labels,
			Entrypoint: []string{"/bin/opm"}, Cmd: []string{"serve", "/configs"},
			Layers: []map[string]string{{"bin/opm": "the server for " + arch}, files}})
	}
	r.AddIndex(t, "synthetic/catalog", s.Version, nil, of)
	return m.out
}

// pkg makes the images of a package, and returns its part of the catalog.
func (m *synthesis) pkg(name string) string {
	type member = map[string]any
	var b strings.Builder
	add := func(of member) {
		text, err := json.Marshal(of)
		if err != nil {
			m.Fatal(err)
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	add(member{"schema": "olm.package", "name": name, "defaultChannel": "stable"})
	var entries []member
	var shared *Named
	for n := range m.Bundles {
		version := fmt.Sprintf("1.%d.0", n)
		entry := member{"name": name + ".v" + version}
		if n > 0 {
			entry["replaces"] = entries[n-1]["name"]
		}
		entries = append(entries, entry)
		seed := version
		if n == m.Bundles-1 {
			seed += " " + m.Version
		}
		bundle := name + ".v" + version
		own := m.image(Named{Repository: "synthetic/" + name + "-bundle", Package: name, Bundle: bundle,
			IsBundle: true},
			seed)
		related := []member{{"name": "bundle", "image": own.Ref}}
		for i := range m.Images {
			one := shared
			if i < m.Images-1 || shared == nil {
				of := seed
				if i == m.Images-1 {
					of = "shared"
				}
				one = m.image(Named{Repository: fmt.Sprintf("synthetic/%s-image%d", name, i), Package: name,
					Bundle: bundle}, of)
				if i == m.Images-1 {
					shared = one
				}
			} else {
				m.count++
			}
			related = append(related, member{"name": fmt.Sprint("image", i), "image": one.Ref})
		}
		add(member{"schema": "olm.bundle", "name": bundle, "package": name, "image": own.Ref, "relatedImages": related,
			"properties": []member{{"type": "olm.package", "value": member{"packageName": name, "version": version}}}})
	}
	add(member{"schema": "olm.channel", "name": "stable", "package": name, "entries": entries})
	return b.String()
}

func every(count, n int) bool { return n > 0 && count%n == n-1 }

// image makes one image, and notes it. What it consists of depends on its repository and the seed.
func (m *synthesis) image(n Named, seed string) *Named {
	count := m.count
	m.count++
	if every(count, m.TagEvery) {
		n.Tag = strings.ReplaceAll("t"+seed, " ", "-")
	}
	seed = n.Repository + " " + seed
	if every(count, m.IndexEvery) {
		index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}
		for _, arch := range []string{"amd64", "arm64"} {
			d := m.manifest(n.Repository, "", seed, arch, count)
			d.Platform = &v1.Platform{OS: "linux", Architecture: arch}
			index.Manifests = append(index.Manifests, d)
		}
		n.Digest = m.r.AddManifest(n.Repository, n.Tag, index.MediaType, m.json(index))
	} else {
		n.Digest = m.manifest(n.Repository, n.Tag, seed, "amd64", count).Digest
	}
	if n.Signed = every(count, m.SignedEvery); n.Signed {
		m.sign(n)
	}
	n.Ref = Host + "/" + n.Repository + "@" + n.Digest.String()
	if n.Tag != "" {
		n.Ref = Host + "/" + n.Repository + ":" + n.Tag
	}
	m.out.Images = append(m.out.Images, n)
	return &n
}

// manifest makes the image of one platform.
func (m *synthesis) manifest(repository, tag, seed, arch string, count int) v1.Descriptor {
	size := m.LayerBytes
	if every(count, m.LargeEvery) {
		size = m.LargeBytes
	}
	layers := []v1.Descriptor{m.blob(v1.MediaTypeImageLayerGzip, noise(seed+arch, size))}
	if m.SharedLayers > 0 {
		of := fmt.Sprint("shared ", count%m.SharedLayers)
		layers = append(layers, m.blob(v1.MediaTypeImageLayerGzip, noise(of, m.LayerBytes)))
	}
	return m.simple(repository, tag, arch, layers)
}

func (m *synthesis) simple(repository, tag, arch string, layers []v1.Descriptor) v1.Descriptor {
	config := v1.Image{Platform: v1.Platform{OS: "linux", Architecture: arch}}
	config.RootFS.Type = "layers"
	for _, l := range layers {
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, l.Digest)
	}
	image := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: m.blob(v1.MediaTypeImageConfig, m.json(config)), Layers: layers}
	text := m.json(image)
	return v1.Descriptor{MediaType: image.MediaType, Size: int64(len(text)),
		Digest: m.r.AddManifest(repository, tag, image.MediaType, text)}
}

// sign adds what looks like a signature of cosign by tag.
func (m *synthesis) sign(n Named) {
	text := fmt.Sprintf(`{"critical":{"image":{"docker-manifest-digest":%q}}}`, n.Digest)
	layer := m.blob("application/vnd.dev.cosign.simplesigning.v1+json", []byte(text))
	layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": "bm90aGluZw=="}
	m.simple(n.Repository, "sha256-"+n.Digest.Encoded()+".sig", "", []v1.Descriptor{layer})
}

func (m *synthesis) blob(mediaType string, content []byte) v1.Descriptor {
	return v1.Descriptor{MediaType: mediaType, Digest: m.r.AddBlob(content), Size: int64(len(content))}
}

func (m *synthesis) json(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		m.Fatal(err)
	}
	return text
}

// noise returns so many bytes that compress badly and depend on the seed alone.
func noise(seed string, size int) []byte {
	sum := digest.FromString(seed).Encoded()
	out := make([]byte, size)
	var key [32]byte
	copy(key[:], sum)
	if _, err := rand.NewChaCha8(key).Read(out); err != nil {
		panic(err)
	}
	return out
}
