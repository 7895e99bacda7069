package delta

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/store/storetest"
)

// blob adds a blob to a place, and returns its descriptor.
func blob(place *storetest.Memory, text string) v1.Descriptor {
	d := v1.Descriptor{Digest: digest.FromString(text), Size: int64(len(text))}
	place.Blobs[d.Digest] = []byte(text)
	return d
}

// tagged is a medium that knows what a tag stands for and leaves the manifest out.
type tagged struct {
	*storetest.Memory
	tag string
	top v1.Descriptor
}

func (p *tagged) Head(ctx context.Context, name string) (v1.Descriptor, error) {
	if name == p.tag {
		return p.top, nil
	}
	return p.Memory.Head(ctx, name)
}

// What the medium has is read there, what it leaves out at the target, and what another repository has in that one.
func TestReader(t *testing.T) {
	ctx := t.Context()
	carried, target, other := storetest.NewMemory(), storetest.NewMemory(), storetest.NewMemory()
	text := []byte(`{"schemaVersion":2}`)
	left := v1.Descriptor{Digest: digest.FromBytes(text), Size: int64(len(text))}
	target.Manifests[left.Digest.String()] = text
	carried.Manifests["v1"] = []byte("{}")
	r := &Reader{Medium: &tagged{carried, "old", left}, Target: target,
		Elsewhere: func(digest.Digest) []string { return []string{"gone", "other"} },
		Open: func(name string) (store.Reader, error) {
			if name == "gone" {
				return nil, errors.New("no such repository")
			}
			return other, nil
		}}
	for name, want := range map[string]string{"v1": "{}", "old": string(text), left.Digest.String(): string(text)} {
		if got, _, err := r.Manifest(ctx, name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for what, says := range map[string]v1.Descriptor{"described": left, "not described": {Digest: left.Digest}} {
		r := &Reader{Medium: &tagged{carried, "old", says}, Target: target}
		if got, err := r.Head(ctx, "old"); err != nil || got.Digest != left.Digest || got.Size != left.Size {
			t.Errorf("head of what is left out and %s: %+v, %v", what, got, err)
		}
	}
	for _, name := range []string{"none", digest.FromString("none").String()} {
		if _, _, err := r.Manifest(ctx, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, d := range []v1.Descriptor{blob(carried, "carried"), blob(target, "left out"), blob(other, "elsewhere")} {
		at, err := r.Blob(ctx, d, 0)
		if err != nil {
			t.Errorf("%s: %v", d.Digest, err)
			continue
		}
		got, err := io.ReadAll(at)
		if err = errors.Join(err, at.Close()); err != nil || digest.FromBytes(got) != d.Digest {
			t.Errorf("%q, %v", got, err)
		}
	}
	none := v1.Descriptor{Digest: digest.FromString("none"), Size: 4}
	if _, err := r.Blob(ctx, none, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	for text, want := range map[string]bool{"carried": true, "left out": true, "elsewhere": false} {
		d := v1.Descriptor{Digest: digest.FromString(text), Size: int64(len(text))}
		if has, err := r.HasBlob(ctx, d); has != want || err != nil {
			t.Errorf("%s: %v, %v", text, has, err)
		}
	}
	if can := r.Can(); len(can.Repositories("")) != 2 || r.Name() != carried.Name() {
		t.Errorf("%+v", can)
	}
	if tags, _, err := r.Tags(ctx, 0); err != nil || len(tags) != 1 {
		t.Errorf("%v, %v", tags, err)
	}
	if top, err := r.Head(ctx, "old"); err != nil || top.Digest != left.Digest {
		t.Errorf("%v, %v", top, err)
	}
	if list, err := r.Referrers(ctx, left.Digest, nil); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}
