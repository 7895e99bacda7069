package referrers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/internal/sigblob"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/store/storetest"
	"github.com/operator-bindery/bindery/internal/fault"
)

// place is a repository in memory, whose lists say what a test makes them say.
type place struct {
	*storetest.Memory
	listErr error
	refuse  func(name string) error
}

func newPlace() *place {
	p := &place{Memory: storetest.NewMemory()}
	p.Refuse = func(name string) error {
		if strings.HasPrefix(name, "referrers of ") {
			return p.listErr
		}
		if p.refuse == nil {
			return nil
		}
		return p.refuse(name)
	}
	return p
}

func (p *place) artifact(t testing.TB, subject digest.Digest, name string) digest.Digest {
	t.Helper()
	d, err := Attach(t.Context(), p, v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: subject, Size: 1},
		Artifact{Type: "application/x-test", Content: []byte(name)})
	if err != nil {
		t.Fatal(err)
	}
	return d.Digest
}

var image = digest.FromString("image")

// The same document gives the same artifact, which is written once.
func TestAttach(t *testing.T) {
	p := newPlace()
	first := p.artifact(t, image, "a")
	before := p.Writes
	if again := p.artifact(t, image, "a"); again != first || p.Writes != before {
		t.Errorf("%s, then %s with %d writes", first, again, p.Writes-before)
	}
	var m v1.Manifest
	if err := json.Unmarshal(p.Manifests[first.String()], &m); err != nil {
		t.Fatal(err)
	}
	if m.Config.MediaType != "application/vnd.oci.empty.v1+json" || string(p.Blobs[m.Config.Digest]) != "{}" ||
		m.Subject.Digest != image || m.Annotations[v1.AnnotationCreated] != "1970-01-01T00:00:00Z" ||
		m.ArtifactType != "application/x-test" || string(p.Blobs[m.Layers[0].Digest]) != "a" {
		t.Errorf("%s", p.Manifests[first.String()])
	}
}

// What a list says wrongly is a problem; what it says rightly is found anyway.
func TestList(t *testing.T) {
	p := newPlace()
	good := p.artifact(t, image, "good")
	other := p.artifact(t, digest.FromString("another image"), "of another image")
	large := digest.FromString("large")
	bad := digest.FromString("bad")
	p.Manifests[bad.String()] = []byte("not what the digest says")
	text := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json"}`)
	none := digest.FromBytes(text)
	p.Manifests[none.String()] = text
	p.Lists[image] = append(p.Lists[image], v1.Descriptor{Digest: good}, v1.Descriptor{Digest: other},
		v1.Descriptor{Digest: large, Size: 5 << 20}, v1.Descriptor{Digest: bad}, v1.Descriptor{Digest: none},
		v1.Descriptor{Digest: digest.FromString("missing")}, v1.Descriptor{Digest: "sha256:../../x"},
		v1.Descriptor{Digest: image}, v1.Descriptor{})
	found, problems, err := List(t.Context(), p, image, store.Limits{}.NewBudget())
	if err != nil || len(found) != 1 || found[0].Digest != good || found[0].ArtifactType != "application/x-test" {
		t.Errorf("%v %v", found, err)
	}
	var classes []string
	for _, problem := range problems {
		for name, class := range map[string]error{"missing": fs.ErrNotExist, "limit": fault.ErrLimit,
			"integrity": fault.ErrIntegrity, "invalid": fault.ErrInvalid} {
			if errors.Is(problem, class) {
				classes = append(classes, name)
			}
		}
	}
	want := []string{"invalid", "limit", "integrity", "invalid", "missing", "invalid", "missing", "invalid"}
	if !slices.Equal(classes, want) {
		t.Errorf("problems %v %v", classes, problems)
	}
	p.listErr = errors.New("the registry fails")
	if _, _, err := List(t.Context(), p, image, store.Limits{}.NewBudget()); !errors.Is(err, p.listErr) {
		t.Errorf("%v", err)
	}
}

// store.Limits hold for all lists of an image together.
func TestLimits(t *testing.T) {
	p := newPlace()
	first := p.artifact(t, image, "a")
	p.artifact(t, image, "b")
	p.artifact(t, first, "c")
	tree := func(l store.Limits) error {
		_, err := ReadTree(t.Context(), p, store.Image{Top: v1.Descriptor{Digest: image}}, l)
		return err
	}
	if err := tree(store.Limits{Count: 3}); err != nil {
		t.Error(err)
	}
	if err := tree(store.Limits{Count: 2}); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("count: %v", err)
	}
	if err := tree(store.Limits{Manifests: 1000}); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("bytes: %v", err)
	}
	_, err := Copy(t.Context(), p, newPlace(), []digest.Digest{image}, Kinds{Referrers: true}, store.Limits{Content: 3})
	if !errors.Is(err, fault.ErrLimit) {
		t.Errorf("content: %v", err)
	}
}

// chain adds referrers of referrers, and a loop from the last to the first.
func chain(t testing.TB, p *place, length int) []digest.Digest {
	t.Helper()
	all := []digest.Digest{image}
	for i := range length {
		all = append(all, p.artifact(t, all[i], fmt.Sprint(i)))
	}
	// A list can say anything; the manifest is wrongly listed and looked at no further.
	p.Lists[all[length]] = append(p.Lists[all[length]], v1.Descriptor{Digest: all[1]}, v1.Descriptor{Digest: image})
	p.Lists[image] = append(p.Lists[image], v1.Descriptor{Digest: image}, p.Lists[image][0])
	return all
}

// A tree ends, however lists refer to each other, and says what it leaves out.
func TestTree(t *testing.T) {
	for length, deep := range map[int]int{1: 1, 3: 3, 4: 3, 6: 3} {
		p := newPlace()
		chain(t, p, length)
		tree, err := ReadTree(t.Context(), p, store.Image{Top: v1.Descriptor{Digest: image}}, store.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		depth, last := 0, tree
		for len(last.Attached) > 0 {
			if len(last.Attached) != 1 {
				t.Fatalf("%d attached", len(last.Attached))
			}
			depth, last = depth+1, last.Attached[0]
		}
		if depth != deep || len(last.Problems) == 0 || length > deep != errors.Is(last.Problems[0], fault.ErrLimit) {
			t.Errorf("%d: depth %d, problems %v", length, depth, last.Problems)
		}
	}
}

// Attachments under tags are found on images, on the entries of an index and on referrers.
func TestTreeOfTags(t *testing.T) {
	p := newPlace()
	instance := digest.FromString("instance")
	attached := p.artifact(t, image, "a")
	layer := v1.Descriptor{MediaType: sigblob.MediaType, Digest: digest.FromString("layer"), Size: 5}
	for i, tag := range []string{TagOf(image, Signatures), TagOf(image, Attestations), TagOf(instance, Signatures),
		TagOf(attached, Signatures)} {
		one := layer
		one.Annotations = map[string]string{"n": fmt.Sprint(i)}
		if err := AppendLayers(t.Context(), p, tag, []v1.Descriptor{one}); err != nil {
			t.Fatal(err)
		}
	}
	p.Manifests[TagOf(instance, SBOM)] = []byte("not JSON")
	tree, err := ReadTree(t.Context(), p, store.Image{Top: v1.Descriptor{Digest: image},
		Instances: []v1.Descriptor{{Digest: instance}}}, store.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	var visit func(*Tree)
	visit = func(n *Tree) {
		if n.Tag != "" {
			tags = append(tags, n.Tag)
		}
		for _, below := range slices.Concat(n.Attached, n.Instances) {
			visit(below)
		}
	}
	visit(tree)
	want := []string{TagOf(image, Signatures), TagOf(image, Attestations), TagOf(attached, Signatures),
		TagOf(instance, Signatures)}
	if !slices.Equal(tags, want) || len(tree.Instances[0].Problems) != 1 {
		t.Errorf("%v %v", tags, tree.Instances[0].Problems)
	}
}

// A copy takes the kinds that are requested, as deep as the limit, leaves what is listed wrongly, and reports it.
func TestCopy(t *testing.T) {
	from := newPlace()
	all := chain(t, from, 5)
	layer := v1.Descriptor{MediaType: sigblob.MediaType, Digest: digest.FromString("layer"), Size: 5}
	from.Blobs[layer.Digest] = []byte("layer")
	if err := AppendLayers(t.Context(), from, TagOf(all[1], Signatures), []v1.Descriptor{layer}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what Kinds
		want int
	}{{Kinds{}, 0}, {Kinds{Tags: true}, 0}, {Kinds{Referrers: true}, 3}, {Kinds{Tags: true, Referrers: true}, 4}} {
		to := newPlace()
		account, err := Copy(t.Context(), from, to, []digest.Digest{image, image}, c.what, store.Limits{})
		if err != nil || len(account.Copied) != c.want {
			t.Errorf("%+v: %+v %v", c.what, account, err)
		}
		for _, one := range account.Copied {
			if !bytes.Equal(to.Manifests[one.Digest.String()], from.Manifests[one.Digest.String()]) {
				t.Errorf("%s differs", one.Digest)
			}
		}
		if deep := strings.Contains(strings.Join(account.Problems, "\n"),
			"more than 3 deep"); deep != c.what.Referrers {
			t.Errorf("%+v: problems %v", c.what, account.Problems)
		}
	}
}

// A blob that is missing or wrong at the source leaves its attachment out, and no other.
func TestCopyOfBrokenAttachments(t *testing.T) {
	from, to := newPlace(), newPlace()
	good := from.artifact(t, image, "good")
	from.artifact(t, image, "broken")
	delete(from.Blobs, digest.FromString("broken"))
	account, err := Copy(t.Context(), from, to, []digest.Digest{image}, Kinds{Referrers: true}, store.Limits{})
	if err != nil || len(account.Copied) != 1 || account.Copied[0].Digest != good || len(account.Problems) != 1 ||
		len(to.Lists[image]) != 1 {
		t.Errorf("%+v %v", account, err)
	}
}

// The entries of an attached index keep their subjects: at the destination none is listed for another image.
func TestCopyOfAnIndexWithSubjects(t *testing.T) {
	from, to := newPlace(), newPlace()
	other := digest.FromString("other image")
	inner := from.artifact(t, other, "inner")
	text := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"artifactType":"application/x-test","manifests":[{"mediaType":`+
		`%q,"digest":%q,"size":%d}],"subject":{"mediaType":%[2]q,"digest":%[5]q,"size":1}}`, v1.MediaTypeImageIndex,
		v1.MediaTypeImageManifest, inner, len(from.Manifests[inner.String()]), image)
	if err := from.WriteManifest(t.Context(), []byte(text), v1.MediaTypeImageIndex, store.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	account, err := Copy(t.Context(), from, to, []digest.Digest{image}, Kinds{Referrers: true}, store.Limits{})
	if err != nil || len(account.Copied) != 0 || len(account.Problems) != 1 || len(to.Lists) != 0 {
		t.Errorf("%+v %v, lists %v", account, err, to.Lists)
	}
}

// An SBOM under a tag is not mixed with another one at the destination.
func TestCopyOfAnotherSBOM(t *testing.T) {
	from, to := newPlace(), newPlace()
	for p, text := range map[*place]string{from: "a", to: "b"} {
		layer := v1.Descriptor{MediaType: "m", Digest: digest.FromString(text), Size: 1}
		p.Blobs[layer.Digest] = []byte(text)
		if err := AppendLayers(t.Context(), p, TagOf(image, SBOM), []v1.Descriptor{layer}); err != nil {
			t.Fatal(err)
		}
	}
	before := string(to.Manifests[TagOf(image, SBOM)])
	account, err := Copy(t.Context(), from, to, []digest.Digest{image}, Kinds{Tags: true}, store.Limits{})
	if err != nil || len(account.Problems) != 1 || string(to.Manifests[TagOf(image, SBOM)]) != before {
		t.Errorf("%+v %v", account, err)
	}
}

// The entries of an index, and of an index in it, are instances, each once.
func TestReadImage(t *testing.T) {
	p := newPlace()
	add := func(entries ...v1.Descriptor) v1.Descriptor {
		text, err := json.Marshal(v1.Index{Versioned: specs.Versioned{SchemaVersion: 2},
			MediaType: v1.MediaTypeImageIndex, Manifests: entries})
		if err != nil {
			t.Fatal(err)
		}
		d := v1.Descriptor{MediaType: v1.MediaTypeImageIndex, Digest: digest.FromBytes(text), Size: int64(len(text))}
		p.Manifests[d.Digest.String()] = text
		return d
	}
	arm := v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromString("arm"), Size: 1,
		Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}}
	amd := v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromString("amd"), Size: 1}
	inner := add(amd)
	got, err := store.ReadImage(t.Context(), p, add(arm, inner, amd))
	if err != nil || len(got.Instances) != 3 || got.Instances[0].Platform.Architecture != "arm64" ||
		len(got.Subjects()) != 4 {
		t.Errorf("%+v %v", got, err)
	}
	deep := add(amd)
	for range 8 {
		deep = add(deep)
	}
	if _, err := store.ReadImage(t.Context(), p, deep); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("%v", err)
	}
	if _, err := store.ReadImage(t.Context(), p, add(v1.Descriptor{Digest: "sha256:x"})); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// A tag of signatures that stands for an index, also for one that does not say its type, is left as it is.
func TestNothingIsAddedToAnIndex(t *testing.T) {
	for _, text := range []string{
		`{"schemaVersion":2,"manifests":[{"mediaType":"m","digest":"` + image.String() + `","size":1}]}`,
		`{"schemaVersion":2,"mediaType":"` + v1.MediaTypeImageIndex + `","manifests":[]}`,
		`{"schemaVersion":2,"layers":[],"Layers":[]}`,
	} {
		p := newPlace()
		tag := TagOf(image, Signatures)
		p.Manifests[tag] = []byte(text)
		err := AppendLayers(t.Context(), p, tag, []v1.Descriptor{{MediaType: "m", Digest: image, Size: 1}})
		if !errors.Is(err, fault.ErrInvalid) || string(p.Manifests[tag]) != text || p.Writes > 0 {
			t.Errorf("%s: %v, %d writes, %s", text, err, p.Writes, p.Manifests[tag])
		}
	}
}

// Layers beyond those that verifiers read are not added: they would make the others unreadable too.
func TestTagsHaveALimit(t *testing.T) {
	p := newPlace()
	tag := TagOf(image, Signatures)
	layers := func(from, to int) (made []v1.Descriptor) {
		for n := from; n < to; n++ {
			made = append(made, v1.Descriptor{MediaType: "m", Digest: image, Size: 1,
				Annotations: map[string]string{"n": fmt.Sprint(n)}})
		}
		return made
	}
	if err := AppendLayers(t.Context(), p, tag, layers(0, sigblob.MaxCount)); err != nil {
		t.Fatal(err)
	}
	before := string(p.Manifests[tag])
	err := AppendLayers(t.Context(), p, tag, layers(sigblob.MaxCount, sigblob.MaxCount+1))
	if !errors.Is(err, fault.ErrLimit) || string(p.Manifests[tag]) != before {
		t.Errorf("%v", err)
	}
}

// A source that shows no attachments to this client is no reason to fail where they may be missing.
func TestCopyReadable(t *testing.T) {
	denied := errors.New("status 403 Forbidden")
	from := newPlace()
	top := v1.Descriptor{Digest: digest.FromString("image")}
	shown := from.artifact(t, top.Digest, "shown")
	hidden := TagOf(top.Digest, Signatures)
	from.refuse = func(name string) error {
		if name == hidden {
			return denied
		}
		return nil
	}
	all := Kinds{Tags: true, Referrers: true}
	if _, err := Copy(t.Context(), from, newPlace(), []digest.Digest{top.Digest}, all, store.Limits{}); !errors.Is(err,
		denied) {
		t.Error(err)
	}
	to := newPlace()
	got, err := CopyReadable(t.Context(), from, to, []digest.Digest{top.Digest}, all, store.Limits{})
	if err != nil || len(got.Copied) != 1 || len(got.Unread) != 1 || got.Unread[0].Tag != hidden ||
		!strings.Contains(got.Unread[0].Answer, "403") || to.Manifests[shown.String()] == nil {
		t.Errorf("%+v, %v", got, err)
	}
	// So is a list that is refused, and a blob of what is listed.
	from.listErr = denied
	got, err = CopyReadable(t.Context(), from, newPlace(), []digest.Digest{top.Digest}, all, store.Limits{})
	if err != nil || len(got.Copied) != 0 || len(got.Unread) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	from.listErr = nil
	from.refuse = func(name string) error {
		if name == digest.FromString("shown").String() {
			return denied
		}
		return nil
	}
	got, err = CopyReadable(t.Context(), from, newPlace(), []digest.Digest{top.Digest}, all, store.Limits{})
	if err != nil || len(got.Copied) != 0 || len(got.Unread) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	from.refuse = func(string) error { return ctx.Err() }
	if _, err := CopyReadable(ctx, from, newPlace(), []digest.Digest{top.Digest}, all, store.Limits{}); err == nil {
		t.Error("a copy that was cancelled is no success")
	}
}
