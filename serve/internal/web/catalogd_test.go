package web

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/zstd"
)

// recordedAnswer is a request to catalogd and what it answered. Server names the gates that were on.
type recordedAnswer struct {
	Name, Server, Method, Path, Body string
	Headers                          map[string]string
	Status                           int
	ResponseHeaders                  http.Header
	ResponseBody                     string
	ResponseLength                   int
	ResponseSha256                   string
}

// departures are the recorded answers that are different on purpose; docs/guides/serve.md has the reasons.
var departures = map[string]string{
	"15": "the path is a page",
	"55": "a date that cannot be parsed is ignored, as for all lines",
	"61": "metas have ranges",
}

// more are the headers that this server adds, also to answers that catalogd has.
var more = []string{"Accept-Ranges", "Allow", "Cache-Control", "Content-Length", "Content-Security-Policy",
	"Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Date", "Etag", "Last-Modified", "Referrer-Policy",
	"X-Content-Type-Options"}

// Every recorded request to catalogd has catalogd's answer: status, body and headers, for each setting of its gates.
func TestAnswersOfCatalogd(t *testing.T) {
	catalogs := recordedCatalogs(t)
	sites := map[string]*httptest.Server{}
	for server, gates := range map[string]string{"default": "none", "metas": "metas", "graphql": "graphql",
		"all": "metas,graphql"} {
		for name, files := range catalogs {
			g, err := ParseGates(gates)
			if err != nil {
				t.Fatal(err)
			}
			c := contentOf(t, files)
			c.modified = time.Date(2024, 5, 6, 7, 8, 9, 5e8, time.UTC)
			s := New(Options{Title: name, Name: name, Gates: g})
			s.SetContent(c)
			sites[server+"/"+name] = httptest.NewServer(s)
			t.Cleanup(func() { sites[server+"/"+name].Close(); s.Close() })
		}
	}
	plain := map[string]string{} // bodies by path, for the compressed ones
	answers := recordedAnswers(t)
	for _, want := range answers {
		if want.Method == http.MethodGet && want.Status == http.StatusOK && want.ResponseBody != "" {
			plain[want.Path] = want.ResponseBody
		}
	}
	for _, want := range answers {
		t.Run(want.Name, func(t *testing.T) {
			catalog := "alpha"
			if strings.HasPrefix(want.Path, "/catalogs/beta/") {
				catalog = "beta"
			}
			got := want.ask(t, sites[want.Server+"/"+catalog].URL)
			wrong := want.differences(t, got, plain[want.Path])
			if reason := departures[want.Name]; reason != "" {
				if len(wrong) == 0 {
					t.Errorf("the answer is equal; it was said to be different because %s", reason)
				}
				return
			}
			for _, w := range wrong {
				t.Error(w)
			}
		})
	}
}

// ask sends the recorded request.
func (a recordedAnswer) ask(t testing.TB, server string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), a.Method, server+a.Path, strings.NewReader(a.Body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "identity")
	for name, value := range a.Headers {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

// differences compares an answer with the recorded one. plain is the body of the recorded answer if it was compressed.
func (a recordedAnswer) differences(t *testing.T, got answer, plain string) (wrong []string) {
	t.Helper()
	if got.code != a.Status {
		wrong = append(wrong, "status "+http.StatusText(got.code)+", not "+http.StatusText(a.Status))
	}
	compressed := a.ResponseHeaders.Get("Content-Encoding") == "gzip"
	for name, values := range a.ResponseHeaders {
		if name == "Content-Length" && compressed {
			continue
		}
		if !slices.Equal(got.header.Values(name), values) {
			wrong = append(wrong,
				name+" "+strings.Join(got.header.Values(name), "|")+", not "+strings.Join(values, "|"))
		}
	}
	for name := range got.header {
		if a.ResponseHeaders[name] == nil && !slices.Contains(more, name) {
			wrong = append(wrong, name+" is no header of this answer")
		}
	}
	body := got.body
	if compressed {
		z, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			return append(wrong, err.Error())
		}
		text, err := io.ReadAll(z)
		if err != nil || string(text) != plain {
			wrong = append(wrong, "another text is compressed")
		}
		return wrong
	}
	sum := sha256.Sum256([]byte(body))
	if hex.EncodeToString(sum[:]) != a.ResponseSha256 && !sameSummary(body, a.ResponseBody) {
		wrong = append(wrong, "body "+body+"\nnot "+a.ResponseBody)
	}
	return wrong
}

// sameSummary compares two answers about the schemas of a catalog, which catalogd gives in any order.
func sameSummary(a, b string) bool {
	read := func(text string) []string {
		var v struct {
			Data struct {
				Summary struct {
					TotalSchemas int
					Schemas      []json.RawMessage
				}
			}
		}
		if json.Unmarshal([]byte(text), &v) != nil || v.Data.Summary.TotalSchemas == 0 {
			return nil
		}
		var all []string
		for _, s := range v.Data.Summary.Schemas {
			all = append(all, string(s))
		}
		slices.Sort(all)
		return all
	}
	return len(read(a)) > 0 && slices.Equal(read(a), read(b))
}

// recordedFile returns a file of testdata/catalogd, decompressed.
func recordedFile(t testing.TB, name string) []byte {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("testdata", "catalogd", name+".zst"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	text, err := z.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func recordedAnswers(t testing.TB) (all []recordedAnswer) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(recordedFile(t, "http.jsonl")))
	for {
		var a recordedAnswer
		err := d.Decode(&a)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
}

// recordedCatalogs returns the catalogs that catalogd served, by name.
func recordedCatalogs(t testing.TB) map[string]fstest.MapFS {
	t.Helper()
	all := map[string]fstest.MapFS{}
	r := tar.NewReader(bytes.NewReader(recordedFile(t, "http-catalogs.tar")))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		catalog, file, _ := strings.Cut(strings.TrimPrefix(h.Name, "./"), "/")
		if all[catalog] == nil {
			all[catalog] = fstest.MapFS{}
		}
		all[catalog][file] = &fstest.MapFile{Data: text}
	}
}
