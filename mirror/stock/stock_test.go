package stock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/store/storetest"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/mirror/stock"
)

var (
	amd64 = v1.Platform{OS: "linux", Architecture: "amd64"}
	arm64 = v1.Platform{OS: "linux", Architecture: "arm64"}
)

func image(p v1.Platform, name string) testregistry.Image {
	return testregistry.Image{Platform: p, Layers: []map[string]string{{"name": name}, {"shared": "content"}}}
}

// opener returns how repositories of test registries are opened.
func opener(t *testing.T) (*registries.Client, func(string) (store.Reader, error)) {
	t.Helper()
	skip := true
	remote, err := registries.New(t.Context(), registries.Options{Temp: t.TempDir(),
		Registry: registries.Config{SkipTLSVerify: &skip, PlainHTTP: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = remote.Close() })
	return remote, func(name string) (store.Reader, error) { return remote.Repository(name) }
}

// blobsOf returns the blobs of a manifest in a test registry.
func blobsOf(t *testing.T, r *testregistry.Registry, repository string, d digest.Digest) []v1.Descriptor {
	t.Helper()
	parts, err := store.PartsOf(r.Manifest(repository, d.String()))
	if err != nil {
		t.Fatal(err)
	}
	return parts.Blobs
}

// What is missing is found, in the images that need it and in no others, with one request for each thing.
func TestCheck(t *testing.T) {
	r := testregistry.New(t)
	index := r.AddIndex(t, "m/app", "v1", nil, []testregistry.Image{image(amd64, "a"), image(arm64, "b")})
	entries, err := store.PartsOf(r.Manifest("m/app", "v1"))
	if err != nil {
		t.Fatal(err)
	}
	arm := entries.Manifests[1].Digest
	good := r.AddImage(t, "m/good", "v1", image(amd64, "good"))
	bad := r.AddImage(t, "m/bad", "v1", image(amd64, "bad"))
	lost := blobsOf(t, r, "m/bad", bad)[1] // its own layer
	r.DeleteBlob(lost.Digest)
	none := digest.FromString("none")
	_, open := opener(t)
	wanted := func(name, tag string, d digest.Digest, platforms ...v1.Platform) stock.Wanted {
		return stock.Wanted{Repository: r.Host() + "/m/" + name, Name: tag, Digest: d, Platforms: platforms}
	}
	// The image for arm64 is deleted: the index is sparse.
	dest := r.Host() + "/m/app"
	at, err := open(dest)
	if err != nil {
		t.Fatal(err)
	}
	if err := at.(*registries.Repository).Delete(t.Context(), arm); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"good v1":                 "",
		"good " + good.String():   "",
		"app v1 linux/amd64":      "",
		"app v1":                  "absent-manifest " + arm.String(),
		"app " + index.String():   "absent-manifest " + arm.String(),
		"bad v1":                  "absent-blob " + lost.Digest.String(),
		"good v2":                 "absent-manifest",
		"good " + none.String():   "absent-manifest " + none.String(),
		"missing v1":              "absent-manifest",
		"good v1 " + bad.String(): "wrong-digest " + bad.String() + ", absent-manifest " + bad.String(),
	}
	list := []stock.Wanted{wanted("good", "v1", good), wanted("good", good.String(), ""),
		wanted("app", "v1", "", amd64),
		wanted("app", "v1", index), wanted("app", index.String(), ""), wanted("bad", "v1", bad),
		wanted("good", "v2", ""),
		wanted("good", none.String(), ""), wanted("missing", "v1", ""), wanted("good", "v1", bad)}
	got := map[string]string{}
	r.Forget()
	summary, err := stock.Check(t.Context(), open, slices.Values(list), stock.CheckOptions{Done: func(f stock.Finding) {
		name := strings.TrimPrefix(f.Repository, r.Host()+"/m/") + " " + f.Name
		if f.Digest != "" && f.Digest == bad && f.Name == "v1" && strings.HasPrefix(name, "good") {
			name += " " + bad.String()
		}
		if len(f.Platforms) > 0 {
			name += " linux/amd64"
		}
		var says []string
		for _, p := range f.Problems {
			says = append(says, strings.TrimSpace(string(p.Kind)+" "+p.Digest.String()))
			if p.Error() == "" {
				t.Errorf("%+v has no text", p)
			}
		}
		got[name] = strings.Join(says, ", ")
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, says := range want {
		if got[name] != says {
			t.Errorf("%s: %q instead of %q", name, got[name], says)
		}
	}
	if len(got) != len(want) || summary.Images != len(want) || summary.Wrong != 7 || summary.Problems != 8 {
		t.Errorf("%+v, %q", summary, got)
	}
	counts := map[string]int{}
	for _, q := range r.Requests() {
		if strings.HasPrefix(q, "HEAD ") && strings.Contains(q, "/blobs/") {
			counts[q]++
		}
	}
	for q, n := range counts {
		if n > 1 {
			t.Errorf("%s: %d times", q, n)
		}
	}
	// Manifests alone take one request for each image.
	r.Forget()
	summary, err = stock.Check(t.Context(), open, slices.Values(list[:1]), stock.CheckOptions{ManifestsOnly: true})
	if all := r.Requests(); err != nil || summary.Wrong != 0 || len(all) != 1 || !strings.HasPrefix(all[0], "HEAD ") {
		t.Errorf("%+v, %v, %q", summary, err, all)
	}
}

// A registry that answers nonsense is a problem of the image, and one that fails is not taken for absence.
func TestCheckHostile(t *testing.T) {
	r := testregistry.New(t)
	d := r.AddImage(t, "app", "v1", image(amd64, "a"))
	for want, answer := range map[stock.Kind]func(w http.ResponseWriter){
		stock.WrongDigest: func(w http.ResponseWriter) { fmt.Fprint(w, `{"schemaVersion":2}`) },
		stock.Failed:      func(w http.ResponseWriter) { w.WriteHeader(http.StatusTeapot) },
		"failed ":         func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
	} {
		want = stock.Kind(strings.TrimSpace(string(want)))
		r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
			if q.Method != http.MethodGet || !strings.Contains(q.URL.Path, "/manifests/") {
				return false
			}
			answer(w)
			return true
		})
		_, open := opener(t)
		wanted := []stock.Wanted{{Repository: r.Host() + "/app", Name: d.String()}}
		_, err := stock.Check(t.Context(), open, slices.Values(wanted), stock.CheckOptions{Done: func(f stock.Finding) {
			if len(f.Problems) != 1 || f.Problems[0].Kind != want || f.Problems[0].Error() == "" {
				t.Errorf("%s: %+v", want, f.Problems)
			}
		}})
		if err != nil {
			t.Error(err)
		}
	}
}

// An inventory is what is there, the same bytes each time, and is read back.
func TestInventory(t *testing.T) {
	r := testregistry.New(t)
	r.SetRules(testregistry.Rules{Page: 3})
	index := r.AddIndex(t, "m/acme/app", "v1", nil, []testregistry.Image{image(amd64, "a"), image(arm64, "b")})
	var images []digest.Digest
	for i := range 10 {
		images = append(images, r.AddImage(t, fmt.Sprintf("m/r%d", i), "v1", image(amd64, fmt.Sprint(i))))
	}
	r.AddImage(t, "other/x", "v1", image(amd64, "x"))
	remote, open := opener(t)
	all, err := remote.Repositories(t.Context(), r.Host())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"is/not/there"}
	for _, name := range all {
		if rest, ok := strings.CutPrefix(name, "m/"); ok {
			names = append(names, rest)
		}
	}
	if len(names) != 12 {
		t.Fatalf("%q", names)
	}
	var texts [3]bytes.Buffer
	for i := range texts {
		got, err := stock.Take(t.Context(), open, &texts[i], stock.TakeOptions{Registry: r.Host(), Path: "m",
			Repositories: names, Plain: i == 2, Jobs: i + 1})
		if err != nil || got.Repositories != 11 || got.Tags != 11 || got.Manifests != 13 || got.LeftOut != 0 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if !bytes.Equal(texts[0].Bytes(), texts[1].Bytes()) || texts[2].Len() <= texts[0].Len() {
		t.Error("other bytes the second time, or larger in gzip")
	}
	for i := range texts {
		text := texts[i].Bytes()
		got, err := stock.Read(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		layer := blobsOf(t, r, "m/r3", images[3])[0].Digest
		if got.Registry != r.Host() || got.Path != "m" || got.Tag("acme/app", "v1") != index ||
			!got.Have(index) || !got.Have(images[9]) || !got.HaveManifest("r3", images[3]) ||
			got.HaveManifest("r4", images[3]) || !got.HaveBlob("r3", layer) || !got.Have(layer) ||
			got.Have(digest.FromString("none")) || got.Have("") || got.Have("sha512:00") ||
			len(got.Repositories()) != 11 || !slices.Equal(got.Tags("r0"), []string{"v1"}) || got.Digests() < 30 {
			t.Errorf("%+v", got)
		}
		for _, cut := range []int{0, 1, 2, 20, len(text) / 2, len(text) - 1} {
			if _, err := stock.Read(bytes.NewReader(text[:cut])); err == nil {
				t.Errorf("cut after %d bytes: no error", cut)
			}
		}
	}
}

// A bug while a tag is read does not leave the tag out silently.
func TestPanicLeavesNoTagOutSilently(t *testing.T) {
	r := testregistry.New(t)
	r.AddImage(t, "app", "v1", image(amd64, "a"))
	_, open := opener(t)
	var warned error
	got, err := stock.Take(t.Context(), func(name string) (store.Reader, error) {
		at, err := open(name)
		return panics{at}, err
	}, io.Discard, stock.TakeOptions{Registry: r.Host(), Repositories: []string{"app"},
		Warn: func(_ string, err error) { warned = err }})
	if err != nil || got.LeftOut != 1 || fault.ClassOf(warned) != fault.Bug {
		t.Errorf("%+v, %v, warning %v", got, err, warned)
	}
}

type panics struct{ store.Reader }

func (panics) Manifest(context.Context, string) ([]byte, string, error) { panic("a bug") }

// Where a tag is the list of referrers of an image that has the digest in the tag, the image is there anyway.
func TestInventoryOfDigestTags(t *testing.T) {
	r := testregistry.New(t)
	d := r.AddImage(t, "app", "", image(amd64, "a"))
	_, open := opener(t)
	at, err := open(r.Host() + "/app")
	if err != nil {
		t.Fatal(err)
	}
	w := at.(*registries.Repository)
	document, err := referrers.Attach(t.Context(), w, v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: d},
		referrers.Artifact{Type: "a/b", Content: []byte("text")})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := stock.Take(t.Context(), open, &text, stock.TakeOptions{Registry: r.Host(),
		Repositories: []string{"app"}}); err != nil {
		t.Fatal(err)
	}
	got, err := stock.Read(&text)
	if err != nil || !got.Have(d) || !got.Have(document.Digest) {
		t.Errorf("%v", err)
	}
}

// An inventory comes from another machine.
func TestHostileInventories(t *testing.T) {
	const head = `{"inventory":"registry","version":1,"registry":"h","repositories":[` + "\n"
	d := digest.FromString("x").String()
	good := `{"name":"a","tags":{"v1":"` + d + `"},"manifests":["` + d + `"],"blobs":[["` + d + `",3]]}`
	if _, err := stock.Read(strings.NewReader(head + good + "\n]}\n")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty":              "",
		"another kind":       strings.Replace(head, "registry", "other", 1) + "]}\n",
		"a later version":    strings.Replace(head, `version":1`, `version":2`, 1) + "]}\n",
		"a repository twice": head + good + ",\n" + good + "\n]}\n",
		"no name":            head + `{"tags":{}}` + "\n]}\n",
		"no digest":          head + strings.Replace(good, `["`+d, `["sha256:../x`, 1) + "\n]}\n",
		"no digest of a tag": head + strings.Replace(good, `v1":"`+d, `v1":"x`, 1) + "\n]}\n",
		"after the last":     head + good + "\n" + good + "\n]}\n",
		"after the end":      head + good + "\n]}\nx",
		"no end":             head + good + "\n",
	} {
		if _, err := stock.Read(strings.NewReader(text)); !errors.Is(err, images.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Endless zeros in gzip are one line.
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	if _, err := io.CopyN(w, zeros{}, 200<<20); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := stock.Read(&bomb); !errors.Is(err, images.ErrLimit) {
		t.Errorf("%v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A registry that cannot be asked is an error, and no empty inventory.
func TestInventoryOfBrokenRegistry(t *testing.T) {
	r := testregistry.New(t)
	r.AddImage(t, "app", "v1", image(amd64, "a"))
	r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if strings.HasSuffix(q.URL.Path, "/tags/list") {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	})
	_, open := opener(t)
	_, err := stock.Take(t.Context(), open, io.Discard,
		stock.TakeOptions{Registry: r.Host(), Repositories: []string{"app"}})
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	d := digest.FromString("x").String()
	f.Add([]byte(`{"inventory":"registry","version":1,"registry":"h","repositories":[` + "\n" +
		`{"name":"a","tags":{"v1":"` + d + `"},"manifests":["` + d + `"],"blobs":[["` + d + `",3]]}` + "\n]}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := stock.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, name := range got.Repositories() {
			for _, tag := range got.Tags(name) {
				if got.Tag(name, tag).Validate() != nil {
					t.Errorf("%q", got.Tag(name, tag))
				}
			}
		}
	})
}

// What is wrong in an index is wrong in each image that has it, however many are checked at once: what is missing, and
// indexes in too many indexes.
func TestCheckSharedIndexes(t *testing.T) {
	at := storetest.NewMemory()
	put := func(entries ...v1.Descriptor) v1.Descriptor {
		text, err := json.Marshal(v1.Index{Versioned: specs.Versioned{SchemaVersion: 2},
			MediaType: v1.MediaTypeImageIndex, Manifests: append([]v1.Descriptor{}, entries...)})
		if err == nil {
			err = at.WriteManifest(t.Context(), text, v1.MediaTypeImageIndex, store.WriteOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		return v1.Descriptor{MediaType: v1.MediaTypeImageIndex, Digest: digest.FromBytes(text), Size: int64(len(text))}
	}
	absent := v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromString("absent"), Size: 1,
		Platform: &amd64}
	inner := put(absent)
	deep := put()
	for range limit.MaxIndexDepth + 1 {
		deep = put(deep, absent)
	}
	var list []stock.Wanted
	for range 8 {
		for _, d := range []v1.Descriptor{put(inner), put(put(), inner), deep, put(deep)} {
			list = append(list, stock.Wanted{Repository: "m/app", Name: d.Digest.String()})
		}
	}
	wrong := map[string]int{}
	summary, err := stock.Check(t.Context(), func(string) (store.Reader, error) { return at, nil }, slices.Values(list),
		stock.CheckOptions{Done: func(f stock.Finding) {
			for _, p := range f.Problems {
				wrong[fmt.Sprint(p.Kind, " ", p.Platform)]++
			}
		}})
	if err != nil || summary.Images != len(list) || summary.Wrong != len(list) {
		t.Errorf("%+v, %v", summary, err)
	}
	if wrong["absent-manifest linux/amd64"] != 2*8 || wrong["invalid "] != 2*8 {
		t.Errorf("%v", wrong)
	}
}
