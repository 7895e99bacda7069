package sizes

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store/storetest"
)

// add adds a manifest to a place, and returns its descriptor.
func add(t *testing.T, place *storetest.Memory, mediaType string, of any) v1.Descriptor {
	t.Helper()
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}
	place.Manifests[d.Digest.String()] = text
	return d
}

// index adds an index of two images that share a layer.
func index(t *testing.T, place *storetest.Memory) (top v1.Descriptor) {
	t.Helper()
	blob := func(name string, size int64) v1.Descriptor {
		return v1.Descriptor{MediaType: v1.MediaTypeImageLayerGzip, Digest: digest.FromString(name), Size: size}
	}
	all := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}
	for _, arch := range []string{"amd64", "arm64"} {
		config := blob("config "+arch, 10)
		config.MediaType = v1.MediaTypeImageConfig
		d := add(t, place, v1.MediaTypeImageManifest, v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2},
			MediaType: v1.MediaTypeImageManifest, Config: config,
			Layers: []v1.Descriptor{blob("shared", 1000), blob(arch, 200)}})
		d.Platform = &v1.Platform{OS: "linux", Architecture: arch}
		all.Manifests = append(all.Manifests, d)
	}
	return add(t, place, v1.MediaTypeImageIndex, all)
}

// A layer that both images of an index have counts once, and what no requested platform has does not count.
func TestMeasure(t *testing.T) {
	place := storetest.NewMemory()
	top := index(t, place)
	whole, err := Measure(t.Context(), place, top, nil)
	if err != nil {
		t.Fatal(err)
	}
	texts := int64(0)
	for _, text := range place.Manifests {
		texts += int64(len(text))
	}
	if got, want := whole.Sum(), texts+1000+2*200+2*10; got != want || len(whole.Instances) != 2 ||
		whole.Top.Digest != top.Digest {
		t.Errorf("%d bytes, expected %d; %+v", got, want, whole)
	}
	part, err := Measure(t.Context(), place, top, []v1.Platform{{OS: "linux", Architecture: "arm64"}})
	if err != nil || len(part.Instances) != 1 || part.Blobs[digest.FromString("arm64")] != 200 ||
		part.Blobs[digest.FromString("amd64")] != 0 {
		t.Errorf("%+v, %v", part, err)
	}
	if _, err := Measure(t.Context(), place, v1.Descriptor{Digest: digest.FromString("none")}, nil); err == nil {
		t.Error("no error for an image that is not there")
	}

	var total Total
	total.Add("a", part.Blobs)
	total.Add("b", whole.Blobs)
	total.Add("b", whole.Blobs)
	of := total.ByRepository()
	if !maps.Equal(of, map[string]int64{"a": part.Sum(), "b": whole.Sum() - part.Sum()}) ||
		total.Blobs() != len(whole.Blobs) {
		t.Errorf("%v of %d blobs", of, total.Blobs())
	}
}

// What is measured is what is copied: of several variants the one that is requested, and what describes it.
func TestMeasureWhatIsCopied(t *testing.T) {
	place := storetest.NewMemory()
	all := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}
	image := func(name string, p v1.Platform, describes digest.Digest) v1.Descriptor {
		config := v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: digest.FromString(name), Size: 10}
		d := add(t, place, v1.MediaTypeImageManifest, v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2},
			MediaType: v1.MediaTypeImageManifest, Config: config, Layers: []v1.Descriptor{}})
		d.Platform = &p
		if describes != "" {
			d.Annotations = map[string]string{"vnd.docker.reference.digest": describes.String()}
		}
		all.Manifests = append(all.Manifests, d)
		return d
	}
	v7 := v1.Platform{OS: "linux", Architecture: "arm", Variant: "v7"}
	none := v1.Platform{OS: "unknown", Architecture: "unknown"}
	older := image("v6", v1.Platform{OS: "linux", Architecture: "arm", Variant: "v6"}, "")
	newer := image("v7", v7, "")
	image("attestation of v6", none, older.Digest)
	attestation := image("attestation of v7", none, newer.Digest)
	top := add(t, place, v1.MediaTypeImageIndex, all)

	got, err := Measure(t.Context(), place, top, []v1.Platform{v7})
	if err != nil {
		t.Fatal(err)
	}
	if want := newer.Size + attestation.Size + top.Size + 2*10; got.Sum() != want || len(got.Instances) != 2 {
		t.Errorf("%d bytes, expected %d: %+v", got.Sum(), want, got)
	}
}
