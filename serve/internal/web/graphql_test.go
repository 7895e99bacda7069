package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"
)

// queried posts a query.
func queried(t testing.TB, server, query string, headers ...string) answer {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	return posted(t, server+"/api/v1/graphql", string(body), headers...)
}

func posted(t testing.TB, url, body string, headers ...string) answer {
	t.Helper()
	a := recordedAnswer{Method: http.MethodPost, Path: url, Body: body, Headers: map[string]string{}}
	for i := 0; i < len(headers); i += 2 {
		a.Headers[headers[i]] = headers[i+1]
	}
	return a.ask(t, "")
}

// A query is answered at both paths, compressed if it is large, and not stored by caches.
func TestQuery(t *testing.T) {
	server := siteOf(t, contentOf(t, sampleFS())).URL
	a := queried(t, server, "{olmpackages{name} customthings{package name value}}")
	if a.code != http.StatusOK || a.header.Get("Content-Type") != "application/json" ||
		a.header.Get("Cache-Control") != "no-store" || !strings.Contains(a.body,
		`"olmpackages":[{"name":"beta"},{"name":"alpha"}]`) {
		t.Errorf("%d %v %s", a.code, a.header, a.body)
	}
	if b := posted(t, server+"/catalogs/any/api/v1/graphql",
		`{"query":"{olmpackages{name}}"}`); b.code != http.StatusOK {
		t.Errorf("below a catalog's name: %d %s", b.code, b.body)
	}
	large := queried(t, server, "{olmbundles{name package image properties{type value}}}", "Accept-Encoding", "gzip")
	if large.header.Get("Content-Encoding") != "gzip" {
		t.Errorf("a large answer is not compressed: %v", large.header)
	}
	if small := queried(t, server, "{__typename}", "Accept-Encoding",
		"gzip"); small.header.Get("Content-Encoding") != "" {
		t.Errorf("a small answer is compressed: %v", small.header)
	}
}

// Requests without a query, and those whose bodies are too large, get catalogd's errors.
func TestQueriesThatAreNone(t *testing.T) {
	server := siteOf(t, contentOf(t, sampleFS())).URL
	for name, test := range map[string]struct {
		body, want string
	}{
		"another type": {`{"query":1}`, "Invalid request body\n"},
		"a list":       {`[]`, "Invalid request body\n"},
		"null":         {`null`, "Query cannot be empty\n"},
		"no query":     {`{}`, "Query cannot be empty\n"},
		"a large body": {`{"x":"` + strings.Repeat("x", 1<<20) + `","query":"{__typename}"}`,
			"Invalid request body\n"},
		"a large query":    {`{"query":"` + strings.Repeat(" ", 100_001) + `"}`, "Query too large\n"},
		"a body cut short": {`{"query":"{__typename}"`, "Invalid request body\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if a := posted(t, server+"/api/v1/graphql", test.body); a.code != http.StatusBadRequest ||
				a.body != test.want {
				t.Errorf("%d %q", a.code, a.body)
			}
		})
	}
	// As in catalogd, what follows the object is not read, and keys are found in any case.
	for _, body := range []string{`{"QUERY":"{__typename}"} trailing`,
		`{"query":"` + strings.Repeat(" ", 99_980) + `{__typename}"}`} {
		if a := posted(t, server+"/api/v1/graphql", body); a.code != http.StatusOK || !strings.Contains(a.body,
			`"Query"`) {
			t.Errorf("%d %q", a.code, a.body)
		}
	}
}

// A catalog that catalogd refuses to store has no type system, and everything else.
func TestCatalogWithoutTypeSystem(t *testing.T) {
	for name, files := range map[string]string{
		"type name collision: schemas \"a.b\" and \"a_b\" both sanitize to GraphQL type \"AB\"": `{"schema":"a.b"}{"schema":"a_b"}`,
		"query field collision: schemas \"a.b\" and \"ab\" both map to field \"abs\"":           `{"schema":"a.b"}{"schema":"ab"}`,
		"failed to create GraphQL schema":                                                       `{"schema":"9"}`,
	} {
		server := siteOf(t, contentOf(t, fstest.MapFS{"a.json": {Data: []byte(files)}})).URL
		for range 2 {
			if a := queried(t, server, "{__typename}"); a.code != http.StatusInternalServerError ||
				!strings.Contains(a.body, name) {
				t.Errorf("%s: %d %s", name, a.code, a.body)
			}
		}
		if a := get(t, server+"/api/v1/all"); a.code != http.StatusOK {
			t.Errorf("%s: all: %d", name, a.code)
		}
	}
}

// An answer that is larger than the limit is an error, and not a part.
func TestAnswerThatIsTooLarge(t *testing.T) {
	text := fmt.Sprintf(`{"schema":"big","data":%q}`, strings.Repeat("x", 1<<20))
	s := NewSite("x", nil)
	s.SetContent(contentOf(t, fstest.MapFS{"a.json": {Data: []byte(strings.Repeat(text, 70))}}))
	server := httptest.NewServer(s)
	defer s.Close()
	defer server.Close()
	for query, want := range map[string]int{
		"{bigs{data}}":                           0,
		"{bigs(limit:60){data}}":                 60 << 20,
		"{a:bigs{schema} b:bigs(limit:2){data}}": 2 << 20,
	} {
		a := queried(t, server.URL, query)
		switch {
		case a.code != http.StatusOK:
			t.Errorf("%s: %d", query, a.code)
		case want == 0 && (len(a.body) > 300 || !strings.HasPrefix(a.body,
			`{"data":null,"errors":[{"message":"the answer is too large`)):
			t.Errorf("%s: %.300s", query, a.body)
		case want > 0 && len(a.body) < want:
			t.Errorf("%s: %d bytes", query, len(a.body))
		}
	}
	s.answers.Add(allFiles)
	if a := queried(t, server.URL, "{bigs(limit:2){data}}"); a.code != http.StatusServiceUnavailable {
		t.Errorf("too many large answers: %d", a.code)
	}
	server.Close() // waits for the handlers
	if left := s.answers.Load(); left != allFiles {
		t.Errorf("%d bytes are still counted", left-allFiles)
	}
}

// A query takes the memory of a blob, whatever it asks for and however large the catalog is.
func TestQueriesTakeLittleMemory(t *testing.T) {
	text := fmt.Sprintf(`{"schema":"big","list":[{"x":1}],"data":%q}`, strings.Repeat("x", 1<<20))
	c := contentOf(t, fstest.MapFS{"a.json": {Data: []byte(strings.Repeat(text, 100))}})
	s := NewSite("x", nil)
	s.SetContent(c)
	defer s.Close()
	var most uint64
	measure := func() {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapAlloc)
	}
	measure()
	before := most
	service, err := c.queries(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if _, err := service.Answer(t.Context(), "{a:bigs{schema list{x} data} b:bigs{data}}",
		writerFunc(func(b []byte) (int, error) {
			if n++; n%40 == 0 {
				measure()
			}
			return len(b), nil
		})); err != nil {
		t.Fatal(err)
	}
	if grown := int64(most) - int64(before); n < 200 || grown > 16<<20 {
		t.Errorf("%d bytes more in use, after %d writes", grown, n)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Many clients with their first query at once get one type system, also while the catalog is replaced.
func TestManyFirstQueries(t *testing.T) {
	s := NewSite("x", nil)
	s.SetContent(contentOf(t, sampleFS()))
	server := httptest.NewServer(s)
	defer server.Close()
	defer s.Close()
	var wg sync.WaitGroup
	for i := range 32 {
		if i == 16 {
			s.SetContent(contentOf(t, fstest.MapFS{"a.json": {Data: []byte(`{"schema":"olm.package","name":"new"}`)}}))
		}
		wg.Go(func() {
			if a := queried(t, server.URL, "{olmpackages{name}}"); a.code != http.StatusOK || !strings.Contains(a.body,
				`"name":"`) {
				t.Errorf("%d %s", a.code, a.body)
			}
		})
	}
	wg.Wait()
}

// A client whose query waits for too many others is asked to come again.
func TestQueryWithoutATurn(t *testing.T) {
	s := NewSite("x", nil)
	s.SetContent(contentOf(t, sampleFS()))
	defer s.Close()
	for range cap(s.making) {
		s.making <- struct{}{}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/graphql",
		strings.NewReader(`{"query":"{__typename}"}`))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r.WithContext(ctx))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
