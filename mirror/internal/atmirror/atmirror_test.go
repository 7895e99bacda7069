package atmirror

import (
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store/storetest"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

var (
	one  = digest.FromString("one")
	some = "h/acme/app"
)

func parse(t *testing.T, text string) imageset.Ref {
	t.Helper()
	ref, err := imageset.ParseRef(text)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestPullName(t *testing.T) {
	for text, want := range map[string]string{some + ":v1": "v1", some + "@" + one.String(): one.String(),
		some + ":sha256-" + one.Encoded(): one.String(), some + ":v1@" + one.String(): one.String(),
		some + ":sha256-short": "sha256-short"} {
		if got := PullName(parse(t, text)); got != want {
			t.Errorf("%s: %s, expected %s", text, got, want)
		}
	}
}

// An image is found by its digest, and by its tag if the digest is not there.
func TestHead(t *testing.T) {
	place := storetest.NewMemory()
	tag := "sha256-" + one.Encoded()
	place.Manifests[tag] = []byte("{}")
	name, top, err := Head(t.Context(), place, parse(t, some+":"+tag))
	if err != nil || name != tag || top.Digest != digest.FromString("{}") {
		t.Errorf("%s, %v, %v", name, top, err)
	}
	place.Manifests[top.Digest.String()] = []byte("{}")
	name, _, err = Head(t.Context(), place, parse(t, some+"@"+top.Digest.String()))
	if err != nil || name != top.Digest.String() {
		t.Errorf("%s, %v", name, err)
	}
	if _, _, err = Head(t.Context(), place, parse(t, some+":none")); !IsAbsent(err) {
		t.Errorf("got %v", err)
	}
}

// What a registry refuses to show is not taken for absent.
func TestIsAbsent(t *testing.T) {
	for _, c := range []struct {
		err    error
		absent bool
	}{{fs.ErrNotExist, true}, {fmt.Errorf("x: %w", &registries.StatusError{Status: http.StatusForbidden}), false},
		{fmt.Errorf("%w: %w", fs.ErrNotExist, &registries.StatusError{Status: http.StatusUnauthorized}), false},
		{nil, false}} {
		if IsAbsent(c.err) != c.absent {
			t.Errorf("%v", c.err)
		}
	}
}

func TestNames(t *testing.T) {
	if got := DigestTag("docker://" + some + ":v1@" + one.String()); got != "sha256-"+one.Encoded() {
		t.Error(got)
	}
	if got := DigestTag("docker://" + some + ":v1"); got != "" {
		t.Error(got)
	}
	got, ok := WithHost("docker://localhost:5000/a:v1", "127.0.0.1:5000")
	if !ok || got != "docker://127.0.0.1:5000/a:v1" {
		t.Error(got, ok)
	}
	for _, text := range []string{"docker://h/a:v1", "oci://a", "::"} {
		if got, ok := WithHost(text, "g"); ok {
			t.Error(got)
		}
	}
	if ref, err := ParseSource("memory://x:v1"); err != nil || ref.Transport != "memory" {
		t.Error(ref, err)
	}
}

// The image of a bundle comes first, and once.
func TestImagesOf(t *testing.T) {
	b := &declcfg.Bundle{Image: "own", RelatedImages: []declcfg.RelatedImage{{Image: "own"}, {Image: ""}, {Image: "a"},
		{Image: "b"}}}
	var got []string
	for image, own := range ImagesOf(b) {
		got = append(got, fmt.Sprint(image, own))
		if image == "a" {
			break
		}
	}
	if !slices.Equal(got, []string{"owntrue", "afalse"}) {
		t.Error(got)
	}
	for image := range ImagesOf(b) {
		if image != "own" {
			t.Error(image)
		}
		break
	}
}
