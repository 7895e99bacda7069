package build

import (
	"debug/elf"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/layers"
)

// opened opens the image in a layout.
func opened(t *testing.T, img *Image) *images.Image {
	t.Helper()
	name := "dir:" + t.TempDir() + "/out"
	push(t, img, name)
	in, err := imagetest.Client(t).Image(t.Context(), name, v1.Platform{OS: "linux", Architecture: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return in
}

// crowd has 30 packages of different sizes, and a blob of no package.
func crowd() fstest.MapFS {
	in := fstest.MapFS{"free.json": file(`{"schema":"example.com/x","name":"y"}`)}
	for i := range 30 {
		name := fmt.Sprintf("op-%02d", i)
		in[name+"/catalog.yaml"] = file(pkg(name) + strings.Repeat("# padding\n", i*10))
	}
	return in
}

func digests(img *Image) map[string]bool {
	out := map[string]bool{}
	for _, l := range img.Layers {
		out[l.Digest.String()] = true
	}
	return out
}

// newIn is the number of layers that only the second image has.
func newIn(before, after map[string]bool) int {
	n := 0
	for l := range after {
		if !before[l] {
			n++
		}
	}
	return n
}

func TestPreviousImageIsKept(t *testing.T) {
	in := crowd()
	o := Options{MaxLayers: 10, Servers: []Server{server(t, "amd64", elf.EM_X86_64)}, Format: FormatOCI}
	before := catalog(t, CatalogInput{FS: in}, o)
	previous := previousOf(opened(t, before))
	if len(previous.Groups) != 9 || previous.Groups[0][0] != "" || len(previous.Groups[0]) != 1 ||
		previous.repository != "" {
		t.Errorf("it tells %q in %q", previous.Groups, previous.repository)
	}
	same := catalog(t, CatalogInput{FS: in}, func() Options { o := o; o.Previous = previous; return o }())
	if same.Digest != before.Digest {
		t.Error("the same catalog with its own previous image is another image")
	}
	// The smallest package becomes the biggest: the rule gives it a separate layer, the previous image keeps it in its
	// group.
	in["op-00/catalog.yaml"] = file(pkg("op-00") + strings.Repeat("# padding\n", 10_000))
	for kept, want := range map[*Previous]int{nil: 2, previous: 1} {
		o := o
		o.Previous = kept
		if n := newIn(digests(before), digests(catalog(t, CatalogInput{FS: in}, o))); n != want {
			t.Errorf("previous %v: %d new layers, want %d", kept != nil, n, want)
		}
	}
}

func TestImageThatTellsNothing(t *testing.T) {
	img := catalog(t, CatalogInput{FS: crowd()}, Options{Format: FormatDocker})
	if p := previousOf(opened(t, img)); len(p.Groups) != 0 || len(p.layers) != 0 {
		t.Errorf("it tells %+v", p)
	}
	if p := previousOf(); len(p.Groups) != 0 || len(p.layers) != 0 {
		t.Errorf("no image tells %+v", p)
	}
}

// Invalid annotations are ignored; the valid ones are used.
func TestHostileAnnotations(t *testing.T) {
	key := digest.FromString("content")
	layer := func(annotations ...string) v1.Descriptor {
		d := v1.Descriptor{MediaType: v1.MediaTypeImageLayerZstd, Digest: digest.FromString(fmt.Sprint(annotations)),
			Size: 7, Annotations: map[string]string{}}
		for i, value := range annotations {
			d.Annotations[[]string{AnnotationKind, AnnotationPackages, AnnotationKey}[i]] = value
		}
		return d
	}
	img := &images.Image{Layers: []v1.Descriptor{
		{MediaType: v1.MediaTypeImageLayerGzip},
		layer("packages", "b,a,../../etc,,.,a\x00b,a,"+strings.Repeat("x", 300), key.String()),
		layer("packages", ".."),
		layer("packages"),
		layer("packages", "c", "sha256:short"),
		layer("packages", "d", "md5:d41d8cd98f00b204e9800998ecf8427e"),
		layer("packages", "e", key.String()), // the first one with a key counts
		layer("server", "f", digest.FromString("server").String()),
		func() v1.Descriptor {
			l := layer("packages", "g", digest.FromString("odd").String())
			l.MediaType = "text/plain"
			return l
		}(),
		layer("", "h", digest.FromString("no kind").String()),
	}}
	for i := range img.Layers {
		img.Config.RootFS.DiffIDs = append(img.Config.RootFS.DiffIDs, digest.FromString(fmt.Sprint(i)))
	}
	p := previousOf(img)
	if got, want := fmt.Sprintf("%q", p.Groups), `[["a" "b"] [""] ["c"] ["d"] ["e"] ["g"]]`; got != want {
		t.Errorf("groups %s, want %s", got, want)
	}
	want := layers.Blob{Digest: img.Layers[1].Digest, DiffID: digest.FromString("1"), Size: 7, Compression: layers.Zstd}
	if len(p.layers) != 2 || p.layers[key] != want ||
		p.layers[digest.FromString("server")].DiffID != digest.FromString("7") {
		t.Errorf("layers %+v", p.layers)
	}
}
