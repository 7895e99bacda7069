package registry

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// kinds counts requests by method and kind of address.
func kinds(r *testregistry.Registry) string {
	var all []string
	for _, kind := range []string{"HEAD blobs/sha256", "POST blobs/uploads", "PATCH blobs/uploads", "PUT blobs/uploads"} {
		method, part, _ := strings.Cut(kind, " ")
		n := 0
		for _, q := range r.Requests() {
			if strings.HasPrefix(q, method+" ") && strings.Contains(q, "/"+part) {
				n++
			}
		}
		all = append(all, fmt.Sprint(n, " ", method))
	}
	return strings.Join(all, ", ")
}

// content is a blob of a size.
func content(size int, first byte) (v1.Descriptor, []byte) {
	text := bytes.Repeat([]byte{first}, size)
	return v1.Descriptor{Digest: digest.FromBytes(text), Size: int64(size)}, text
}

// refusing has a registry answer to blobs in one request with a status.
func refusing(status int) func(*testregistry.Registry) {
	return func(r *testregistry.Registry) {
		r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
			refused := q.Method == http.MethodPost && q.URL.Query().Has("digest")
			if refused {
				w.WriteHeader(status)
			}
			return refused
		})
	}
}

// A blob below 1 MB is sent in the request that opens its upload, where the registry takes that. It is found out with
// one small blob, which no registry loses, and not again for another repository of the host.
func TestBlobsInOneRequest(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(r *testregistry.Registry)
		want string
	}{
		"taken":                   {(*testregistry.Registry).OnePost, "3 HEAD, 5 POST, 1 PATCH, 1 PUT"},
		"answered with a session": {func(*testregistry.Registry) {}, "2 HEAD, 5 POST, 1 PATCH, 5 PUT"},
		"refused":                 {refusing(http.StatusBadRequest), "2 HEAD, 6 POST, 1 PATCH, 5 PUT"},
		"refused by a firewall":   {refusing(http.StatusForbidden), "2 HEAD, 6 POST, 1 PATCH, 5 PUT"},
		"answered without an address": {func(r *testregistry.Registry) {
			r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
				lost := q.Method == http.MethodPost && q.URL.Query().Has("digest")
				if lost {
					w.WriteHeader(http.StatusAccepted)
				}
				return lost
			})
		}, "2 HEAD, 6 POST, 1 PATCH, 5 PUT"},
		"answered with success, and lost": {func(r *testregistry.Registry) {
			r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
				lost := q.Method == http.MethodPost && q.URL.Query().Has("digest")
				if lost {
					w.Header().Set("Docker-Content-Digest", digest.FromString("other").String())
					w.WriteHeader(http.StatusCreated)
				}
				return lost
			})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := testregistry.New(t)
			c.set(r)
			w := writerTo(t, r, "acme/app")
			other, err := w.repo.host.r.Repository(r.Host() + "/acme/other")
			if err != nil {
				t.Fatal(err)
			}
			var all []v1.Descriptor
			for i, size := range []int{100, 200, 300, 900_000, 1_200_000} {
				to := w
				if i == 2 {
					to = other
				}
				d, text := content(size, byte(i))
				all = append(all, d)
				err := store.WriteBytes(t.Context(), to, d, text)
				if c.want == "" && i == 0 {
					if !errors.Is(err, fault.ErrIntegrity) {
						t.Error(err)
					}
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if got := kinds(r); c.want != "" && got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			for _, d := range all[1:] {
				if there, err := w.HasBlob(t.Context(), d); !there || err != nil {
					t.Errorf("%d bytes: %v, %v", d.Size, there, err)
				}
			}
		})
	}
}

// A registry that answers success to such a request and lacks the blob gets blobs in sessions: the first answer is checked,
// and if it is a later one, when the manifest is refused.
func TestBlobInOneRequestIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		from  int // the request whose blob is lost, as those after it
		first error
	}{"at once": {1, nil}, "later": {2, store.ErrIncomplete}} {
		t.Run(name, func(t *testing.T) {
			r := testregistry.New(t)
			r.Separate(false)
			r.OnePost()
			n := 0
			r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
				if q.Method != http.MethodPost || !q.URL.Query().Has("digest") {
					return false
				}
				if n++; n < c.from {
					return false
				}
				w.WriteHeader(http.StatusCreated)
				return true
			})
			w := writerTo(t, r, "acme/app")
			one, first := content(100, 'x')
			two, second := content(200, 'y')
			manifest := []byte(`{"schemaVersion":2,"config":{"digest":"` + one.Digest.String() + `","size":100},"layers":[{"digest":"` +
				two.Digest.String() + `","size":200}]}`)
			write := func() error {
				err := store.WriteBytes(t.Context(), w, one, first)
				if err == nil {
					err = store.WriteBytes(t.Context(), w, two, second)
				}
				if err != nil {
					t.Fatal(err)
				}
				return w.WriteManifest(t.Context(), manifest, v1.MediaTypeImageManifest, store.WriteOptions{Tag: "v1", Sparse: true})
			}
			if err := write(); !errors.Is(err, c.first) {
				t.Error(err)
			}
			if err := write(); err != nil {
				t.Errorf("%v: %q", err, r.Requests())
			}
		})
	}
}

// Blobs of a repository that the registry says it does not know are not looked for, but for those that take long to send:
// an interrupted run may have left them. An answer that does not say so counts for nothing, and so does a refused manifest.
func TestBlobsOfAnUnknownRepository(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		status int
		want   string
	}{
		"unknown":             {`{"errors":[{"code":"NAME_UNKNOWN"}]}`, 404, "1 HEAD"},
		"no such address":     {"404 page not found", 404, "2 HEAD"},
		"another code":        {`{"errors":[{"code":"NOT_FOUND"}]}`, 404, "2 HEAD"},
		"refused":             {`{"errors":[{"code":"NAME_UNKNOWN"}]}`, 403, "2 HEAD"},
		"tags, but not this":  {`{"name":"acme/app","tags":["v1"]}`, 200, "2 HEAD"},
		"a list without tags": {`{"name":"acme/app","tags":[]}`, 200, "2 HEAD"},
	} {
		t.Run(name, func(t *testing.T) {
			r := testregistry.New(t)
			r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
				list := strings.HasSuffix(q.URL.Path, "/tags/list")
				if list {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(c.status)
					fmt.Fprint(w, c.answer)
				}
				return list
			})
			w := writerTo(t, r, "acme/app")
			_, _, err := w.Tags(t.Context(), 1)
			if is := errors.Is(err, store.ErrNoRepository); is != (name == "unknown") {
				t.Error(err)
			}
			for i, size := range []int{100_000, keptUpload} {
				d, text := content(size, byte(i))
				if err := store.WriteBytes(t.Context(), w, d, text); err != nil {
					t.Fatal(err)
				}
			}
			if got := kinds(r); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	r := testregistry.New(t)
	r.Separate(false)
	w := writerTo(t, r, "acme/app")
	if _, _, err := w.Tags(t.Context(), 1); !errors.Is(err, store.ErrNoRepository) {
		t.Fatal(err)
	}
	manifest := []byte(`{"schemaVersion":2,"config":{"digest":"` + digest.FromString("x").String() + `","size":1},"layers":[]}`)
	if err := w.WriteManifest(t.Context(), manifest, v1.MediaTypeImageManifest, store.WriteOptions{Sparse: true}); err == nil {
		t.Error("a manifest without its blobs is taken")
	}
	d, text := content(100_000, 'y')
	if err := store.WriteBytes(t.Context(), w, d, text); err != nil || !strings.HasPrefix(kinds(r), "1 HEAD") {
		t.Errorf("%v, %s", err, kinds(r))
	}
}

// Images of one repository that are committed at the same time read each tag once.
func TestTagsAreConfirmedOnce(t *testing.T) {
	r := testregistry.New(t)
	w := writerTo(t, r, "acme/app")
	const tags = 6
	for i := range tags {
		err := w.UpdateTag(t.Context(), fmt.Sprint("t", i), func(old []byte) ([]byte, string, error) {
			if old != nil {
				return nil, "", nil
			}
			return []byte(`{"schemaVersion":2,"layers":[]}`), v1.MediaTypeImageManifest, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.Forget()
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if err := w.Commit(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := r.Count("GET "); n != tags {
		t.Errorf("%d requests: %q", n, r.Requests())
	}
}

// A signature's tag in a repository that the registry did not know is written without a look at it, on the condition that
// it is not there: what another client has written meanwhile is read, and stays. Lists of referrers are always read.
func TestFirstTagOfAnUnknownRepository(t *testing.T) {
	of := "sha256-" + digest.FromString("image").Encoded()
	for name, c := range map[string]struct {
		tag   string
		there bool
		want  string // the requests before it is confirmed
	}{
		"new":                    {of + ".sig", false, "[PUT]"},
		"written meanwhile":      {of + ".sig", true, "[PUT GET PUT]"},
		"a list":                 {of, false, "[GET PUT]"},
		"a tag of its own":       {"v1", false, "[GET PUT]"},
		"a list, which is there": {of, true, "[GET PUT]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := testregistry.New(t)
			r.ConditionalPut()
			w := writerTo(t, r, "acme/app")
			if _, _, err := w.Tags(t.Context(), 1); !errors.Is(err, store.ErrNoRepository) {
				t.Fatal(err)
			}
			if c.there {
				r.AddManifest("acme/app", c.tag, v1.MediaTypeImageManifest, []byte(`{"schemaVersion":2,"of":["them"]}`))
			}
			r.Forget()
			err := w.UpdateTag(t.Context(), c.tag, func(old []byte) ([]byte, string, error) {
				text := `{"schemaVersion":2,"of":["us"]}`
				if strings.Contains(string(old), "us") {
					return nil, "", nil
				}
				if old != nil {
					text = strings.Replace(string(old), "]", `,"us"]`, 1)
				}
				return []byte(text), v1.MediaTypeImageManifest, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			var methods []string
			for _, q := range r.Requests() {
				method, _, _ := strings.Cut(q, " ")
				methods = append(methods, method)
			}
			if got := fmt.Sprint(methods); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if err := w.Commit(t.Context()); err != nil {
				t.Error(err)
			}
			if text := string(r.Manifest("acme/app", c.tag)); !strings.Contains(text, "us") || strings.Contains(text, "them") != c.there {
				t.Error(text)
			}
		})
	}
}

// What one image has written is settled, and what others write meanwhile is theirs to settle: it would hold up the first one
// as long as there are others.
func TestSettleEnds(t *testing.T) {
	r := testregistry.New(t)
	w := writerTo(t, r, "acme/app")
	write := func(tag string) {
		err := w.UpdateTag(t.Context(), tag, func(old []byte) ([]byte, string, error) {
			if old != nil {
				return nil, "", nil
			}
			return []byte(`{"schemaVersion":2,"layers":[]}`), v1.MediaTypeImageManifest, nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	write("first")
	reads := 0
	r.Interfere(func(_ http.ResponseWriter, q *http.Request) bool {
		if q.Method == http.MethodGet && strings.HasSuffix(q.URL.Path, "/first") {
			reads++
			write("second")
		}
		return false
	})
	var before []*tagUpdate
	if before = w.pending(); len(before) != 1 {
		t.Fatal(len(before))
	}
	if err := w.Settle(t.Context()); err != nil || reads != 1 || !before[0].isSettled() {
		t.Errorf("%v, read %d times", err, reads)
	}
	r.Interfere(nil)
	if n := r.Count("GET /v2/acme/app/manifests/second"); n != 1 {
		t.Errorf("the other tag is read %d times", n)
	}
	if err := w.Commit(t.Context()); err != nil || len(w.pending()) != 0 {
		t.Error(err)
	}
}
