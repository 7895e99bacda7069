package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/store/storetest"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/reflist"
)

// refusing is a place that answers with an error to a manifest, or to reading one back.
type refusing struct {
	*storetest.Memory
	write, read error
}

func (r refusing) WriteManifest(ctx context.Context, text []byte, mediaType string, o store.WriteOptions) error {
	if o.Sparse && r.write != nil {
		return r.write
	}
	return r.Memory.WriteManifest(ctx, text, mediaType, o)
}

func (r refusing) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	if r.read != nil {
		return nil, "", r.read
	}
	return r.Memory.Manifest(ctx, name)
}

// An index of which images are left out is an error before anything is copied, by what the place has answered before,
// or by what it answers; the error says which images these are.
func TestSparseErrors(t *testing.T) {
	from := newSource()
	top, _, arm, _, _ := nested(t, from)
	known := storetest.NewMemory()
	known.Abilities = &store.Abilities{NoSparse: store.ErrSparse}
	for name, test := range map[string]struct {
		to     store.Writer
		sparse store.Sparse
		class  fault.Class
		text   string
	}{
		"by the options": {storetest.NewMemory(), store.SparseRefuse, fault.Input, "linux/arm64"},
		"by the answer": {refusing{Memory: storetest.NewMemory(), write: store.ErrSparse}, store.SparseKeep,
			fault.Network, store.ErrSparse.Error()},
		"by an earlier answer": {known, store.SparseKeep, fault.Network, "memory takes no index"},
		"by its digest": {refusing{Memory: storetest.NewMemory(), write: store.ErrSparse}, store.SparseTrim,
			fault.Network, "no smaller index can stand for it"},
	} {
		_, err := store.CopyOne(t.Context(), from, top, test.to, "v1", store.CopyOptions{Platforms: amd64,
			Sparse: test.sparse, ByDigest: test.sparse == store.SparseTrim})
		var sparse *store.SparseError
		if !errors.As(err, &sparse) || sparse.ErrorClass() != test.class || !strings.Contains(err.Error(), test.text) ||
			len(sparse.Absent) == 0 || errors.Is(err, store.ErrSparse) != (test.class == fault.Network) {
			t.Errorf("%s: %v", name, err)
		}
	}
	noName := &store.SparseError{Absent: []v1.Descriptor{arm}}
	if text := noName.Error(); text != "an index without its images for linux/arm64" {
		t.Error(text)
	}
	_, err := store.CopyOne(t.Context(), from, top, storetest.NewMemory(), "", store.CopyOptions{
		Platforms: []v1.Platform{{OS: "plan9", Architecture: "amd64"}}})
	var none *store.PlatformError
	if !errors.As(err, &none) || !errors.Is(err, fault.ErrInvalid) ||
		!strings.Contains(err.Error(), "plan9/amd64") || !strings.Contains(err.Error(), "linux/amd64, linux/arm64") {
		t.Error(err)
	}
}

// What was written is read back if that is asked for: a place that answers something else has not stored it, and one
// that allows no reading is trusted.
func TestConfirm(t *testing.T) {
	from := newSource()
	top := from.image(t, "a")
	for answer, want := range map[error]error{
		nil:                   nil,
		store.ErrDenied:       nil,
		store.ErrNoManifest:   fault.ErrIntegrity,
		fault.ErrRegistry:     fault.ErrRegistry,
		fs.ErrNotExist:        fs.ErrNotExist,
		errors.New("as text"): fault.ErrIntegrity,
	} {
		to := storetest.NewMemory()
		var place store.Writer = refusing{Memory: to, read: answer}
		if answer != nil && answer.Error() == "as text" {
			place = garbling{to}
		}
		_, err := store.CopyOne(t.Context(), from, top, place, "v1", store.CopyOptions{Confirm: true, Absent: true})
		if !errors.Is(err, want) || (to.Manifests["v1"] != nil) != (want == nil) {
			t.Errorf("%v: %v", answer, err)
		}
	}
}

// garbling is a place that returns another text.
type garbling struct{ *storetest.Memory }

func (garbling) Manifest(context.Context, string) ([]byte, string, error) {
	return []byte("<html>"), "text/html", nil
}

// The blobs of the image that a tag stands for are there, and need no question.
func TestBlobsOfTheEarlierImage(t *testing.T) {
	from, to := newSource(), storetest.NewMemory()
	to.Abilities = &store.Abilities{Complete: true}
	var layers []v1.Descriptor
	for i := range 6 {
		layers = append(layers, from.blob(v1.MediaTypeImageLayer, fmt.Sprint("layer ", i)))
	}
	first := from.index(t, on(from.image(t, "first", layers...), "amd64"))
	if _, err := store.CopyOne(t.Context(), from, first, to, "v1", store.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	clear(to.Blobs) // a question would find that
	second := from.index(t, on(from.image(t, "second", layers...), "amd64"))
	got, err := store.CopyOne(t.Context(), from, second, to, "v1", store.CopyOptions{})
	reused := 0
	for _, m := range got.Moves {
		if m.How == store.Reused {
			reused++
		}
	}
	if err != nil || reused != 7 || len(to.Blobs) != 2 {
		t.Errorf("%d reused, %d sent, %v", reused, len(to.Blobs), err)
	}
}

// A tag that is derived from the digest of the image is kept if it is the list of referrers, and the image is there.
func TestTagThatIsAList(t *testing.T) {
	from := newSource()
	top, other := from.image(t, "a"), from.image(t, "b")
	list, err := reflist.Add(nil, other)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		text []byte
		kept bool
	}{
		"nothing":       {nil, false},
		"a list":        {list, true},
		"another image": {from.Manifests[other.Digest.String()], false},
		"the image":     {from.Manifests[top.Digest.String()], false},
	} {
		to, tag := storetest.NewMemory(), reflist.Tag(top.Digest)
		if test.text != nil {
			to.Manifests[tag] = test.text
		}
		for range 2 {
			got, err := store.CopyOne(t.Context(), from, top, to, tag, store.CopyOptions{})
			if err != nil || got.TagKept != test.kept || to.Manifests[top.Digest.String()] == nil && name != "the image" {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			if want := from.Manifests[top.Digest.String()]; bytes.Equal(to.Manifests[tag], want) == test.kept {
				t.Errorf("%s: %s", name, to.Manifests[tag])
			}
		}
	}
}

// Content is opened at any offset in it. What keeps a source from being read is an error of the source.
func TestContent(t *testing.T) {
	at := newSource()
	d := at.blob(v1.MediaTypeImageLayer, "content")
	skipping := store.Content{Open: func(ctx context.Context, from int64) (io.ReadCloser, error) {
		return store.Skip(func() (io.ReadCloser, error) { return at.Blob(ctx, d, 0) }, from)
	}}
	for name, c := range map[string]store.Content{"bytes": store.Bytes([]byte("content")),
		"a place": store.ContentOf(at, d), "skipping": skipping} {
		for from, want := range map[int64]string{0: "content", 3: "tent", 7: "", 8: "-", -1: "-"} {
			got := "-"
			if r, err := c.Open(t.Context(), from); err == nil {
				text, err := io.ReadAll(r)
				if err = errors.Join(err, r.Close()); err != nil {
					t.Errorf("%s from %d: %v", name, from, err)
				}
				got = string(text)
			}
			if got != want {
				t.Errorf("%s from %d: %q instead of %q", name, from, got, want)
			}
		}
	}
	at.Blobs[d.Digest] = []byte("another")
	r, err := store.ContentOf(at, d).Open(t.Context(), 0)
	if err == nil {
		_, err = io.ReadAll(r)
	}
	var source *store.SourceError
	if !errors.As(err, &source) || !errors.Is(err, fault.ErrIntegrity) || !strings.HasPrefix(err.Error(), "source: ") {
		t.Error(err)
	}
	to := storetest.NewMemory()
	if err := store.WriteBytes(t.Context(), to, d, []byte("content")); err != nil || len(to.Blobs) != 1 {
		t.Error(err)
	}
}

// What has no room is not counted, so that something smaller still may have it.
func TestBudget(t *testing.T) {
	b := store.Limits{Count: 2, Manifests: 10, Content: 10}.NewBudget()
	for _, step := range []struct {
		take func() error
		fits bool
	}{
		{func() error { return b.TakeCount(2) }, true},
		{func() error { return b.TakeCount(1) }, false},
		{func() error { return b.TakeManifest(11) }, false},
		{func() error { return b.TakeManifest(10) }, true},
		{func() error { return b.TakeContent(9, "blobs") }, true},
		{func() error { return b.TakeContent(2, "blobs") }, false},
		{func() error { return b.TakeContent(1, "blobs") }, true},
	} {
		if err := step.take(); (err == nil) != step.fits || err != nil && !errors.Is(err, fault.ErrLimit) {
			t.Error(err)
		}
	}
	if got := (store.Limits{}).NewBudget().Limits; got.Count != 10_000 || got.Depth != 3 || got.Content != 4<<30 {
		t.Errorf("%+v", got)
	}
}

// A tag that must stand for nothing, or for something else, is left.
func TestConflictError(t *testing.T) {
	from, to := newSource(), storetest.NewMemory()
	top, other := from.image(t, "a"), from.image(t, "b")
	if _, err := store.CopyOne(t.Context(), from, other, to, "v1", store.CopyOptions{If: store.IfNone}); err != nil {
		t.Fatal(err)
	}
	for want, text := range map[string]string{store.IfNone: "no image",
		digest.FromString("c").String(): digest.FromString("c").String()} {
		_, err := store.CopyOne(t.Context(), from, top, to, "v1", store.CopyOptions{If: want})
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) || conflict.ErrorClass() != fault.Conflict || !strings.HasPrefix(err.Error(),
			"memory:v1 stands for "+string(other.Digest)+" and not for "+text) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
