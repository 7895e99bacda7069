package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// Without a catalog, clients are asked to retry.
func TestNotReady(t *testing.T) {
	server := siteOf(t, nil)
	for _, path := range []string{"/", "/api/v1/all", "/api/v1/metas?name=x", "/package?name=alpha",
		"/icon?package=alpha"} {
		if a := get(t, server.URL+path); a.code != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %v", path, a.code, a.header)
		}
	}
}

// An answer is of one catalog, even if the catalog is replaced while it is sent; the old one is closed afterwards.
func TestAnswersAreOfOneCatalog(t *testing.T) {
	old := contentOf(t,
		fstest.MapFS{"a.json": {Data: []byte(
			`{"schema":"custom","package":"old","value":"` + strings.Repeat("x", 1<<20) + `"}`)}})
	s := NewSite("test", nil)
	s.SetContent(old)
	w := &interrupted{ResponseRecorder: httptest.NewRecorder()}
	w.meanwhile = func() {
		s.SetContent(contentOf(t, sampleFS()))
		other := httptest.NewRecorder()
		s.ServeHTTP(other, httptest.NewRequest(http.MethodGet, "/api/v1/all", nil))
		if !strings.Contains(other.Body.String(), "alpha") || strings.Contains(other.Body.String(), `"package":"old"`) {
			t.Error("the old catalog is answered with after it was replaced")
		}
		if _, err := old.file.Stat(); err != nil {
			t.Errorf("the old catalog is closed while it is read: %v", err)
		}
	}
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/all", nil))
	if w.meanwhile != nil || int64(w.Body.Len()) != old.size || strings.Contains(w.Body.String(), "alpha") {
		t.Errorf("%d bytes of %d", w.Body.Len(), old.size)
	}
	if _, err := old.file.Stat(); err == nil {
		t.Error("the old catalog stays open")
	}
	last := s.Content()
	s.Close()
	if _, err := last.file.Stat(); s.Content() != nil || err == nil {
		t.Error("a closed site has a catalog")
	}
}

// interrupted is a client that calls a function when it receives the first part of an answer.
type interrupted struct {
	*httptest.ResponseRecorder
	meanwhile func()
}

func (w *interrupted) Write(b []byte) (int, error) {
	if f := w.meanwhile; f != nil {
		w.meanwhile = nil
		f()
	}
	return w.ResponseRecorder.Write(b)
}

// The tag depends only on the blobs and their order; so does the time, as far as clients can see.
func TestSameCatalogSameTag(t *testing.T) {
	first := contentOf(t, sampleFS())
	second := contentOf(t, fstest.MapFS{"all.yaml": {Data: []byte(sampleB + "---\n" + sampleA)}})
	if first.etag() != second.etag() {
		t.Errorf("%s and %s", first.etag(), second.etag())
	}
	first.modified = first.modified.Add(-time.Hour)
	second.KeepTime(first)
	if !second.modified.Equal(first.modified) {
		t.Error("the time changed though the catalog did not")
	}
	third := contentOf(t, fstest.MapFS{"all.yaml": {Data: []byte(sampleA)}})
	third.KeepTime(first)
	if third.etag() == first.etag() || third.modified.Equal(first.modified) {
		t.Error("another catalog has the tag or the time of this one")
	}
}
