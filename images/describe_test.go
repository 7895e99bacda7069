package images_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/lockfile"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

func plainClient(t *testing.T, o images.ClientOptions) *images.Client {
	t.Helper()
	skip := true
	o.Registry = registries.Config{SkipTLSVerify: &skip, PlainHTTP: true}
	o.Policy = policy.Read
	c, err := images.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func forArch(arch string) testregistry.Image {
	return testregistry.Image{
		Platform: v1.Platform{OS: "linux", Architecture: arch}, Labels: map[string]string{"arch": arch},
		Annotations: map[string]string{"of": arch}, Layers: []map[string]string{{"a": "a"}},
	}
}

func TestDescribe(t *testing.T) {
	reg := testregistry.New(t)
	attestation := v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromString("x"), Size: 1,
		Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"}}
	artifact := v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromString("y"), Size: 1,
		ArtifactType: "application/x"}
	top := reg.AddIndex(t, "acme/index", "v1", map[string]string{"index": "yes"},
		[]testregistry.Image{forArch("s390x"), forArch("arm64"), forArch("s390x")}, attestation, artifact)
	single := reg.AddImage(t, "acme/one", "v1", forArch("ppc64le"))
	c := plainClient(t, images.ClientOptions{})

	d, err := c.Describe(t.Context(), reg.Host()+"/acme/index:v1")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range d.Variants {
		got = append(got,
			fmt.Sprint(v.Platform.OS, "/", v.Platform.Architecture, " ", v.Config.Config.Labels, v.Annotations))
	}
	if want := "linux/s390x map[arch:s390x] map[of:s390x], linux/arm64 map[arch:arm64] map[of:arm64]"; strings.Join(got,
		", ") != want || d.Top != top || !d.Index || d.Annotations["index"] != "yes" {
		t.Errorf("got %q %+v", got, d)
	}
	d, err = c.Describe(t.Context(), reg.Host()+"/acme/one:v1")
	if err != nil || d.Index || d.Top != single || len(d.Variants) != 1 ||
		d.Variants[0].Platform.Architecture != "ppc64le" || d.Variants[0].Digest != single {
		t.Errorf("one image: %+v (%v)", d, err)
	}
	if _, err := c.Describe(t.Context(), reg.Host()+"/acme/none:v1"); err == nil {
		t.Error("an image that is not there has a description")
	}
	// A name that is not opened for a platform is opened for any where that will do.
	name := reg.Host() + "/acme/index:v1"
	if _, err := c.Image(t.Context(), name, v1.Platform{}); !errors.Is(err, images.ErrInvalid) {
		t.Errorf("there is none for linux/amd64: %v", err)
	}
	img, err := plainClient(t, images.ClientOptions{AnyPlatform: true}).Image(t.Context(), name, v1.Platform{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	if img.Config.Architecture != "s390x" || img.Annotations["of"] != "s390x" {
		t.Errorf("opened %+v", img)
	}
}

// An image without a variant is for that which its architecture has by default; a message names the variants.
func TestImageOfAVariant(t *testing.T) {
	reg := testregistry.New(t)
	v6 := forArch("arm")
	v6.Platform.Variant = "v6"
	reg.AddIndex(t, "acme/index", "v1", nil, []testregistry.Image{forArch("arm64"), v6})
	v8 := forArch("arm64")
	v8.Platform.Variant = "v8"
	reg.AddIndex(t, "acme/index", "both", nil, []testregistry.Image{forArch("arm64"), v8})
	c, name := plainClient(t, images.ClientOptions{}), reg.Host()+"/acme/index:v1"
	for _, p := range []v1.Platform{{OS: "linux", Architecture: "arm64", Variant: "v8"},
		{OS: "linux", Architecture: "arm"}, {OS: "linux", Architecture: "arm", Variant: "v6"}} {
		img, err := c.Image(t.Context(), name, p)
		if err != nil {
			t.Error(err)
			continue
		}
		if err := img.Close(); err != nil || img.Config.Architecture != p.Architecture {
			t.Errorf("%+v: %s, %v", p, img.Config.Architecture, err)
		}
	}
	img, err := c.Image(t.Context(), reg.Host()+"/acme/index:both", v8.Platform)
	if err != nil || img.Config.Variant != "v8" {
		t.Errorf("the image that names the variant is not preferred: %v", err)
	}
	_, err = c.Image(t.Context(), name, v1.Platform{OS: "linux", Architecture: "arm", Variant: "v7"})
	if want := `no image for linux/arm/v7 in the index, which has "linux/arm/v6", "linux/arm64"`; err == nil ||
		!strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Indexes of indexes of indexes do not make many requests.
func TestDescribeOfManyIndexes(t *testing.T) {
	reg := testregistry.New(t)
	inner := reg.AddManifest("acme/bomb", "", v1.MediaTypeImageIndex,
		[]byte(`{"schemaVersion":2,"mediaType":"`+v1.MediaTypeImageIndex+`","manifests":[]}`))
	size := len(reg.Manifest("acme/bomb", inner.String()))
	for range 3 {
		index := v1.Index{MediaType: v1.MediaTypeImageIndex}
		for range 500 {
			index.Manifests = append(index.Manifests,
				v1.Descriptor{Digest: inner, Size: int64(size),
					Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}})
		}
		text, err := json.Marshal(index)
		if err != nil {
			t.Fatal(err)
		}
		inner, size = reg.AddManifest("acme/bomb", "v1", v1.MediaTypeImageIndex, text), len(text)
	}
	c := plainClient(t, images.ClientOptions{})
	if _, err := c.Describe(t.Context(), reg.Host()+"/acme/bomb:v1"); !errors.Is(err, images.ErrLimit) {
		t.Errorf("got %v", err)
	}
	if n := len(reg.Requests()); n > 1100 {
		t.Errorf("%d requests", n)
	}
}

// What a name stands for is asked of the place itself, and that nothing is there is an answer.
func TestDigest(t *testing.T) {
	reg := testregistry.New(t)
	d := reg.AddImage(t, "acme/one", "v1", forArch("amd64"))
	dir := t.TempDir()
	layout := forArch("amd64").WriteLayout(t, filepath.Join(dir, "layout"), "v1")
	lock, err := lockfile.Open(t.Context(), filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	c := plainClient(t, images.ClientOptions{Lock: lock})
	for name, want := range map[string]digest.Digest{
		"docker://" + reg.Host() + "/acme/one:v1":     d,
		"docker://" + reg.Host() + "/acme/one:v2":     "",
		"docker://" + reg.Host() + "/acme/two:v1":     "",
		"oci:" + filepath.Join(dir, "layout") + ":v1": layout,
		"oci:" + filepath.Join(dir, "layout") + ":v2": "",
		"oci:" + filepath.Join(dir, "none") + ":v1":   "",
		"dir:" + filepath.Join(dir, "none"):           "",
	} {
		if got, err := c.UnverifiedDigest(t.Context(), name); got != want || err != nil {
			t.Errorf("%s: %q (%v), want %q", name, got, err, want)
		}
	}
	if _, known := lock.Digest(reg.Host() + "/acme/one:v1"); known {
		t.Error("the lock has recorded it")
	}
	reg.Interfere(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	if _, err := c.UnverifiedDigest(t.Context(), reg.Host()+"/acme/one:v1"); err == nil {
		t.Error("a registry that does not answer has no image")
	}
}

// An index of too many entries is refused with their number, whatever of it is read.
func TestEntriesOfAnIndexAreCounted(t *testing.T) {
	reg, c := testregistry.New(t), plainClient(t, images.ClientOptions{})
	entry := `{"mediaType":"` + v1.MediaTypeImageManifest + `","size":1,"digest":"` + digest.FromString("x").String() + `"}`
	reg.AddManifest("acme/bomb", "v1", v1.MediaTypeImageIndex, []byte(`{"schemaVersion":2,"mediaType":"`+
		v1.MediaTypeImageIndex+`","manifests":[`+strings.Repeat(entry+",", 2000)+entry+`]}`))
	_, described := c.Describe(t.Context(), reg.Host()+"/acme/bomb:v1")
	_, opened := c.Image(t.Context(), reg.Host()+"/acme/bomb:v1", v1.Platform{})
	for _, err := range []error{described, opened} {
		if !errors.Is(err, images.ErrLimit) || !strings.Contains(err.Error(), "2001 entries (limit ") {
			t.Errorf("got %v", err)
		}
	}
}
