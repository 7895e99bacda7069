package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/store/storetest"
	"github.com/operator-bindery/bindery/internal/fault"
)

// source is a place with made-up images.
type source struct{ *storetest.Memory }

func newSource() *source { return &source{storetest.NewMemory()} }

func (s *source) blob(mediaType, content string) v1.Descriptor {
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromString(content), Size: int64(len(content))}
	s.Blobs[d.Digest] = []byte(content)
	return d
}

func (s *source) put(t testing.TB, m any, mediaType string) v1.Descriptor {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}
	s.Manifests[d.Digest.String()], s.Kinds[d.Digest.String()] = text, mediaType
	return d
}

func (s *source) image(t testing.TB, name string, layers ...v1.Descriptor) v1.Descriptor {
	t.Helper()
	return s.put(t, v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: s.blob(v1.MediaTypeImageConfig, `{"name":"`+name+`"}`), Layers: append([]v1.Descriptor{
			s.blob(v1.MediaTypeImageLayer, name), s.blob(v1.MediaTypeImageLayer, "shared")}, layers...)},
		v1.MediaTypeImageManifest)
}

func (s *source) index(t testing.TB, entries ...v1.Descriptor) v1.Descriptor {
	t.Helper()
	return s.put(t, v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex,
		Manifests: entries}, v1.MediaTypeImageIndex)
}

func on(d v1.Descriptor, architecture string) v1.Descriptor {
	d.Platform = &v1.Platform{OS: "linux", Architecture: architecture}
	return d
}

var amd64 = []v1.Platform{{OS: "linux", Architecture: "amd64"}}

// nested is an index with an image, an attestation of it, an image for another platform, and an index of both kinds.
func nested(t testing.TB, s *source) (top, amd, arm, attestation, inner v1.Descriptor) {
	amd, arm = on(s.image(t, "amd"), "amd64"), on(s.image(t, "arm"), "arm64")
	attestation = on(s.image(t, "attestation of amd"), "unknown")
	attestation.Annotations = map[string]string{"vnd.docker.reference.digest": amd.Digest.String()}
	other := on(s.image(t, "attestation of arm"), "unknown")
	other.Annotations = map[string]string{"vnd.docker.reference.digest": arm.Digest.String()}
	inner = s.index(t, on(s.image(t, "inner amd"), "amd64"), on(s.image(t, "inner arm"), "arm64"))
	onlyArm := s.index(t, on(s.image(t, "only arm"), "arm64"))
	return s.index(t, amd, arm, attestation, other, inner, onlyArm, amd), amd, arm, attestation, inner
}

// slow is a place that answers to a blob after a while, when its content has been read and closed.
type slow struct {
	store.Writer
	now, most atomic.Int32
}

func (s *slow) WriteBlob(ctx context.Context, d v1.Descriptor, c store.Content) (string, error) {
	for n := s.now.Add(1); ; {
		if most := s.most.Load(); n <= most || s.most.CompareAndSwap(most, n) {
			break
		}
	}
	defer s.now.Add(-1)
	body, err := c.Open(ctx, 0)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(io.Discard, body)
	if err = errors.Join(err, body.Close()); err != nil {
		return "", err
	}
	runtime.Gosched() // the others come here before the answer
	return s.Writer.WriteBlob(ctx, d, c)
}

// Copies that share a limit of uploads send no more blobs at once than that, those of attachments among them, until the
// answer to each.
func TestUploadsAreLimited(t *testing.T) {
	from := newSource()
	to := &slow{Writer: storetest.NewMemory()}
	uploads := make(chan struct{}, 3)
	var all sync.WaitGroup
	for n := range 20 {
		top := from.image(t, fmt.Sprintf("image %d", n))
		all.Go(func() {
			if _, err := store.CopyOne(t.Context(), from, top, to, fmt.Sprintf("v%d", n), store.CopyOptions{Jobs: 5, Uploads: uploads,
				Attach: func(ctx context.Context, w store.Writer, _ store.Image) error {
					text := []byte(fmt.Sprintf("signature %d", n))
					return store.WriteBytes(ctx, w, v1.Descriptor{Digest: digest.FromBytes(text), Size: int64(len(text))}, text)
				}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most := to.most.Load(); most > 3 || most < 2 {
		t.Errorf("%d uploads at once", most)
	}
}

// Everything of indexes in indexes is copied, each blob once, and the tag at last.
func TestCopyImage(t *testing.T) {
	from, to := newSource(), storetest.NewMemory()
	top, _, _, _, _ := nested(t, from)
	var mu sync.Mutex
	steps := map[store.EventKind]int{}
	before := false
	got, err := store.CopyOne(t.Context(), from, top, to, "v1", store.CopyOptions{Jobs: 2,
		Attach: func(ctx context.Context, w store.Writer, i store.Image) error {
			_, early := to.Manifests[top.Digest.String()]
			_, err := w.Head(ctx, top.Digest.String()) // what asks for the image finds it
			there := !early && err == nil
			_, tagged := to.Manifests["v1"]
			before = there && !tagged && len(i.Instances) == 9 && i.Top.Digest == top.Digest
			return nil
		},
		Moved: func(e store.Event) { mu.Lock(); steps[e.Kind]++; mu.Unlock() }})
	if err != nil || !before {
		t.Fatal(err, before)
	}
	// 7 images with a configuration and a layer each, and one layer that they share. The index is written twice.
	if got.Manifests != 10 || got.Blobs != 15 || got.Sent != got.Bytes+got.Size || len(got.LeftOut) != 0 ||
		got.Present ||
		steps[store.EventBlobStart] != 15 || steps[store.EventBlobDone] != 15 {
		t.Errorf("%+v, %v", got, steps)
	}
	for name, text := range from.Manifests {
		if !bytes.Equal(to.Manifests[name], text) {
			t.Errorf("%s: %s", name, to.Manifests[name])
		}
	}
	if !bytes.Equal(to.Manifests["v1"], to.Manifests[top.Digest.String()]) {
		t.Error("the tag")
	}
}

// Of the platforms there are the images, what describes these, and the indexes that have such; the index is as it is,
// or a smaller one whose other members are the same.
func TestCopyImageOfPlatforms(t *testing.T) {
	from := newSource()
	top, amd, arm, attestation, inner := nested(t, from)
	for _, sparse := range []store.Sparse{store.SparseKeep, store.SparseTrim} {
		to := storetest.NewMemory()
		got, err := store.CopyOne(t.Context(), from, top, to, "v1", store.CopyOptions{Platforms: amd64, Sparse: sparse})
		if err != nil {
			t.Fatal(err)
		}
		has := func(d v1.Descriptor) bool { return to.Manifests[d.Digest.String()] != nil }
		if !has(amd) || has(arm) || !has(attestation) || has(inner) != (sparse == store.SparseKeep) ||
			len(got.LeftOut) != 4 ||
			len(got.Instances) != 4 || got.Trimmed != (sparse == store.SparseTrim) {
			t.Errorf("%s: %+v", sparse, got)
		}
		parts, err := store.PartsOf(to.Manifests["v1"])
		if err != nil || digest.FromBytes(to.Manifests["v1"]) != got.Digest {
			t.Fatal(err)
		}
		if want := map[store.Sparse]int{store.SparseKeep: 7, store.SparseTrim: 4}[sparse]; len(parts.Manifests) != want {
			t.Errorf("%s: %s", sparse, to.Manifests["v1"])
		}
		if sparse == store.SparseTrim { // all that is named is there
			for _, e := range parts.Manifests {
				text := to.Manifests[e.Digest.String()]
				if int64(len(text)) != e.Size {
					t.Errorf("%s: %d bytes", e.Digest, len(text))
				}
				below, err := store.PartsOf(text)
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range append(below.Manifests, below.Blobs...) {
					if to.Manifests[b.Digest.String()] == nil && to.Blobs[b.Digest] == nil {
						t.Errorf("%s is missing", b.Digest)
					}
				}
			}
		}
	}
	// An index without platforms cannot be chosen from.
	plain := from.index(t, from.image(t, "plain"))
	if got, err := store.CopyOne(t.Context(), from, plain, storetest.NewMemory(), "", store.CopyOptions{Platforms: amd64}); err != nil ||
		len(got.Instances) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// An image that an index names for several platforms is there for each of them.
func TestCopyImageForSeveralPlatforms(t *testing.T) {
	from := newSource()
	both, other := from.image(t, "both"), on(from.image(t, "other"), "s390x")
	top := from.index(t, on(both, "arm64"), other, on(both, "amd64"))
	for _, architecture := range []string{"arm64", "amd64"} {
		to := storetest.NewMemory()
		platforms := []v1.Platform{{OS: "linux", Architecture: architecture}}
		got, err := store.CopyOne(t.Context(), from, top, to, "v1", store.CopyOptions{Platforms: platforms})
		if err != nil {
			t.Fatal(err)
		}
		if to.Manifests[both.Digest.String()] == nil || len(got.Instances) != 1 ||
			got.Instances[0].Platform.Architecture != architecture || len(got.LeftOut) != 1 ||
			got.LeftOut[0].Digest != other.Digest {
			t.Errorf("%s: %+v", architecture, got)
		}
		image, err := store.ReadImage(t.Context(), from, top)
		if err != nil {
			t.Fatal(err)
		}
		wanted, others := store.Select(image.Entries, platforms)
		if len(wanted) != 1 || wanted[0].Digest != both.Digest || len(others) != 1 || len(image.Instances) != 2 {
			t.Errorf("%s: %v, %v, %v", architecture, wanted, others, image.Instances)
		}
	}
}

// An index that several indexes have is replaced in all of them.
func TestCopyTrimsSharedIndexes(t *testing.T) {
	from, to := newSource(), storetest.NewMemory()
	shared := from.index(t, on(from.image(t, "amd"), "amd64"), on(from.image(t, "arm"), "arm64"))
	one := from.index(t, shared, on(from.image(t, "one"), "amd64"))
	two := from.index(t, from.index(t, shared), on(from.image(t, "two"), "amd64"))
	if _, err := store.CopyOne(t.Context(), from, from.index(t, one, two), to, "v1",
		store.CopyOptions{Platforms: amd64, Sparse: store.SparseTrim}); err != nil {
		t.Fatal(err)
	}
	for name, text := range to.Manifests {
		parts, err := store.PartsOf(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parts.Manifests {
			if to.Manifests[d.Digest.String()] == nil {
				t.Errorf("%s names %s, which is not there", name, d.Digest)
			}
		}
	}
}

// A tag for signatures is compared just before it is written as well.
func TestCopyComparesTagsOfAttachments(t *testing.T) {
	from, to := newSource(), storetest.NewMemory()
	to.Abilities = &store.Abilities{}
	top, other := from.image(t, "a"), from.image(t, "b")
	tag := "sha256-" + other.Digest.Encoded() + ".sig"
	_, err := store.CopyOne(t.Context(), from, top, unconditional{to}, tag, store.CopyOptions{If: store.IfNone,
		Attach: func(ctx context.Context, _ store.Writer, _ store.Image) error { // as another client
			return to.WriteManifest(ctx, from.Manifests[other.Digest.String()], other.MediaType,
				store.WriteOptions{Tag: tag})
		}})
	var conflict *store.ConflictError
	if !errors.As(err, &conflict) || conflict.Got != other.Digest ||
		digest.FromBytes(to.Manifests[tag]) != other.Digest {
		t.Error(err)
	}
}

// unconditional is a place that looks at no condition.
type unconditional struct{ *storetest.Memory }

func (u unconditional) WriteManifest(ctx context.Context, text []byte, mediaType string, o store.WriteOptions) error {
	o.If = ""
	return u.Memory.WriteManifest(ctx, text, mediaType, o)
}

// incomplete is a place that refuses the top manifest once, as if a blob had vanished.
type incomplete struct {
	*storetest.Memory
	top     string
	refused atomic.Bool
}

func (i *incomplete) WriteManifest(ctx context.Context, text []byte, mediaType string, o store.WriteOptions) error {
	if digest.FromBytes(text).String() == i.top && i.refused.CompareAndSwap(false, true) {
		clear(i.Blobs)
		return store.ErrIncomplete
	}
	return i.Memory.WriteManifest(ctx, text, mediaType, o)
}

// What vanishes until the top manifest is written is sent again, whether it is written with the tag or before an
// attachment. If it cannot be read any more, that is the error of the copy, whatever the attachment makes of it.
func TestCopyWhatVanishes(t *testing.T) {
	for _, attached := range []bool{false, true} {
		for _, lost := range []bool{false, true} {
			from := newSource()
			top := from.image(t, "a")
			subject := from.put(t, v1.Manifest{MediaType: v1.MediaTypeImageManifest, Subject: &top,
				Config: from.blob(v1.MediaTypeImageConfig, "{}")}, v1.MediaTypeImageManifest)
			to := &incomplete{Memory: storetest.NewMemory(), top: top.Digest.String()}
			from.Refuse = func(string) error {
				if lost && to.refused.Load() {
					return errors.New("gone")
				}
				return nil
			}
			o := store.CopyOptions{}
			if attached {
				o.Attach = func(ctx context.Context, w store.Writer, _ store.Image) error {
					_ = w.WriteManifest(ctx, from.Manifests[subject.Digest.String()], subject.MediaType,
						store.WriteOptions{})
					return nil
				}
			}
			got, err := store.CopyOne(t.Context(), from, top, to, "v1", o)
			if lost {
				var source *store.SourceError
				if !errors.As(err, &source) || to.Manifests["v1"] != nil {
					t.Errorf("%t: %+v, %v", attached, got, err)
				}
				continue
			}
			if err != nil || len(to.Blobs) != 3 || to.Manifests["v1"] == nil || got.Tagged != 1 {
				t.Errorf("%t: %+v, %v, %d blobs", attached, got, err, len(to.Blobs))
			}
		}
	}
}

// breakingOff is a place where a run ends when a manifest with a subject is written and not listed for that.
type breakingOff struct{ *storetest.Memory }

func (b breakingOff) WriteManifest(ctx context.Context, text []byte, mediaType string, o store.WriteOptions) error {
	err := b.Memory.WriteManifest(ctx, text, mediaType, o)
	if len(b.Lists) > 0 {
		clear(b.Lists)
		err = errors.Join(err, context.Canceled)
	}
	return err
}

// counting is a place that counts what it is asked for.
type counting struct {
	*storetest.Memory
	asked atomic.Int64
}

func (c *counting) Head(ctx context.Context, name string) (v1.Descriptor, error) {
	c.asked.Add(1)
	return c.Memory.Head(ctx, name)
}

func (c *counting) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	c.asked.Add(1)
	return c.Memory.Manifest(ctx, name)
}

// A manifest with a subject is listed by the next run if a run has ended before that, wherever it is in the image. For
// that the destination is asked for no more than for the tag, the top and each entry, and only what has a subject is
// written again.
func TestCopyListsWhatWasNotListed(t *testing.T) {
	for name, test := range map[string]struct {
		top func(t *testing.T, s *source, referrer, other v1.Descriptor) v1.Descriptor
		// asked and written are of the run that comes to the end.
		asked, written int
	}{
		"the image": {func(_ *testing.T, _ *source, r, _ v1.Descriptor) v1.Descriptor { return r }, 2, 1},
		"an entry of its index": {func(t *testing.T, s *source, r, o v1.Descriptor) v1.Descriptor {
			return s.index(t, o, r)
		}, 3, 2},
		"an entry of an index in it": {func(t *testing.T, s *source, r, o v1.Descriptor) v1.Descriptor {
			return s.index(t, o, s.index(t, r))
		}, 4, 3},
		"an index in it": {func(t *testing.T, s *source, r, o v1.Descriptor) v1.Descriptor {
			parts, err := store.PartsOf(s.Manifests[r.Digest.String()])
			if err != nil {
				t.Fatal(err)
			}
			return s.index(t, s.put(t, v1.Index{Versioned: specs.Versioned{SchemaVersion: 2},
				MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{o}, Subject: parts.Subject},
				v1.MediaTypeImageIndex))
		}, 3, 2},
	} {
		from, to := newSource(), storetest.NewMemory()
		to.Abilities = &store.Abilities{Complete: true}
		subject := from.image(t, "subject")
		referrer := from.put(t, v1.Manifest{MediaType: v1.MediaTypeImageManifest, Subject: &subject,
			Config: from.blob(v1.MediaTypeImageConfig, "{}")}, v1.MediaTypeImageManifest)
		top := test.top(t, from, referrer, from.image(t, "other"))
		if _, err := store.CopyOne(t.Context(), from, top, breakingOff{to}, "v1", store.CopyOptions{}); err == nil {
			t.Fatal(name, ": the first run is complete")
		}
		at := &counting{Memory: to}
		got, err := store.CopyOne(t.Context(), from, top, at, "v1", store.CopyOptions{})
		if err != nil {
			t.Fatal(name, err)
		}
		if len(to.Lists[subject.Digest]) != 1 || to.Manifests["v1"] == nil || got.Written != test.written ||
			at.asked.Load() != int64(test.asked) {
			t.Errorf("%s: %v, %d asked for, %+v", name, to.Lists, at.asked.Load(), got)
		}
		got, err = store.CopyOne(t.Context(), from, top, to, "v1", store.CopyOptions{})
		if err != nil || !got.Present || got.Written != 0 {
			t.Errorf("%s: once more: %+v, %v", name, got, err)
		}
	}
}

// Layers that only other servers have may be missing at the source.
func TestCopyImageForeignLayers(t *testing.T) {
	from, to := newSource(), storetest.NewMemory()
	foreign := v1.Descriptor{MediaType: "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
		Digest: digest.FromString("elsewhere"), Size: 9, URLs: []string{"https://example.com/layer"}}
	got, err := store.CopyOne(t.Context(), from, from.image(t, "windows", foreign), to, "v1", store.CopyOptions{})
	if err != nil || !slices.Equal(got.Foreign, []digest.Digest{foreign.Digest}) || to.Manifests["v1"] == nil {
		t.Errorf("%+v, %v", got, err)
	}
	foreign.URLs = nil
	if _, err := store.CopyOne(t.Context(), from, from.image(t, "x", foreign), storetest.NewMemory(), "", store.CopyOptions{}); err == nil {
		t.Error("a layer without another server may be missing")
	}
}

// Images from outside are bounded, and nothing is written of those that are wrong.
func TestCopyImageHostile(t *testing.T) {
	from := newSource()
	large := v1.Descriptor{MediaType: v1.MediaTypeImageLayer, Digest: digest.FromString("large"), Size: 1 << 40}
	endless := large
	endless.Size = 1 << 62
	deep := from.image(t, "deep")
	for range 6 {
		deep = from.index(t, deep)
	}
	forged := from.image(t, "forged")
	from.Manifests[forged.Digest.String()] = []byte("{}")
	var many []v1.Descriptor
	for i := range 1001 {
		many = append(many,
			v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromString(fmt.Sprint(i))})
	}
	missing := v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromString("missing")}
	for name, test := range map[string]struct {
		top  v1.Descriptor
		o    store.CopyOptions
		want error
	}{
		"more bytes than allowed": {from.image(t, "a", large), store.CopyOptions{Limits: store.Limits{Content: 1 << 30}},
			fault.ErrLimit},
		"a size that is none": {from.image(t, "b", endless), store.CopyOptions{}, fault.ErrLimit},
		"indexes in indexes":  {deep, store.CopyOptions{}, fault.ErrLimit},
		"many entries":        {from.index(t, many...), store.CopyOptions{}, fault.ErrLimit},
		"another text":        {forged, store.CopyOptions{}, fault.ErrIntegrity},
		"schema 1": {from.put(t, map[string]any{"schemaVersion": 1, "fsLayers": []string{}}, ""), store.CopyOptions{},
			fault.ErrInvalid},
		"no digest": {v1.Descriptor{Digest: "sha256:../x"}, store.CopyOptions{}, fault.ErrInvalid},
	} {
		to := storetest.NewMemory()
		_, err := store.CopyOne(t.Context(), from, test.top, to, "v1", test.o)
		if !errors.Is(err, test.want) || to.Writes > 0 {
			t.Errorf("%s: %v, %d writes", name, err, to.Writes)
		}
	}
	var of *store.SourceError
	if _, err := store.CopyOne(t.Context(), from, missing, storetest.NewMemory(), "", store.CopyOptions{}); !errors.As(err, &of) {
		t.Error(err)
	}
}
