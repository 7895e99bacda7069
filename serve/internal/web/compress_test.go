package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Beyond the number of concurrent compressions answers are sent uncompressed; every place becomes free again.
func TestAnswersBeyondThoseThatAreCompressed(t *testing.T) {
	s := NewSite("x", nil)
	s.SetContent(contentOf(t, sampleFS()))
	defer s.Close()
	request := func(headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/metas?package=alpha", nil)
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
	if w.Code != http.StatusOK || w.Header().Get("Content-Encoding") != "" ||
		w.Header().Get("ETag") != plain.Header().Get("ETag") || !bytes.Equal(w.Body.Bytes(), plain.Body.Bytes()) {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := request("Accept-Encoding", "gzip", "If-None-Match",
		zipped.Header().Get("ETag")); w.Code != http.StatusNotModified {
		t.Errorf("what the client has already: %d", w.Code)
	}
}

// Icons count as memory of pages while they are sent.
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

// All lines are compressed once, with catalogd's settings, for any number of concurrent clients.
func TestAllLinesAreCompressedOnce(t *testing.T) {
	c := contentOf(t, sampleFS())
	s := NewSite("x", nil)
	s.SetContent(c)
	defer s.Close()
	ask := func(headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/catalogs/x/api/v1/all", nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	plain := ask().Body.Bytes()
	var want bytes.Buffer
	z := gzip.NewWriter(&want)
	if _, err := z.Write(plain); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if w := ask("Accept-Encoding", "gzip"); w.Code != http.StatusOK ||
				w.Header().Get("Content-Encoding") != "gzip" || !bytes.Equal(w.Body.Bytes(), want.Bytes()) {
				t.Errorf("%d %v: %d bytes, want %d", w.Code, w.Header(), w.Body.Len(), want.Len())
			}
		})
	}
	all.Wait()
	file := c.gzip.file
	if _, done, err := c.gzip.available(t.Context(), int64(want.Len())); !done || err != nil {
		t.Errorf("%v %v", done, err)
	}
	w := ask("Accept-Encoding", "gzip")
	if w.Header().Get("Content-Length") != strconv.Itoa(want.Len()) || c.gzip.file != file || len(s.zips.places) != 0 {
		t.Errorf("%v", w.Header())
	}
}

// If no file can be created, the lines are compressed for each client.
func TestAllLinesWithoutAPlaceForTheirCompressedForm(t *testing.T) {
	c := contentOf(t, sampleFS())
	s := NewSite("x", nil)
	s.SetContent(c)
	defer s.Close()
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	for range 2 {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/all", nil)
		r.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(z); err != nil || int64(len(text)) != c.size {
			t.Errorf("%v, %d bytes of %d", err, len(text), c.size)
		}
	}
	if c.gzip.file != nil {
		t.Error("a file was made")
	}
}

// A client that disconnects does not wait for the compression; if the compression fails, its readers get an error.
func TestReadingWhatIsBeingCompressed(t *testing.T) {
	k := &contentStore{changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := k.available(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	k.progress(5, false, nil)
	if size, done, err := k.available(t.Context(), 3); size != 5 || done || err != nil {
		t.Error(size, done, err)
	}
	k.progress(0, true, io.ErrShortWrite)
	if _, _, err := k.available(t.Context(), 5); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
}

// A request that is answered while a newer catalog replaces the old one leaves no file.
func TestNoFileForACatalogThatIsReplaced(t *testing.T) {
	c := contentOf(t, sampleFS())
	if !c.acquire() {
		t.Fatal("the content is closed")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	defer c.release()
	before := openScratch(t)
	if k := c.compressed(); k != nil || c.gzip.file != nil {
		t.Error("it is compressed")
	}
	if after := openScratch(t); after > before {
		t.Errorf("%d files are open, and %d were before", after, before)
	}
}

// openScratch counts the open temporary files of the package; 0 if the system does not list them.
func openScratch(t *testing.T) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if name, err := os.Readlink(link); err == nil && strings.Contains(name, ".bindery-http-") {
			n++
		}
	}
	return n
}
