package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// writerTo returns a new client's view of a repository.
func writerTo(t testing.TB, r *testregistry.Registry, repository string) *Repository {
	t.Helper()
	yes := true
	client, err := New(t.Context(), Options{Temp: t.TempDir(),
		Registry: Config{SkipTLSVerify: &yes, PlainHTTP: true, RegistriesConf: "/dev/null"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	to, err := client.Repository(r.Host() + "/" + repository)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// artifact is a manifest whose subject is another one.
func artifact(t testing.TB, subject digest.Digest, name string) []byte {
	t.Helper()
	text, err := json.Marshal(v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageManifest, ArtifactType: "application/x-test", Config: v1.DescriptorEmptyJSON,
		Layers: []v1.Descriptor{v1.DescriptorEmptyJSON}, Annotations: map[string]string{"name": name},
		Subject: &v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: subject, Size: 2}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func digests(found []v1.Descriptor) (all []string) {
	for _, d := range found {
		all = append(all, d.Digest.String())
	}
	slices.Sort(all)
	return all
}

var theSubject = digest.FromString("subject")

// What is written is listed, with and without the API, and the fallback tag is written only without it.
func TestReferrersAreListed(t *testing.T) {
	for name, o := range map[string]testregistry.Referrers{
		"API":           {API: true, Header: true},
		"no header":     {API: true},
		"pages":         {API: true, Header: true, Page: 2},
		"wrong types":   {API: true, WrongTypes: true},
		"no API":        {},
		"header, alone": {Header: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := testregistry.New(t)
			r.SetReferrers(o)
			to := writerTo(t, r, "acme/catalog")
			if found, err := to.Referrers(t.Context(), theSubject, nil); err != nil || len(found) != 0 {
				t.Fatalf("before: %v %v", found, err)
			}
			var want []string
			for i := range 5 {
				text := artifact(t, theSubject, fmt.Sprint(i))
				want = append(want, digest.FromBytes(text).String())
				for range 2 { // the second time nothing changes
					if err := to.WriteManifest(t.Context(), text, v1.MediaTypeImageManifest, store.WriteOptions{}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := to.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			slices.Sort(want)
			found, err := to.Referrers(t.Context(), theSubject, nil)
			if err != nil || o.API != o.Header && !o.API {
				return // the registry says that it lists, and does not
			}
			if got := digests(found); !slices.Equal(got, want) {
				t.Errorf("listed %v and not %v", got, want)
			}
			tags := r.Tags("acme/catalog")
			if o.API != (len(tags) == 0) {
				t.Errorf("tags %v", tags)
			}
			for _, d := range found {
				if !o.WrongTypes && (d.ArtifactType != "application/x-test" || d.Annotations["name"] == "") {
					t.Errorf("%+v", d)
				}
			}
		})
	}
}

// Only what says that there is no list counts as none. Everything else is an error.
func TestAnswersToListRequests(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		kind   string
		body   string
		want   error
	}{
		{"not found", 404, "", "", nil},
		{"bad request", 400, "", "", nil},
		{"method", 405, "", "", nil},
		{"not acceptable", 406, "", "", nil},
		{"a page for people", 200, "text/html", "<html>", nil},
		{"JSON of another kind", 200, "application/json", "{}", nil},
		{"unauthorized", 401, "", "", fault.ErrRegistry},
		{"forbidden", 403, "", "", fault.ErrRegistry},
		{"too many", 429, "", "", fault.ErrRegistry},
		{"failing", 500, "", "", fault.ErrRegistry},
		{"not JSON", 200, v1.MediaTypeImageIndex, "{", fault.ErrInvalid},
		{"an image", 200, v1.MediaTypeImageIndex, `{"schemaVersion":2,"layers":[]}`, fault.ErrInvalid},
		{"a large page", 200, v1.MediaTypeImageIndex, `{"schemaVersion":2,"manifests":[]}` +
			strings.Repeat(" ", 4<<20), fault.ErrLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := testregistry.New(t)
			r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
				if !strings.Contains(q.URL.Path, "/referrers/") {
					return false
				}
				if c.kind != "" {
					w.Header().Set("Content-Type", c.kind)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
				return true
			})
			found, err := writerTo(t, r, "acme/catalog").Referrers(t.Context(), theSubject, nil)
			if !errors.Is(err, c.want) || len(found) > 0 {
				t.Errorf("%v, %v instead of %v", found, err, c.want)
			}
		})
	}
}

// A list has an end, and is of one repository of one registry.
func TestHostilePages(t *testing.T) {
	for name, c := range map[string]struct {
		entries func(page int) int
		link    func(q *http.Request, page int) string
		want    error
		found   int
	}{
		"10,000 on 100 pages": {want: nil, found: 10_000,
			entries: func(int) int { return 100 },
			link: func(q *http.Request, page int) string {
				if page == 100 {
					return ""
				}
				return fmt.Sprintf(`<%s?page=%d>; title="a, b"; rel="next"`, q.URL.Path, page+1)
			}},
		"10,001": {want: fault.ErrLimit, entries: func(page int) int { return 100 + page/100 },
			link: func(q *http.Request, page int) string {
				return fmt.Sprintf("<%s?page=%d>; rel=next", q.URL.Path, page+1)
			}},
		"101 pages": {want: fault.ErrLimit, entries: func(int) int { return 0 },
			link: func(q *http.Request, page int) string {
				return fmt.Sprintf("<%s?page=%d>; rel=next", q.URL.Path, page+1)
			}},
		"itself": {want: fault.ErrLimit, entries: func(int) int { return 1 },
			link: func(q *http.Request, _ int) string { return "<" + q.URL.String() + `>; rel="next"` }},
		"another host": {want: fault.ErrRegistry, entries: func(int) int { return 1 },
			link: func(q *http.Request, _ int) string {
				return "<http://127.0.0.1:1" + q.URL.Path + `?page=2>; rel="next"`
			}},
		"another port": {want: fault.ErrRegistry, entries: func(int) int { return 1 },
			link: func(q *http.Request, _ int) string {
				host, _, _ := strings.Cut(q.Host, ":")
				return "<http://" + host + ":1" + q.URL.Path + `?page=2>; rel="next"`
			}},
		"another repository": {want: fault.ErrRegistry, entries: func(int) int { return 1 },
			link: func(*http.Request, int) string {
				return "</v2/evil/referrers/" + theSubject.String() + `?page=2>; rel="next"`
			}},
		"another file": {want: fault.ErrRegistry, entries: func(int) int { return 1 },
			link: func(*http.Request, int) string { return `<file:///etc/passwd>; rel="next"` }},
		"not the next": {want: nil, found: 1, entries: func(int) int { return 1 },
			link: func(q *http.Request, _ int) string { return "<" + q.URL.Path + `?page=2>; rel="last"` }},
	} {
		t.Run(name, func(t *testing.T) {
			r := testregistry.New(t)
			r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
				if !strings.Contains(q.URL.Path, "/referrers/") {
					return false
				}
				page := 1
				_, _ = fmt.Sscan(q.URL.Query().Get("page"), &page)
				index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, Manifests: []v1.Descriptor{}}
				for i := range c.entries(page) {
					index.Manifests = append(index.Manifests, v1.Descriptor{Digest: digest.FromString(
						fmt.Sprint(page, i))})
				}
				if link := c.link(q, page); link != "" {
					w.Header().Set("Link", link)
				}
				w.Header().Set("Content-Type", v1.MediaTypeImageIndex)
				_ = json.NewEncoder(w).Encode(index)
				return true
			})
			found, err := writerTo(t, r, "acme/catalog").Referrers(t.Context(), theSubject, nil)
			if !errors.Is(err, c.want) || len(found) != c.found {
				t.Errorf("%d, %v instead of %d, %v", len(found), err, c.found, c.want)
			}
		})
	}
}

// A fallback tag that is something else lists nothing, and is not written over.
func TestFallbackTagOfSomethingElse(t *testing.T) {
	r := testregistry.New(t)
	other := []byte(`{"schemaVersion":2,"config":{},"layers":[]}`)
	tag := reflist.Tag(theSubject)
	r.AddManifest("acme/catalog", tag, v1.MediaTypeImageManifest, other)
	to := writerTo(t, r, "acme/catalog")
	if found, err := to.Referrers(t.Context(), theSubject, nil); err != nil || len(found) != 0 {
		t.Errorf("%v %v", found, err)
	}
	err := to.WriteManifest(t.Context(), artifact(t, theSubject, "a"), v1.MediaTypeImageManifest, store.WriteOptions{})
	if !errors.Is(err, reflist.ErrNotList) {
		t.Errorf("%v", err)
	}
	if got := r.Manifest("acme/catalog", tag); string(got) != string(other) {
		t.Errorf("the tag is %s", got)
	}
}

// The order of the index and members that are not known stay.
func TestFallbackIndexIsKept(t *testing.T) {
	r := testregistry.New(t)
	tag := reflist.Tag(theSubject)
	old := `{"x-first":1,"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json",` +
		`"manifests":[{"mediaType":"m","digest":"` + theSubject.String() +
		`","size":1,"x-own":{"a":[1]}}],"x-last":"z"}`
	r.AddManifest("acme/catalog", tag, v1.MediaTypeImageIndex, []byte(old))
	to := writerTo(t, r, "acme/catalog")
	text := artifact(t, theSubject, "a")
	if err := to.WriteManifest(t.Context(), text, v1.MediaTypeImageManifest, store.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	got := string(r.Manifest("acme/catalog", tag))
	before, after, _ := strings.Cut(old, `]}}],`)
	if !strings.HasPrefix(got, before+"]}},{") || !strings.HasSuffix(got, "}],"+after) ||
		!strings.Contains(got, digest.FromBytes(text).String()) {
		t.Error(got)
	}
}

// Twenty clients that write at the same time lose nothing: by conditions where the registry honours them, and by
// reading again where it does not.
func TestManyWriters(t *testing.T) {
	for _, conditional := range []bool{true, false} {
		t.Run(fmt.Sprint("conditional ", conditional), func(t *testing.T) {
			r := testregistry.New(t)
			if conditional {
				r.ConditionalPut()
			}
			var all sync.WaitGroup
			var want []string
			for i := range 20 {
				text := artifact(t, theSubject, fmt.Sprint(i))
				want = append(want, digest.FromBytes(text).String())
				to := writerTo(t, r, "acme/catalog")
				all.Go(func() {
					err := to.WriteManifest(t.Context(), text, v1.MediaTypeImageManifest, store.WriteOptions{})
					if err == nil {
						err = to.Settle(t.Context())
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			slices.Sort(want)
			found, err := writerTo(t, r, "acme/catalog").Referrers(t.Context(), theSubject, nil)
			if got := digests(found); err != nil || !slices.Equal(got, want) {
				t.Errorf("%d of %d are listed (%v)", len(got), len(want), err)
			}
		})
	}
}

// A registry that refuses every condition, although no other client writes, is written to without one.
func TestConditionsThatAreNeverMet(t *testing.T) {
	r := testregistry.New(t)
	r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if q.Header.Get("If-Match")+q.Header.Get("If-None-Match") == "" {
			return false
		}
		w.WriteHeader(http.StatusPreconditionFailed)
		return true
	})
	to := writerTo(t, r, "acme/catalog")
	for i := range 2 {
		text := artifact(t, theSubject, fmt.Sprint(i))
		if err := to.WriteManifest(t.Context(), text, v1.MediaTypeImageManifest, store.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := to.Referrers(t.Context(), theSubject, nil); err != nil || len(found) != 2 {
		t.Errorf("%v %v", found, err)
	}
}

// A registry that refuses to write a tag with the status of conditions is asked once without one, and its reason is the
// error.
func TestTagThatIsNeverWritten(t *testing.T) {
	r := testregistry.New(t)
	tag, writes := reflist.Tag(theSubject), 0
	r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if q.Method != http.MethodPut || !strings.HasSuffix(q.URL.Path, tag) {
			return false
		}
		writes++
		w.WriteHeader(http.StatusPreconditionFailed)
		fmt.Fprint(w, `{"errors":[{"code":"PRECONDITION","message":"configured as immutable"}]}`)
		return true
	})
	err := writerTo(t, r, "acme/catalog").WriteManifest(t.Context(), artifact(t, theSubject, "1"),
		v1.MediaTypeImageManifest, store.WriteOptions{})
	if err == nil || !strings.Contains(err.Error(), "configured as immutable") || writes != 2 {
		t.Errorf("%d writes: %v", writes, err)
	}
}

// A change that another client undoes each time fails at last, and is not reported as done.
func TestNeverListed(t *testing.T) {
	defer func(d time.Duration) { contendedSettle = d }(contendedSettle)
	contendedSettle = time.Millisecond
	r := testregistry.New(t)
	tag := reflist.Tag(theSubject)
	r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if q.Method != http.MethodPut || !strings.HasSuffix(q.URL.Path, tag) {
			return false
		}
		_, _ = io.Copy(io.Discard, q.Body)
		w.WriteHeader(http.StatusCreated)
		return true
	})
	to := writerTo(t, r, "acme/catalog")
	if err := to.WriteManifest(t.Context(), artifact(t, theSubject, "a"), v1.MediaTypeImageManifest, store.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := to.Settle(t.Context()); !errors.Is(err, ErrNotListed) || !errors.Is(err, fault.ErrRegistry) {
		t.Errorf("%v", err)
	}
	if n := r.Count("PUT /v2/acme/catalog/manifests/" + tag); n != maxTagWrites {
		t.Errorf("written %d times", n)
	}
}

// Blobs and manifests are read and written; what the registry does not have is an error of its own.
func TestRepositoryContent(t *testing.T) {
	r := testregistry.New(t)
	r.Separate(false)
	to := writerTo(t, r, "acme/catalog")
	content := strings.Repeat("content", 100_000)
	d := v1.Descriptor{Digest: digest.FromString(content), Size: int64(len(content))}
	if _, err := to.Blob(t.Context(), d, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a blob that is not there: %v", err)
	}
	if _, _, err := to.Manifest(t.Context(), "v1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a tag that is not there: %v", err)
	}
	open := func(context.Context, int64) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}
	for range 2 {
		if _, err := to.WriteBlob(t.Context(), d, store.Content{Open: open}); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.Count("PUT /v2/acme/catalog/blobs/uploads/"); n != 1 {
		t.Errorf("sent %d times", n)
	}
	b, err := to.Blob(t.Context(), d, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got, err := io.ReadAll(b); err != nil || string(got) != content {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	wrong := v1.Descriptor{Digest: digest.FromString("other"), Size: d.Size}
	if _, err := to.WriteBlob(t.Context(), wrong, store.Content{Open: open}); !errors.Is(err, fault.ErrIntegrity) {
		t.Errorf("a blob that is another: %v", err)
	}
}
