package images

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/testregistry"
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
		"two names of one repository, one of another": {[]string{"docker://HOST/a/b:v1", "oci:layout:v1", "docker://HOST/a/b:v2", "docker://HOST/a/c:v1"}, nil,
			[]string{"GET /v2/", "POST /v2/a/b/blobs/uploads/", "DELETE /v2/a/b/blobs/uploads/0", "POST /v2/a/c/blobs/uploads/", "DELETE /v2/a/c/blobs/uploads/1"}, ""},
		"denied":      {[]string{"docker://HOST/a/b:v1"}, refuse(403, `{"errors":[{"code":"DENIED","message":"quota exceeded"}]}`), []string{"GET /v2/", "POST /v2/a/b/blobs/uploads/"}, `"quota exceeded"`},
		"out of work": {[]string{"docker://HOST/a/b:v1"}, refuse(503, ""), []string{"GET /v2/", "POST /v2/a/b/blobs/uploads/", "POST /v2/a/b/blobs/uploads/"}, "status 503"},
		"uploads cannot be cancelled": {[]string{"docker://HOST/a/b:v1"}, func(w http.ResponseWriter, r *http.Request) bool {
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
			var dests []Destination
			for _, d := range c.dests {
				dests = append(dests, parse(t, strings.ReplaceAll(d, "HOST", reg.Host())))
			}
			err := CheckPush(t.Context(), dests, CopyOptions{Registry: insecure(), Retries: 1, Backoff: 1})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !errors.Is(err, ErrRegistry) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if got := reg.Requests(); !slices.Equal(got, c.requests) {
				t.Errorf("requests %q, want %q", got, c.requests)
			}
		})
	}
}
