package sigblob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
)

// attached is Attached for a manifest with these layers, out of these blobs.
func attached(t *testing.T, blobs map[digest.Digest]string, layers ...v1.Descriptor) ([][]byte, error) {
	t.Helper()
	text, err := json.Marshal(v1.Manifest{MediaType: v1.MediaTypeImageManifest, Layers: layers})
	if err != nil {
		t.Fatal(err)
	}
	return Attached(t.Context(), text, func(_ context.Context, d v1.Descriptor, _ int64) (io.ReadCloser, error) {
		content, ok := blobs[d.Digest]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return io.NopCloser(strings.NewReader(content)), nil
	})
}

func layer(content string) v1.Descriptor {
	return v1.Descriptor{MediaType: MediaType, Digest: digest.FromString(content), Size: int64(len(content)),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": "c2ln"}}
}

func TestAttached(t *testing.T) {
	other := layer("attestation")
	other.MediaType = "application/vnd.dsse.envelope.v1+json"
	got, err := attached(t, map[digest.Digest]string{digest.FromString("{}"): "{}"}, other, layer("{}"))
	want := []string{
		"\x00sigstore-json\n" + `{"mimeType":"application/vnd.dsse.envelope.v1+json","payload":null,` +
			`"annotations":{"dev.cosignproject.cosign/signature":"c2ln"}}`,
		"\x00sigstore-json\n" + `{"mimeType":"application/vnd.dev.cosign.simplesigning.v1+json","payload":"e30=",` +
			`"annotations":{"dev.cosignproject.cosign/signature":"c2ln"}}`,
	}
	if err != nil || string(bytes.Join(got, nil)) != strings.Join(want, "") {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAttachedIsBounded(t *testing.T) {
	sized := func(content string, size int64) v1.Descriptor {
		d := layer(content)
		d.Size = size
		return d
	}
	huge := strings.Repeat("x", MaxSize+1)
	full := strings.Repeat("x", MaxSize)
	blobs := map[digest.Digest]string{}
	for _, content := range []string{"{}", huge, full} {
		blobs[digest.FromString(content)] = content
	}
	wrong := layer("{}")
	wrong.Digest = digest.FromString(full)
	for name, c := range map[string]struct {
		layers []v1.Descriptor
		want   error
	}{
		"1,001 layers":         {repeated(layer("{}"), MaxCount+1), fault.ErrLimit},
		"a large payload":      {[]v1.Descriptor{layer(huge)}, fault.ErrLimit},
		"a negative size":      {[]v1.Descriptor{sized("{}", -1)}, fault.ErrLimit},
		"many large payloads":  {repeated(layer(full), MaxTotal/MaxSize+1), fault.ErrLimit},
		"less than the size":   {[]v1.Descriptor{sized("{}", 3)}, fault.ErrIntegrity},
		"more than the size":   {[]v1.Descriptor{sized("{}", 1)}, fault.ErrIntegrity},
		"another content":      {[]v1.Descriptor{wrong}, fault.ErrIntegrity},
		"a payload is missing": {[]v1.Descriptor{layer("{}"), layer("none")}, fs.ErrNotExist},
		"a path for the digest": {[]v1.Descriptor{{MediaType: MediaType, Digest: "../../etc/passwd"}},
			fault.ErrInvalid},
	} {
		if got, err := attached(t, blobs, c.layers...); !errors.Is(err, c.want) || got != nil {
			t.Errorf("%s: got %d signatures, %v", name, len(got), err)
		}
	}
	for _, text := range []string{"", "[]", `{"layers":{}}`,
		`{"mediaType":"application/vnd.oci.image.index.v1+json"}`} {
		if _, err := Attached(t.Context(), []byte(text), nil); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// repeated repeats a layer.
func repeated(d v1.Descriptor, n int) []v1.Descriptor {
	layers := make([]v1.Descriptor, n)
	for i := range layers {
		layers[i] = d
	}
	return layers
}

func TestNumbered(t *testing.T) {
	broken := errors.New("broken")
	endless := func(size int) func(int, int64) ([]byte, bool, error) {
		return func(int, int64) ([]byte, bool, error) { return make([]byte, size), true, nil }
	}
	for name, c := range map[string]struct {
		read  func(int, int64) ([]byte, bool, error)
		count int
		want  error
	}{
		"none": {func(int, int64) ([]byte, bool, error) { return nil, false, nil }, 0, nil},
		"two":  {func(n int, _ int64) ([]byte, bool, error) { return nil, n < 3, nil }, 2, nil},
		"an error": {func(n int, _ int64) ([]byte, bool, error) {
			return nil, n < 2,
				map[bool]error{true: broken}[n == 2]
		}, 1, broken},
		"without an end": {endless(1), 0, fault.ErrLimit},
		"large ones":     {endless(MaxSize), 0, fault.ErrLimit},
	} {
		if got, err := Numbered(c.read); !errors.Is(err, c.want) || len(got) != c.count {
			t.Errorf("%s: got %d, %v", name, len(got), err)
		}
	}
}

// A manifest from outside yields at most one blob for each layer, and each begins as the library expects.
func FuzzAttached(f *testing.F) {
	f.Add([]byte(`{"layers":[{"mediaType":"` + MediaType + `","digest":"` + digest.FromString("{}").String() +
		`","size":2,"annotations":{"a":"b"}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := Attached(t.Context(), text, func(context.Context, v1.Descriptor, int64) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("{}")), nil
		})
		if err != nil && got != nil || len(got) > MaxCount {
			t.Errorf("%d signatures, %v", len(got), err)
		}
		for _, blob := range got {
			if !bytes.HasPrefix(blob, []byte(sigstoreBlob)) || !json.Valid(blob[len(sigstoreBlob):]) {
				t.Errorf("%q", blob)
			}
		}
	})
}
