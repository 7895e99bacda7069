package web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
)

// All blobs are answered in catalogd's order: files by path, the blobs of each as in the file. Every line is the
// canonical JSON of a blob.
func TestAllIsTheCatalogInOrder(t *testing.T) {
	server := siteOf(t, contentOf(t, sampleFS()))
	a := get(t, server.URL+"/api/v1/all")
	if a.code != http.StatusOK || a.header.Get("Content-Type") != "application/jsonl" {
		t.Fatalf("got %d %v", a.code, a.header)
	}
	var got []string
	for line := range strings.Lines(a.body) {
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(line)); err != nil || compact.String()+"\n" != line {
			t.Errorf("not one compact object: %q, %v", line, err)
		}
	}
	for _, m := range blobsOf(t, a.body) {
		got = append(got, m.Schema+"/"+m.Name)
	}
	want := []string{
		"olm.bundle/beta.v1.0.0", "olm.package/beta", "olm.channel/stable", "custom.none/alone",
		"olm.package/alpha", "olm.channel/stable", "olm.channel/old", "olm.bundle/alpha.v1.0.0",
		"olm.bundle/alpha.v1.1.0", "olm.deprecations/", "custom.thing/thing",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for _, path := range []string{"/catalogs/any/api/v1/all", "/api/v1/metas", "/catalogs/any/api/v1/metas"} {
		if other := get(t, server.URL+path); other.body != a.body || other.code != http.StatusOK {
			t.Errorf("%s: %d, %d bytes", path, other.code, len(other.body))
		}
	}
}

// Reading the answer and writing it with declcfg gives the same as writing the files. Typed blobs, as from a database,
// give the same catalog.
func TestAllIsWhatTheFilesSay(t *testing.T) {
	for _, dir := range []string{"../../../testdata/fbc/mini", "../../testdata/recorded/deprecations/catalog"} {
		t.Run(filepath.Base(filepath.Dir(dir)), func(t *testing.T) {
			if _, err := os.Stat(dir); err != nil {
				t.Fatal(err)
			}
			c, err := declcfg.Load(t.Context(), os.DirFS(dir), declcfg.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var want strings.Builder
			if err := c.Write(&want, declcfg.FormatJSON); err != nil {
				t.Fatal(err)
			}
			w, err := NewWriter(slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if err := declcfg.Walk(t.Context(), os.DirFS(dir), declcfg.LoadOptions{},
				func(m *declcfg.Meta) error { return w.Add(m) }); err != nil {
				t.Fatal(err)
			}
			typed, err := NewWriter(slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			for b := range c.Blobs() {
				if err := typed.Add(b); err != nil {
					t.Fatal(err)
				}
			}
			for kind, w := range map[string]*Writer{"as they are": w, "typed": typed} {
				content, err := w.Finish(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer content.Close()
				body := get(t, siteOf(t, content).URL+"/api/v1/all").body
				again, err := declcfg.Read(t.Context(), strings.NewReader(body), "answer", declcfg.LoadOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var got strings.Builder
				if err := again.Write(&got, declcfg.FormatJSON); err != nil {
					t.Fatal(err)
				}
				if got.String() != want.String() || len(body) == 0 {
					t.Errorf("%s: another catalog: %d bytes, %d wanted", kind, got.Len(), want.Len())
				}
			}
		})
	}
}

// A query returns the blobs that match all parameters. It is compared with a filter that reads every line.
func TestMetasAreThoseThatMatch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"", "a", "b", "A", "a b", "é\u202e", `"`, "..", "a/b", "%2e", "olm.package", "<x>", "\n", "\x00"}
	word := func() string { return words[r.IntN(len(words))] }
	schemas := []string{"olm.package", "custom", "custom.b", "é"}
	for round := range 12 {
		w, err := NewWriter(slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for range r.IntN(60) {
			fields := map[string]any{"schema": schemas[r.IntN(len(schemas))], "value": r.IntN(1000)}
			if v := word(); v != "" {
				fields["package"] = v
			}
			if v := word(); v != "" {
				fields["name"] = v
			}
			text, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			m, err := func() (*declcfg.Meta, error) {
				rd := declcfg.NewReader(declcfg.LoadOptions{})
				rd.Reset(bytes.NewReader(text), "test")
				return rd.NextMeta()
			}()
			if err != nil {
				t.Fatal(err)
			}
			if fields["schema"] == "olm.package" {
				// Only the queried fields matter here: a blob that no page can show must be answered too.
				m.Blob = json.RawMessage(
					fmt.Sprintf(`{"name":%s,"package":%s,"schema":"olm.package"}`, quoted(m.Name), quoted(m.Package)))
			}
			if err := w.Add(m); err != nil {
				t.Fatal(err)
			}
		}
		c, err := w.Finish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		server := siteOf(t, c)
		all := get(t, server.URL+"/api/v1/all").body
		for range 25 {
			q := url.Values{}
			for _, key := range []string{"schema", "package", "name"} {
				if r.IntN(2) == 0 {
					q.Set(key, word())
				}
			}
			if r.IntN(2) == 0 {
				q.Set("schema", schemas[r.IntN(len(schemas))])
			}
			want := ""
			for line := range strings.Lines(all) {
				var has map[string]any
				if err := json.Unmarshal([]byte(line), &has); err != nil {
					t.Fatal(err)
				}
				ok := true
				for key := range q {
					ok = ok && (q.Get(key) == "" || has[key] == q.Get(key))
				}
				if ok {
					want += line
				}
			}
			a := get(t, server.URL+"/api/v1/metas?"+q.Encode())
			if a.code != http.StatusOK || a.body != want {
				t.Fatalf("round %d, %q: %d, got\n%s\nwant\n%s", round, q, a.code, a.body, want)
			}
			// A range returns that part.
			if len(want) > 3 {
				from, to := r.IntN(len(want)), r.IntN(len(want))
				from, to = min(from, to), max(from, to)
				a := get(t, server.URL+"/api/v1/metas?"+q.Encode(), "Range", fmt.Sprintf("bytes=%d-%d", from, to))
				if a.code != http.StatusPartialContent || a.body != want[from:to+1] {
					t.Fatalf("bytes %d to %d: %d, %q", from, to, a.code, a.body)
				}
			}
		}
	}
}

func quoted(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// As in catalogd, a package's own blob is found by its name: it has no field "package".
func TestMetasTakePackageAsTheFieldOfThatName(t *testing.T) {
	server := siteOf(t, contentOf(t, sampleFS()))
	for query, want := range map[string]int{
		"package=alpha":                                      6,
		"schema=olm.package&name=alpha":                      1,
		"schema=olm.package&package=alpha":                   0,
		"name=stable":                                        2,
		"package=beta&name=stable&schema=olm.channel":        1,
		"package=nothing":                                    0,
		"schema=&package=&name=alone":                        1,
		"package=alpha&package=beta":                         6,
		"schema=olm.bundle&package=alpha&name=alpha.v1.1.0":  1,
		"schema=olm.bundle&package=alpha&name=alpha.v1.1.0x": 0,
	} {
		a := get(t, server.URL+"/api/v1/metas?"+query)
		if n := strings.Count(a.body, "\n"); a.code != http.StatusOK || n != want {
			t.Errorf("%s: %d, %d lines", query, a.code, n)
		}
	}
}

// Invalid catalog names give catalogd's errors.
func TestNamesOfCatalogs(t *testing.T) {
	server := siteOf(t, contentOf(t, sampleFS()))
	const form = "invalid catalog name: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric " +
		"characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex " +
		"used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')\n"
	for name, want := range map[string]string{
		"alpha": "", "a.b-c": "", strings.Repeat("a", 253): "",
		"Bad_Name": form, "-x": form, "%2e%2e": form, "..%2falpha": form, "a..b": form,
		strings.Repeat("a", 254): "invalid catalog name: must be no more than 253 characters\n",
	} {
		for _, path := range []string{"all", "metas"} {
			a := get(t, server.URL+"/catalogs/"+name+"/api/v1/"+path)
			if want == "" && a.code == http.StatusOK {
				continue
			}
			if a.code != http.StatusBadRequest || a.body != want || a.header.Get(
				"Content-Type") != "text/plain; charset=utf-8" || a.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s of %q: %d %v %q", path, name, a.code, a.header, a.body)
			}
		}
	}
}

// HTTP methods, headers and status codes.
func TestProtocol(t *testing.T) {
	c := contentOf(t, sampleFS())
	server := siteOf(t, c)
	all := get(t, server.URL+"/api/v1/all")
	tag, date := all.header.Get("ETag"), all.header.Get("Last-Modified")
	zipped := get(t, server.URL+"/api/v1/all", "Accept-Encoding", "gzip")
	zipTag := zipped.header.Get("ETag")
	if len(tag) < 10 || zipTag == tag || date == "" || zipped.header.Get("Last-Modified") != date {
		t.Fatalf("tags %q and %q, dates %q and %q", tag, zipTag, date, zipped.header.Get("Last-Modified"))
	}
	early := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
	for _, test := range []struct {
		rule, method, path string
		headers            []string
		code               int
		size               int // of the body; -1 for any
	}{
		{"HEAD has no body", "HEAD", "/api/v1/all", nil, 200, 0},
		{"HEAD of what would be compressed", "HEAD", "/api/v1/all", []string{"Accept-Encoding", "gzip"}, 200, 0},
		{"HEAD of a page", "HEAD", "/", nil, 200, 0},
		{"the same tag", "GET", "/api/v1/all", []string{"If-None-Match", tag}, 304, 0},
		{"a weak tag in a list", "GET", "/api/v1/all", []string{"If-None-Match", `"x", W/` + tag}, 304, 0},
		{"another tag", "GET", "/api/v1/all", []string{"If-None-Match", `"x"`}, 200, len(all.body)},
		{"the tag of the other coding", "GET", "/api/v1/all", []string{"If-None-Match", zipTag}, 200, len(all.body)},
		{"the same tag, compressed", "GET", "/api/v1/all", []string{"If-None-Match", zipTag, "Accept-Encoding", "gzip"},
			304, 0},
		{"the same time", "GET", "/api/v1/all", []string{"If-Modified-Since", date}, 304, 0},
		{"the same time, compressed", "GET", "/api/v1/metas?name=stable",
			[]string{"If-Modified-Since", date, "Accept-Encoding", "gzip"}, 304, 0},
		{"an earlier time", "GET", "/api/v1/all", []string{"If-Modified-Since", early}, 200, len(all.body)},
		{"an earlier time, compressed", "GET", "/api/v1/all",
			[]string{"If-Modified-Since", early, "Accept-Encoding", "gzip"}, 200, -1},
		{"a tag counts more than a time", "GET", "/api/v1/all",
			[]string{"If-None-Match", `"x"`, "If-Modified-Since", date, "Accept-Encoding", "gzip"}, 200, -1},
		{"only if it is another", "GET", "/api/v1/all", []string{"If-Match", `"x"`}, 412, 0},
		{"only if it is another, compressed", "GET", "/api/v1/all",
			[]string{"If-Match", `"x"`, "Accept-Encoding", "gzip"}, 412, 0},
		{"changed since, compressed", "GET", "/api/v1/all",
			[]string{"If-Unmodified-Since", early, "Accept-Encoding", "gzip"}, 412, 0},
		{"a range is of the plain lines", "GET", "/api/v1/all",
			[]string{"Range", "bytes=0-9", "Accept-Encoding", "gzip"}, 206, 10},
		{"the end", "GET", "/api/v1/all", []string{"Range", "bytes=-5"}, 206, 5},
		{"a range that is not there", "GET", "/api/v1/all", []string{"Range", "bytes=999999999-"}, 416, -1},
		{"a range of another catalog", "GET", "/api/v1/all", []string{"Range", "bytes=0-9", "If-Range", `"x"`}, 200,
			len(all.body)},
		{"an unknown parameter", "GET", "/api/v1/metas?schema=x&nosuch=1", nil, 400, -1},
		{"a parameter that cannot be read is absent", "GET", "/api/v1/metas?schema=%zz", nil, 200, len(all.body)},
		{"no such path", "GET", "/api/v1/nothing", nil, 404, -1},
		{"no such page", "GET", "/package/alpha", nil, 404, -1},
		{"no such package", "GET", "/package?name=nosuch", nil, 404, -1},
		{"no such channel", "GET", "/channel?package=alpha&name=nosuch", nil, 404, -1},
		{"no such bundle", "GET", "/bundle?package=alpha&name=nosuch", nil, 404, -1},
		{"images of no package", "GET", "/images?package=nosuch", nil, 404, -1},
		{"no such icon", "GET", "/icon?package=beta", nil, 404, -1},
		{"an icon", "GET", "/icon?package=alpha", nil, 200, 8},
		{"POST", "POST", "/api/v1/all", nil, 405, -1},
		{"DELETE", "DELETE", "/", nil, 405, -1},
		{"OPTIONS", "OPTIONS", "/api/v1/all", []string{"Origin", "https://evil.test"}, 405, -1},
	} {
		t.Run(test.rule, func(t *testing.T) {
			a := ask(t, test.method, server.URL+test.path, test.headers...)
			if a.code != test.code || test.size >= 0 && len(a.body) != test.size {
				t.Errorf("got %d with %d bytes: %.200s", a.code, len(a.body), a.body)
			}
			if a.code == 405 && a.header.Get("Allow") != "GET, HEAD" {
				t.Errorf("Allow: %q", a.header.Get("Allow"))
			}
			if a.header.Get("X-Content-Type-Options") != "nosniff" ||
				!strings.HasPrefix(a.header.Get("Content-Security-Policy"), "default-src 'none'") ||
				a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("headers: %v", a.header)
			}
		})
	}
	if policy := get(t, server.URL+"/icon?package=alpha").header.Get("Content-Security-Policy"); !strings.Contains(
		policy, "sandbox") || strings.Contains(policy, "script-src") {
		t.Errorf("an icon's policy is %q", policy)
	}
	for _, accept := range []string{"gzip", "x, GZIP;q=0.5", "*", "br;q=1.0, gzip;q=0.8, *;q=0.1"} {
		a := get(t, server.URL+"/api/v1/all", "Accept-Encoding", accept)
		z, err := gzip.NewReader(strings.NewReader(a.body))
		if err != nil {
			t.Errorf("%s: %v", accept, err)
			continue
		}
		if text, err := io.ReadAll(z); err != nil || string(text) != all.body {
			t.Errorf("%s: %d bytes, %v", accept, len(text), err)
		}
	}
	for _, refuse := range []string{"gzip;q=0", "br", "*;q=0", "gzip;q=0, *", "gzip;q=x"} {
		if a := get(t, server.URL+"/api/v1/all", "Accept-Encoding", refuse); a.header.Get("Content-Encoding") != "" ||
			a.body != all.body {
			t.Errorf("%s: compressed anyway", refuse)
		}
	}
}
