package web

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// modelCatalog is a catalog as catalogd's description has it: lines in the order of the files, and the time of storing.
type modelCatalog struct {
	name   string
	gates  string
	lines  []modelLine
	stored time.Time
	tag    string // this server's; catalogd has none
}

type modelLine struct{ schema, pkg, name, text string }

// modelRequest is a request to catalogd's routes.
type modelRequest struct {
	method, catalog, route string
	query                  url.Values
	headers                map[string]string
}

// modelResponse is what is to be answered. An empty body of a status other than 200 is not compared.
type modelResponse struct {
	status int
	body   string
}

func (c *modelCatalog) answer(r modelRequest) modelResponse {
	text := func(status int, body string) modelResponse { return modelResponse{status, body + "\n"} }
	reading := r.method == http.MethodGet || r.method == http.MethodHead
	switch {
	case r.route != "all" && (r.route != "metas" || !strings.Contains(c.gates, "metas")):
		return text(404, "404 page not found")
	case !reading:
		return text(405, "Method Not Allowed")
	case strings.ToLower(r.catalog) != r.catalog || strings.HasPrefix(r.catalog, "-"):
		return modelResponse{status: 400}
	}
	if r.route == "metas" {
		for name := range r.query {
			if name != "schema" && name != "package" && name != "name" {
				return text(400, "400 Bad Request")
			}
		}
	}
	if r.catalog != c.name {
		return text(404, "404 Not Found")
	}
	if status := c.condition(r); status != 0 {
		return modelResponse{status: status}
	}
	body := ""
	schema, pkg, name := r.query.Get("schema"), r.query.Get("package"), r.query.Get("name")
	for _, l := range c.lines {
		every := r.route == "all" || schema+pkg+name == ""
		if every || l.schema != "" && (schema == "" || l.schema == schema) && (pkg == "" || l.pkg == pkg) &&
			(name == "" || l.name == name) {
			body += l.text + "\n"
		}
	}
	return c.part(r, body)
}

// condition returns the status of a condition that is not met, in the order of RFC 9110.
func (c *modelCatalog) condition(r modelRequest) int {
	date := func(name string) (time.Time, bool) {
		at, err := http.ParseTime(r.headers[name])
		return at, err == nil
	}
	lists := func(name string) bool { return r.headers[name] == "*" || r.headers[name] == c.tag }
	stored := c.stored.Truncate(time.Second)
	if r.headers["If-Match"] != "" {
		if !lists("If-Match") {
			return 412
		}
	} else if at, ok := date("If-Unmodified-Since"); ok && stored.After(at) {
		return 412
	}
	if r.headers["If-None-Match"] != "" {
		if lists("If-None-Match") {
			return 304
		}
	} else if at, ok := date("If-Modified-Since"); ok && !stored.After(at) {
		return 304
	}
	return 0
}

// part applies a range.
func (c *modelCatalog) part(r modelRequest, body string) modelResponse {
	from, to, ok := strings.Cut(strings.TrimPrefix(r.headers["Range"], "bytes="), "-")
	if !ok {
		return modelResponse{200, body}
	}
	begin, err := strconv.Atoi(from)
	end, endErr := strconv.Atoi(to)
	switch {
	case err != nil && endErr == nil:
		begin, end = max(0, len(body)-end), len(body)-1
	case endErr != nil || end >= len(body):
		end = len(body) - 1
	}
	switch {
	case len(body) == 0:
		return modelResponse{200, ""}
	case begin >= len(body):
		return modelResponse{status: 416}
	}
	return modelResponse{206, body[begin : end+1]}
}

// Random requests for random catalogs are answered as catalogd's description says.
func TestRandomRequests(t *testing.T) {
	seen := map[int]int{}
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 6))
		c, server := randomCatalog(t, r)
		for range 60 {
			q := randomRequest(r, c)
			want := c.answer(q)
			got := ask(t, q.method, server+"/catalogs/"+q.catalog+"/api/v1/"+q.route+"?"+q.query.Encode(),
				pairs(q.headers)...)
			seen[got.code]++
			body := want.body
			if q.method == http.MethodHead {
				body = ""
			}
			if got.code != want.status || (want.status == 200 || body != "") && got.body != body ||
				got.header.Get("Vary") != "Accept-Encoding" {
				t.Fatalf("seed %d: %+v\ngot  %d %q\nwant %d %q", seed, q, got.code, got.body, want.status, body)
			}
		}
	}
	for _, status := range []int{200, 206, 304, 400, 404, 405, 412, 416} {
		if seen[status] < 5 {
			t.Errorf("few answers of status %d: %v", status, seen)
		}
	}
}

func pairs(headers map[string]string) (all []string) {
	for name, value := range headers {
		all = append(all, name, value)
	}
	return all
}

func one[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// randomCatalog returns a catalog in several files, and a server for it.
func randomCatalog(t *testing.T, r *rand.Rand) (*modelCatalog, string) {
	t.Helper()
	c := &modelCatalog{name: "c", gates: one(r, "none", "metas", "metas,graphql"), stored: time.Unix(1.7e9, 5e8)}
	files := fstest.MapFS{}
	for _, file := range []string{"a.json", "b/a.json", "b/b.json", "c.json"} { // in catalogd's order
		text := ""
		for range r.IntN(5) {
			l := modelLine{schema: one(r, "x", "y", "custom"), pkg: one(r, "", "p", "q"), name: one(r, "", "n", "p")}
			fields := map[string]any{"schema": l.schema, "value": r.IntN(9)}
			if l.pkg != "" {
				fields["package"] = l.pkg
			}
			if l.name != "" {
				fields["name"] = l.name
			}
			b, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			l.text = string(b)
			c.lines = append(c.lines, l)
			text += l.text + one(r, "", "\n", " ")
		}
		files[file] = &fstest.MapFile{Data: []byte(text)}
	}
	gates, err := ParseGates(c.gates)
	if err != nil {
		t.Fatal(err)
	}
	content := contentOf(t, files)
	content.modified = c.stored
	c.tag = content.etag()
	s := New(Options{Name: c.name, Gates: gates})
	s.SetContent(content)
	server := httptest.NewServer(s)
	t.Cleanup(func() { server.Close(); s.Close() })
	return c, server.URL
}

func randomRequest(r *rand.Rand, c *modelCatalog) modelRequest {
	q := modelRequest{method: one(r, "GET", "GET", "GET", "HEAD", "POST", "DELETE"), query: url.Values{},
		catalog: one(r, "c", "c", "c", "c", "c", "c", "other", "Bad", "-x"),
		route:   one(r, "all", "all", "metas", "metas", "metas", "none"), headers: map[string]string{}}
	for range r.IntN(3) {
		q.query.Add(one(r, "schema", "package", "name"), one(r, "x", "y", "p", "q", "n", "", "nothing"))
	}
	if r.IntN(12) == 0 {
		q.query.Set(one(r, "Schema", "foo", ""), "x")
	}
	if r.IntN(2) == 0 {
		date := func() string {
			return one(r, "nonsense", c.stored.Add(time.Duration(r.IntN(3)-1)*time.Hour).UTC().Format(http.TimeFormat),
				c.stored.UTC().Format(http.TimeFormat))
		}
		tag := func() string { return one(r, `"x"`, "*", c.tag) }
		for range 1 + r.IntN(2) {
			switch name := one(r, "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"); name {
			case "If-Match", "If-None-Match":
				q.headers[name] = tag()
			default:
				q.headers[name] = date()
			}
		}
	}
	if r.IntN(4) == 0 {
		q.headers["Range"] = one(r, fmt.Sprintf("bytes=%d-%d", r.IntN(20), 20+r.IntN(2000)),
			fmt.Sprintf("bytes=-%d", 1+r.IntN(50)), fmt.Sprintf("bytes=%d-", r.IntN(500)))
	}
	return q
}
