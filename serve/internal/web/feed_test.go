package web

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// atomFeed is a feed as RFC 4287 defines it.
type atomFeed struct {
	XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string   `xml:"id"`
	Title   string   `xml:"title"`
	Updated string   `xml:"updated"`
	Entries []struct {
		ID        string `xml:"id"`
		Title     string `xml:"title"`
		Updated   string `xml:"updated"`
		Published string `xml:"published"`
		Author    string `xml:"author>name"`
		Summary   string `xml:"summary"`
		Link      struct {
			Href string `xml:"href,attr"`
		} `xml:"link"`
	} `xml:"entry"`
}

// feedOf parses a feed, and checks what every feed must have.
func feedOf(t testing.TB, body string) atomFeed {
	t.Helper()
	var f atomFeed
	if err := xml.Unmarshal([]byte(body), &f); err != nil {
		t.Fatalf("%v: %.500s", err, body)
	}
	ids := map[string]bool{f.ID: true}
	for _, e := range f.Entries {
		if ids[e.ID] || !strings.HasPrefix(e.ID, "urn:uuid:") || len(e.ID) != 45 || e.Title == "" || e.Author == "" {
			t.Errorf("an entry %+v", e)
		}
		ids[e.ID] = true
		if _, err := time.Parse(time.RFC3339, e.Updated); err != nil || e.Updated != e.Published {
			t.Errorf("updated %q, published %q: %v", e.Updated, e.Published, err)
		}
	}
	if len(f.Entries) > 0 && f.Updated != f.Entries[0].Updated {
		t.Errorf("the feed is of %s, its newest entry of %s", f.Updated, f.Entries[0].Updated)
	}
	return f
}

// datedCatalog has packages with bundles of one day each, and some that have no date or an unusual one.
func datedCatalog(t testing.TB, packages, bundles int) *Content {
	var text strings.Builder
	for p := range packages {
		fmt.Fprintf(&text, `{"schema":"olm.package","name":"p%d","defaultChannel":"c"}`+"\n", p)
		for b := range bundles {
			at := time.Date(2020, 1, 1+b*packages+p, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
			switch b {
			case 0:
				at = "soon"
			case 1:
				at = "05/16/2019"
			}
			fmt.Fprintf(&text, `{"schema":"olm.bundle","package":"p%d","name":"p%d.v1.%d.0","image":"x.test/y","properties":[`+
				`{"type":"olm.package","value":{"packageName":"p%d","version":"1.%d.0"}},{"type":"olm.csv.metadata","value":`+
				`{"displayName":"P %d","provider":{"name":"Acme & Co"},"annotations":{"createdAt":%q,`+
				`"description":"It is <new>."}}}]}`+
				"\n", p, p, b, p, b, p, at)
		}
	}
	return contentOf(t, fstest.MapFS{"c.json": {Data: []byte(text.String())}})
}

// Feeds have the newest versions first, and no more than they may have.
func TestFeeds(t *testing.T) {
	site := siteOf(t, datedCatalog(t, 3, 30))
	all := get(t, site.URL+"/feed.atom")
	if kind := all.header.Get("Content-Type"); kind != "application/atom+xml; charset=utf-8" {
		t.Errorf("the feed is %s", kind)
	}
	if all.header.Get("Cache-Control") != "no-cache" || all.header.Get("Content-Length") == "" {
		t.Errorf("headers: %v", all.header)
	}
	f := feedOf(t, all.body)
	if len(f.Entries) != maxLatest || f.Title != "New versions in example.test/catalog:v1" {
		t.Fatalf("%d entries of %q", len(f.Entries), f.Title)
	}
	first := f.Entries[0]
	if first.Title != "P 2 1.29.0" || first.Summary != "It is <new>." || first.Author != "Acme & Co" ||
		first.Link.Href != "bundle?package=p2&name=p2.v1.29.0" || first.Updated != "2020-03-30T00:00:00Z" {
		t.Errorf("the first entry is %+v", first)
	}
	if a := get(t, site.URL+"/"+first.Link.Href); a.code != http.StatusOK {
		t.Errorf("the link of an entry: %d", a.code)
	}
	if again := get(t, site.URL+"/feed.atom"); again.body != all.body {
		t.Error("the feed changes while the catalog does not")
	}
	one := feedOf(t, get(t, site.URL+"/feed.atom?package=p1").body)
	if len(one.Entries) != 29 || one.Entries[28].Updated != "2019-05-16T00:00:00Z" || one.ID == f.ID {
		t.Errorf("%d entries: %+v", len(one.Entries), one.Entries[len(one.Entries)-1])
	}
	if a := get(t, site.URL+"/feed.atom?package=none"); a.code != http.StatusNotFound ||
		!strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Errorf("a package that is not there: %d %v", a.code, a.header)
	}
	zipped := get(t, site.URL+"/feed.atom", "Accept-Encoding", "gzip")
	if zipped.header.Get("Content-Encoding") != "gzip" {
		t.Error("the feed is not compressed")
	}
	for page, feed := range map[string]string{"/": `title="New versions in example.test/catalog:v1" href="feed.atom"`,
		"/package?name=p1": `title="New versions of p1" href="feed.atom?package=p1"`} {
		if body := get(t, site.URL+page).body; !strings.Contains(body, `type="application/atom+xml" `+feed) {
			t.Errorf("the head of %s does not have %s", page, feed)
		}
	}
}

// A package with very many versions has the newest of them in its feed.
func TestFeedIsBounded(t *testing.T) {
	f := feedOf(t, get(t, siteOf(t, datedCatalog(t, 1, maxVersions+50)).URL+"/feed.atom?package=p0").body)
	if len(f.Entries) != maxVersions || !strings.HasSuffix(f.Entries[0].Title, fmt.Sprintf("1.%d.0", maxVersions+49)) {
		t.Errorf("%d entries, the first %q", len(f.Entries), f.Entries[0].Title)
	}
}

// A feed can be parsed whatever is in the catalog, and links to a page.
func TestHostileFeeds(t *testing.T) {
	for _, evil := range append(hostile, "\uFFFE\uFFFF", "\x01\x7f\u0085", "a\xffb", "\U000E0001") {
		if len(evil) > maxLink {
			continue
		}
		site := siteOf(t, hostileCatalog(t, evil)).URL
		for _, address := range []string{"/feed.atom", "/feed.atom?package=" + url.QueryEscape(evil)} {
			a := get(t, site+address)
			if evil == "a\xffb" && a.code == http.StatusNotFound {
				continue // JSON has another name in its place
			}
			f := feedOf(t, a.body)
			if len(f.Entries) != 1 || get(t, site+"/"+f.Entries[0].Link.Href).code != http.StatusOK {
				t.Errorf("%q: %+v", evil, f)
			}
		}
	}
}

// A request that gives up does not end what others need.
func TestFeedGoesOnWithoutItsFirstReader(t *testing.T) {
	c := datedCatalog(t, 2, 5)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// The answer of a request that has ended is either of both.
	_, err := c.latest.get(ctx, c, func() ([]*version, error) { return c.newest(context.Background(), c.blobs, 3) })
	if err != nil && err != context.Canceled {
		t.Error(err)
	}
	if f := feedOf(t, get(t, siteOf(t, c).URL+"/feed.atom").body); len(f.Entries) != 3 {
		t.Errorf("%d entries", len(f.Entries))
	}
}

// A sitemap has absolute addresses, of the host that a request names.
func TestSitemap(t *testing.T) {
	site := siteOf(t, contentOf(t, sampleFS())).URL
	a := get(t, site+"/sitemap.txt")
	if a.code != http.StatusOK || a.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Fatalf("%d %v", a.code, a.header)
	}
	lines := strings.Split(strings.TrimSuffix(a.body, "\n"), "\n")
	for _, line := range lines {
		if !strings.HasPrefix(line, site+"/") || get(t, line).code != http.StatusOK {
			t.Errorf("the sitemap has %q", line)
		}
	}
	if len(lines) != 9 || !slices.Contains(lines, site+"/channel?package=alpha&name=old") {
		t.Errorf("%d lines:\n%s", len(lines), a.body)
	}
	for host, want := range map[string]string{"catalog.example.com": "https://catalog.example.com/", "evil.test": "",
		"[::1]:80": "https://[::1]:80/", "user@host": "", "a/b": "", "a b": "", "a:b": "", "a\"b": "", "evil.test?": ""} {
		r := &http.Request{Host: host, URL: &url.URL{Path: "/"}, Header: http.Header{"X-Forwarded-Proto": {"https"}}}
		if got := (Hosts{"catalog.example.com"}).baseOf(r); got != want {
			t.Errorf("the host %q: %q", host, got)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site+"/sitemap.txt", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.test"
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("a host that is not known: %s", answer.Status)
	}
}

// A sitemap of a large catalog ends where one may.
func TestSitemapIsBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"schema":"olm.package","name":"p","defaultChannel":"c0"}` + "\n")
	for i := range maxSitemap + 10 {
		fmt.Fprintf(&text, `{"schema":"olm.channel","package":"p","name":"c%d","entries":[]}`+"\n", i)
	}
	body := get(t, siteOf(t, contentOf(t, fstest.MapFS{"c.json": {Data: []byte(text.String())}})).URL+"/sitemap.txt").body
	if n := strings.Count(body, "\n"); n != maxSitemap {
		t.Errorf("%d addresses", n)
	}
}

// Pages say what they are about to programs that link to them.
func TestOpenGraph(t *testing.T) {
	site := siteOf(t, contentOf(t, sampleFS())).URL
	for page, want := range map[string][]string{
		"/package?name=alpha": {`<meta property="og:title" content="Alpha Operator">`,
			`<meta property="og:description" content="It does things.">`,
			`<meta name="description" content="It does things.">`},
		"/package?name=beta": {`content="The package beta of example.test/catalog:v1"`},
		"/": {`<meta property="og:site_name" content="example.test/catalog:v1">`,
			`<meta property="og:type" content="website">`},
	} {
		body := get(t, site+page).body
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s does not have %s: %.900s", page, text, body)
			}
		}
		if strings.Contains(body, "og:image") || strings.Contains(body, "og:url") {
			t.Errorf("%s names an address that the server does not know", page)
		}
	}
}
