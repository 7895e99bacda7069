package build

import (
	"debug/elf"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/layers"
)

func twoServers(t testing.TB) []Server {
	t.Helper()
	return []Server{server(t, "amd64", elf.EM_X86_64), server(t, "arm64", elf.EM_AARCH64)}
}

// The index has the images of both compressions, gzip first: clients that know the annotation use zstd, others use the
// first one.
func TestBothCompressions(t *testing.T) {
	c, err := declcfg.Load(t.Context(), sampleFS(), declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	both := catalog(t, CatalogInput{Blobs: c.Blobs()},
		Options{Compression: CompressionAuto, Servers: twoServers(t), Annotations: map[string]string{"a": "b"}})
	var want []PlatformImage
	for _, compression := range []layers.Compression{layers.Gzip, layers.Zstd} {
		one := catalog(t, CatalogInput{Blobs: c.Blobs()},
			Options{Compression: compression, Servers: twoServers(t), Annotations: map[string]string{"a": "b"}})
		for _, p := range one.Platforms {
			p.Compression = string(compression)
			want = append(want, p)
		}
	}
	if len(both.Platforms) != 4 || both.MediaType != v1.MediaTypeImageIndex {
		t.Fatalf("%s of %d images", both.MediaType, len(both.Platforms))
	}
	for n, p := range both.Platforms {
		if w := want[n]; p.Digest != w.Digest || p.Config != w.Config || p.Compression != w.Compression ||
			p.Platform.Architecture != w.Platform.Architecture {
			t.Errorf("image %d is %+v, want %+v", n, p, w)
		}
	}
	if both.Totals.Packages != 4 || both.Totals.Layers != 14 {
		t.Errorf("totals %+v", both.Totals)
	}
	list, err := manifest.ListFromBlob(both.Manifest(), both.MediaType)
	if err != nil {
		t.Fatal(err)
	}
	for n, arch := range []string{"amd64", "arm64"} {
		chosen, err := list.ChooseInstance(&types.SystemContext{OSChoice: "linux", ArchitectureChoice: arch})
		if err != nil || chosen != want[n+2].Digest {
			t.Errorf("%s: the containers library chooses %s, want the image with zstd: %v", arch, chosen, err)
		}
	}
	dir := t.TempDir()
	for _, dest := range []string{"oci:" + dir + "/layout:v1", "oci-archive:" + dir + "/archive:v1",
		"dir:" + dir + "/dir"} {
		if r := push(t, both, dest); r[0].Digest != both.Digest {
			t.Errorf("%s has %s", dest, r[0].Digest)
		}
		opened, err := imagetest.Client(t).Image(t.Context(), dest, v1.Platform{OS: "linux", Architecture: "arm64"})
		if err != nil {
			t.Fatal(err)
		}
		if opened.Digest != want[1].Digest {
			t.Errorf("%s: %s was opened, want the first image for the platform", dest, opened.Digest)
		}
		opened.Close()
	}
}

func TestDockerImagesHaveOneCompression(t *testing.T) {
	for _, o := range []Options{{Compression: CompressionAuto, Format: FormatDocker}} {
		o.Dir = t.TempDir()
		if _, err := Catalog(t.Context(), CatalogInput{FS: sampleFS()}, o); err == nil || !strings.Contains(err.Error(),
			"gzip only") {
			t.Errorf("got %v", err)
		}
	}
}

// From a base with both compressions the one is used that every reader of the new image supports. Each platform has its
// own base.
func TestBaseOfBothCompressions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "base")
	base := catalog(t, CatalogInput{FS: sampleFS()}, Options{Compression: CompressionAuto, Servers: twoServers(t)})
	push(t, base, "oci:"+dir+":v1")
	from, err := NamedBase(imagetest.Client(t), "oci:"+dir+":v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		format      Format
		compression layers.Compression
		want        string
	}{
		{FormatOCI, layers.Gzip, v1.MediaTypeImageLayerGzip},
		{FormatOCI, layers.Zstd, v1.MediaTypeImageLayerZstd},
		{FormatDocker, layers.Gzip, manifest.DockerV2Schema2LayerMediaType},
		{FormatOCI, CompressionAuto, v1.MediaTypeImageLayerGzip},
	} {
		o := Options{Base: from, Format: c.format, Compression: c.compression, useBaseServer: true,
			severalPlatforms: []v1.Platform{
				{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"},
			}}
		o.serverOf = func(p v1.Platform) (Server, error) { return Server{}, nil }
		img := catalog(t, CatalogInput{FS: sampleFS()}, o)
		var bottoms []string
		for _, p := range img.Platforms {
			var m v1.Manifest
			if err := json.Unmarshal(img.manifests[p.Digest], &m); err != nil {
				t.Fatal(err)
			}
			if m.Layers[0].MediaType != c.want {
				t.Errorf("%s %s: the base's layers are %s", c.format, c.compression, m.Layers[0].MediaType)
			}
			bottoms = append(bottoms, p.Platform.Architecture+" "+string(m.Layers[0].Digest))
		}
		for n, arch := range []string{"amd64", "arm64"} {
			at := n
			if c.compression == layers.Zstd {
				at += 2
			}
			var m v1.Manifest
			if err := json.Unmarshal(base.manifests[base.Platforms[at].Digest], &m); err != nil {
				t.Fatal(err)
			}
			if want := arch + " " + string(m.Layers[0].Digest); !slices.Contains(bottoms, want) {
				t.Errorf("%s %s: the lowest layers are %v, want %s", c.format, c.compression, bottoms, want)
			}
		}
		if c.format == FormatOCI {
			out := filepath.Join(t.TempDir(), "out")
			push(t, img, "oci:"+out)
			if _, err := os.Stat(filepath.Join(out, "index.json")); err != nil {
				t.Error(err)
			}
		}
	}
}

// A cache is built from the files in the order of the image, whatever their order in the input.
func TestCacheDoesNotDependOnThePlacesOfFiles(t *testing.T) {
	in := sampleFS()
	in["a-first.yaml"] = file("---\nschema: custom\npackage: foo\nname: one\n")
	in["foo/z-last.yaml"] = file("---\nschema: custom\npackage: foo\nname: two\n")
	var sources []string
	cache := func(p cataloglayer.Package) (cataloglayer.File, error) {
		if p.Name == "foo" {
			for _, s := range p.Sources {
				sources = append(sources, s.Name)
			}
		}
		return cataloglayer.File{Name: "_" + p.Name, Content: []byte{}}, nil
	}
	catalog(t, CatalogInput{FS: in}, Options{caches: cataloglayer.Caches{Native: cache}, Jobs: 1})
	if want := []string{"foo/a-first.yaml", "foo/catalog.yaml", "foo/misc/extra.json",
		"foo/z-last.yaml"}; !slices.Equal(sources, want) {
		t.Errorf("the order is %q, want %q", sources, want)
	}
}

// If both images were built before, nothing is written again and they are equal.
func TestBothCompressionsAreRemembered(t *testing.T) {
	dir := t.TempDir()
	known := knownIn(t, dir)
	o := Options{Compression: CompressionAuto, Servers: twoServers(t), Cache: known}
	o.Dir = t.TempDir()
	cold, err := Catalog(t.Context(), CatalogInput{FS: sampleFS()}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer cold.Close()
	o.Dir = t.TempDir()
	warm, err := Catalog(t.Context(), CatalogInput{FS: sampleFS()}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer warm.Close()
	if warm.Digest != cold.Digest {
		t.Errorf("%s, and %s before", warm.Digest, cold.Digest)
	}
	for _, l := range warm.Layers {
		if !l.Remembered {
			t.Errorf("layer %s %q was made again", l.Digest, l.Packages)
		}
	}
	if r := push(t, warm, "oci:"+filepath.Join(dir, "out")+":v1"); r[0].Digest != cold.Digest {
		t.Errorf("wrote %s", r[0].Digest)
	}
}
