package web

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
)

// Beyond the number of answers that are compressed at once there are others, as they would be for a client that cannot
// decompress; and every place comes back.
func TestAnswersBeyondThoseThatAreCompressed(t *testing.T) {
	s := NewSite("x", nil)
	s.SetContent(contentOf(t, sampleFS()))
	defer s.Close()
	request := func(headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/all", nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	plain := request()
	zipped := request("Accept-Encoding", "gzip")
	if zipped.Header().Get("Content-Encoding") != "gzip" || len(s.zips.places) != 0 {
		t.Fatalf("%v, %d places are taken", zipped.Header(), len(s.zips.places))
	}
	for range maxZips {
		if s.zips.try(&bytes.Buffer{}) == nil {
			t.Fatal("no place")
		}
	}
	w := request("Accept-Encoding", "gzip")
	if w.Code != http.StatusOK || w.Header().Get("Content-Encoding") != "" || w.Header().Get("ETag") != plain.Header().Get("ETag") || !bytes.Equal(w.Body.Bytes(), plain.Body.Bytes()) {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := request("Accept-Encoding", "gzip", "If-None-Match", zipped.Header().Get("ETag")); w.Code != http.StatusNotModified {
		t.Errorf("what the client has already: %d", w.Code)
	}
}

// Icons are in the memory for pages while they are sent.
func TestIconsTakeTheirPlaceAmongPages(t *testing.T) {
	s := NewSite("x", nil)
	s.SetContent(contentOf(t, sampleFS()))
	defer s.Close()
	get := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/icon?package=alpha", nil))
		return w
	}
	if w := get(); w.Code != http.StatusOK || w.Header().Get("Content-Length") != strconv.Itoa(w.Body.Len()) {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	s.sending.Store(pageMemory)
	if w := get(); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if s.sending.Load() != pageMemory || len(s.making) != 0 {
		t.Errorf("%d bytes and %d places stay taken", s.sending.Load()-pageMemory, len(s.making))
	}
}
