package images

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// A check begins an upload in each repository, once for all names in it, and cancels it. It fails as the push would.
func TestCheckPush(t *testing.T) {
	refuse := func(status int, text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				w.WriteHeader(status)
				io.WriteString(w, text)
			}
			return r.Method == http.MethodPost
		}
	}
	for name, c := range map[string]struct {
		dests    []string // HOST is the registry
		registry func(http.ResponseWriter, *http.Request) bool
		requests []string
		want     string // in the error
	}{
		"nothing in a registry": {[]string{"oci:layout:v1"}, nil, nil, ""},
		"two names of one repository, one of another": {[]string{"docker://HOST/a/b:v1", "oci:layout:v1",
			"docker://HOST/a/b:v2", "docker://HOST/a/c:v1"}, nil,
			[]string{"GET /v2/", "POST /v2/a/b/blobs/uploads/", "POST /v2/a/c/blobs/uploads/",
				"DELETE /v2/a/b/blobs/uploads/0", "DELETE /v2/a/c/blobs/uploads/1"}, ""},
		"denied": {[]string{"docker://HOST/a/b:v1"},
			refuse(403, `{"errors":[{"code":"DENIED","message":"quota exceeded"}]}`),
			[]string{"GET /v2/", "POST /v2/a/b/blobs/uploads/"}, `"quota exceeded"`},
		"out of work": {[]string{"docker://HOST/a/b:v1"}, refuse(503, ""),
			[]string{"GET /v2/", "POST /v2/a/b/blobs/uploads/", "POST /v2/a/b/blobs/uploads/"}, "status 503"},
		"uploads cannot be cancelled": {[]string{"docker://HOST/a/b:v1"},
			func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodDelete {
					w.WriteHeader(http.StatusMethodNotAllowed)
				}
				return r.Method == http.MethodDelete
			}, []string{"GET /v2/", "POST /v2/a/b/blobs/uploads/", "DELETE /v2/a/b/blobs/uploads/0"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			if c.registry != nil {
				reg.Interfere(c.registry)
			}
			var dests []transport.Destination
			for _, d := range c.dests {
				dests = append(dests, parse(t, strings.ReplaceAll(d, "HOST", reg.Host())))
			}
			check, err := CopyOptions{Options: registries.Options{Registry: insecure(), Retries: 1, Backoff: 1}}.CheckPush(t.Context(), dests)
			if err := check.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if c.want == "" && err != nil ||
				c.want != "" && (err == nil || !errors.Is(err, fault.ErrRegistry) || !strings.Contains(err.Error(),
					c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			got := reg.Requests()
			slices.SortStableFunc(got, func(a, b string) int { // uploads are cancelled in any order
				if !strings.HasPrefix(a, "DELETE ") || !strings.HasPrefix(b, "DELETE ") {
					return 0
				}
				return strings.Compare(a, b)
			})
			if !slices.Equal(got, c.requests) {
				t.Errorf("requests %q, want %q", got, c.requests)
			}
		})
	}
}

// A copy goes on with what the check has found out: with the scheme of the registry, and with the upload.
func TestCheckedPush(t *testing.T) {
	refuseWhole := func(w http.ResponseWriter, r *http.Request) bool {
		refused := r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/uploads/") && r.ContentLength > 0
		if refused {
			w.WriteHeader(http.StatusBadRequest)
		}
		return refused
	}
	forget := func(w http.ResponseWriter, r *http.Request) bool {
		// the five before are of the first push
		first := r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/uploads/5")
		if first {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"errors":[{"code":"BLOB_UPLOAD_UNKNOWN","message":"x"}]}`)
		}
		return first
	}
	for name, c := range map[string]struct {
		registry func(http.ResponseWriter, *http.Request) bool
		next     string
		counts   map[string]int
	}{
		"one layer is new": {nil, "changed",
			map[string]int{"": 12, "GET /v2/": 3, "HEAD ": 3, "POST ": 2, "PATCH ": 0, "PUT ": 4, "DELETE ": 0}},
		"nothing is new":          {nil, "b", map[string]int{"": 6, "POST ": 1, "PUT ": 0, "DELETE ": 1}},
		"the upload is forgotten": {forget, "changed", map[string]int{"POST ": 3, "PATCH ": 1, "DELETE ": 0}},
		"blobs are not taken in one piece": {refuseWhole, "changed",
			map[string]int{"POST ": 4, "PATCH ": 2, "DELETE ": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			at := reg.Host() + "/a/b:v1"
			if _, err := pushTo(t, packages(t, "a", "b", "c", "d"), CopyOptions{}, at); err != nil {
				t.Fatal(err)
			}
			reg.Forget()
			if c.registry != nil {
				reg.Interfere(c.registry)
			}
			o := CopyOptions{Options: registries.Options{Registry: insecure()}}
			check, err := o.CheckPush(t.Context(), dests(t, "docker://"+at))
			if err != nil {
				t.Fatal(err)
			}
			o.Checked = check
			next := packages(t, "a", c.next, "c", "d")
			if _, err := pushTo(t, next, o, at); err != nil {
				t.Error(err)
			}
			if err := check.Close(t.Context()); err != nil {
				t.Error(err)
			}
			for prefix, want := range c.counts {
				if got := reg.Count(prefix); got != want {
					t.Errorf("%d requests %q, want %d: %q", got, prefix, want, reg.Requests())
				}
			}
			if string(reg.Manifest("a/b", "v1")) != string(next.manifest) {
				t.Error("the tag names something else")
			}
		})
	}
}

// What a name stands for is looked at before the work. That another image is there need not be a conflict: it may be
// the one that will be made.
func TestCheckPushIfDigest(t *testing.T) {
	there, other := simple(t, "there"), digest.FromString("other")
	is := digest.FromBytes(there.manifest)
	for name, c := range map[string]struct {
		tag, condition string
		refused        bool
		conflicts      int
	}{
		"as it should be":       {"v1", is.String(), false, 0},
		"another image":         {"v1", other.String(), false, 1},
		"an image for none":     {"v1", store.IfNone, false, 1},
		"none, as it should be": {"v2", store.IfNone, false, 0},
		"no image":              {"v2", other.String(), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			put(reg, "a/b", "v1", there)
			o := CopyOptions{Options: registries.Options{Registry: insecure()}, IfDigest: c.condition}
			check, err := o.CheckPush(t.Context(), dests(t, "docker://"+reg.Host()+"/a/b:"+c.tag))
			var conflict *store.ConflictError
			if errors.As(err, &conflict) != c.refused || !c.refused && err != nil ||
				len(check.Conflicts()) != c.conflicts {
				t.Errorf("got %v, %v", err, check.Conflicts())
			}
			if err := check.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if reg.Count("POST ") != reg.Count("DELETE ") {
				t.Errorf("requests %q", reg.Requests())
			}
		})
	}
}
