package verify

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// What is read must have the digest and the size.
func TestReader(t *testing.T) {
	good := digest.FromString("hello")
	for name, c := range map[string]struct {
		text string
		want digest.Digest
		size int64
		ok   bool
	}{
		"right":            {"hello", good, 5, true},
		"size not known":   {"hello", good, -1, true},
		"another content":  {"hallo", good, 5, false},
		"shorter":          {"hell", good, 5, false},
		"longer":           {"hello!", good, 5, false},
		"longer, no size":  {"hello!", good, -1, false},
		"no content":       {"", good, 5, false},
		"content of none":  {"", digest.FromString(""), 0, true},
		"content for none": {"x", digest.FromString(""), 0, false},
	} {
		body := Body(t.Context(), io.NopCloser(strings.NewReader(c.text)), c.want, c.size)
		got, err := io.ReadAll(body)
		if c.ok && (err != nil || string(got) != c.text) || !c.ok && !errors.Is(err, fault.ErrIntegrity) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := io.ReadAll(Body(ended, io.NopCloser(strings.NewReader("hello")), good, 5))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	r := NewReader(strings.NewReader("hello"), good, 5)
	if !Verifies(r, good, 5) || Verifies(r, good, 4) || Verifies(strings.NewReader(""), good, 5) {
		t.Error("Verifies is wrong")
	}
	if _, err := r.Read(make([]byte, 1)); err != nil || Verifies(r, good, 5) {
		t.Errorf("a reader that is not at its start verifies the whole, %v", err)
	}
}

func TestDigests(t *testing.T) {
	for text, good := range map[digest.Digest]bool{digest.FromString("x"): true, "sha256:x": false, "": false,
		digest.SHA512.FromString("x"): false} {
		if err := Digest(text); (err == nil) != good || err != nil && !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if ShortRead(io.EOF) != io.ErrUnexpectedEOF || ShortRead(io.ErrClosedPipe) != io.ErrClosedPipe {
		t.Error("ShortRead is wrong")
	}
}

// The media type of a manifest is that of the answer or of its text, which must agree with each other and with the
// content.
func TestManifestKinds(t *testing.T) {
	for _, c := range []struct{ text, kind, want string }{
		{`{"manifests":[]}`, v1.MediaTypeImageIndex, v1.MediaTypeImageIndex},
		{`{"manifests":[]}`, v1.MediaTypeImageIndex + "; charset=utf-8", v1.MediaTypeImageIndex},
		{`{"mediaType":"` + v1.MediaTypeImageManifest + `","layers":[]}`, "", v1.MediaTypeImageManifest},
		{`{"mediaType":"` + v1.MediaTypeImageManifest + `"}`, v1.MediaTypeImageIndex, ""},
		{`{"manifests":[],"layers":[]}`, v1.MediaTypeImageIndex, ""},
		{`{"manifests":[]}`, v1.MediaTypeImageManifest, ""},
		{`{"layers":[]}`, v1.MediaTypeImageIndex, ""},
		{`{"layers":[]}`, "text/plain", ""},
		{`{"schemaVersion":1}`, v1.MediaTypeImageManifest, ""},
		{`[`, v1.MediaTypeImageManifest, ""},
	} {
		got, err := ManifestKind([]byte(c.text), c.kind)
		if got != c.want || (err == nil) != (c.want != "") || err != nil && !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s as %s: %s, %v", c.text, c.kind, got, err)
		}
	}
}

// One digest has one size.
func TestSizes(t *testing.T) {
	s, d := Sizes{}, v1.Descriptor{Digest: digest.FromString("layer"), Size: 5}
	if first, err := s.Add(d); !first || err != nil {
		t.Errorf("%v, %v", first, err)
	}
	if first, err := s.Add(d); first || err != nil {
		t.Errorf("again: %v, %v", first, err)
	}
	named := func(size string) []byte {
		return []byte(`{"config":{"digest":"` + digest.FromString("c").String() + `","size":1},` +
			`"layers":[{"digest":"` + d.Digest.String() + `","size":` + size + `}]}`)
	}
	if err := s.AddManifest(named("5")); err != nil {
		t.Error(err)
	}
	if len(s) != 3 {
		t.Errorf("%d sizes", len(s))
	}
	if err := s.AddManifest(named("6")); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("another size: %v", err)
	}
	if err := s.AddManifest([]byte("{")); err != nil {
		t.Errorf("no JSON: %v", err)
	}
}

// source has one blob.
type source struct {
	types.ImageSource
	text string
}

func (s source) GetBlob(context.Context, types.BlobInfo, types.BlobInfoCache) (io.ReadCloser, int64, error) {
	if s.text == "" {
		return nil, 0, errors.New("no such blob")
	}
	return io.NopCloser(strings.NewReader(s.text)), int64(len(s.text)), nil
}

func TestReadConfig(t *testing.T) {
	d := v1.Descriptor{Digest: digest.FromString("{}"), Size: 2}
	if text, err := ReadConfig(t.Context(), source{text: "{}"}, d); err != nil || string(text) != "{}" {
		t.Errorf("%s, %v", text, err)
	}
	for name, c := range map[string]struct {
		source
		d  v1.Descriptor
		is error
	}{
		"another content": {source{text: "[]"}, d, fault.ErrIntegrity},
		"no digest":       {source{text: "{}"}, v1.Descriptor{Digest: "x", Size: 2}, fault.ErrInvalid},
		"too large":       {source{text: "{}"}, v1.Descriptor{Digest: d.Digest, Size: limit.MaxManifest + 1}, fault.ErrLimit},
	} {
		if _, err := ReadConfig(t.Context(), c.source, c.d); !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadConfig(t.Context(), source{}, d); err == nil {
		t.Error("a blob that is not there: no error")
	}
}
