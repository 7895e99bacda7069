package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/net/html"
)

// document is a page as a browser sees it.
type document struct {
	links, ids []string
	count      map[string]int // number of elements by name
	text       string
	attributes []html.Attribute
	odd        []string // content that no page may have
}

// allowed are the attributes that pages may use; of SVG those of package graph.
var allowed = strings.Fields(`lang charset name property content rel href type src defer class id alt width height loading role action method for value maxlength autocomplete spellcheck hidden
 placeholder form checked selected open datetime data-copy data-icon data-label title
 aria-label aria-labelledby aria-current aria-hidden tabindex scope colspan data-row data-ends
 viewbox x y x1 y1 d cx cy r transform text-anchor dx fill`)

func parsePage(t testing.TB, body string) document {
	t.Helper()
	d := document{count: map[string]int{}}
	root, err := html.ParseWithOptions(strings.NewReader(body), html.ParseOptionEnableScripting(false))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for n := range root.Descendants() {
		switch n.Type {
		case html.TextNode:
			text.WriteString(n.Data)
		case html.CommentNode:
			d.odd = append(d.odd, "comment "+n.Data)
		case html.ElementNode:
			d.count[n.Data]++
			for _, a := range n.Attr {
				d.attributes = append(d.attributes, a)
				switch {
				case a.Key == "href" && n.Data != "link" || a.Key == "src":
					d.links = append(d.links, a.Val)
				case a.Key == "id":
					d.ids = append(d.ids, a.Val)
				}
				if !slices.Contains(allowed, strings.ToLower(a.Key)) {
					d.odd = append(d.odd, n.Data+" "+a.Key+"="+a.Val)
				}
			}
		}
	}
	d.text = text.String()
	return d
}

// check returns what is wrong with a page, whatever it shows.
func (d *document) check() error {
	for element, want := range map[string]int{"html": 1, "title": d.count["title"], "h1": 1, "main": 1, "header": 1,
		"footer": 1, "script": 1, "style": 0, "iframe": 0, "object": 0, "base": 0} {
		if d.count[element] != want {
			return fmt.Errorf("%d elements %q", d.count[element], element)
		}
	}
	if len(d.odd) > 0 {
		return fmt.Errorf("it has %q", d.odd)
	}
	ids := slices.Sorted(slices.Values(d.ids))
	if unique := slices.Compact(slices.Clone(ids)); len(unique) != len(ids) {
		return fmt.Errorf("identifiers are there twice: %q", ids)
	}
	for _, a := range d.attributes {
		if a.Key == "aria-labelledby" && !slices.Contains(ids, a.Val) {
			return fmt.Errorf("nothing has the identifier %q", a.Val)
		}
	}
	for _, l := range d.links {
		u, err := url.Parse(l)
		if err != nil || u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" || strings.HasPrefix(l, "/") {
			return fmt.Errorf("a link to %q", l)
		}
	}
	if strings.ContainsAny(d.text, "\x00\x1b\u202e\u2028") {
		return fmt.Errorf("characters that cannot be seen")
	}
	return nil
}

// crawl requests every page reachable from the first one, and everything that these refer to.
func crawl(t *testing.T, server string) map[string]document {
	t.Helper()
	base, err := url.Parse(server + "/")
	if err != nil {
		t.Fatal(err)
	}
	pages, seen, todo := map[string]document{}, map[string]bool{server + "/": true}, []string{server + "/"}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		a := get(t, at)
		if a.code != http.StatusOK {
			t.Errorf("%s: %d", at, a.code)
		}
		if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
			continue
		}
		d := parsePage(t, a.body)
		if err := d.check(); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		here, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		pages[strings.TrimPrefix(at, server)] = d
		for _, l := range d.links {
			to, err := here.Parse(l)
			if err != nil {
				t.Errorf("%s: %v", at, err)
				continue
			}
			to.Fragment = ""
			if to.Host == base.Host && !seen[to.String()] {
				seen[to.String()] = true
				todo = append(todo, to.String())
			}
		}
	}
	return pages
}

// Everything is reachable from the list, no link is broken, and every page is well-formed.
func TestPagesAreWhole(t *testing.T) {
	pages := crawl(t, siteOf(t, contentOf(t, sampleFS())).URL)
	for page, says := range map[string][]string{
		"/": {"2 packages", "Alpha Operator", "by Someone", "Deprecated", "1.1.0",
			"beta", "example.test/catalog:v1"},
		"/images":               {"example.test/operator:v1", "example.test/beta@sha256:", "4 images"},
		"/images?package=alpha": {"example.test/operator:v1", "3 images"},
		"/package?name=beta":    {"beta.v1.0.0", "There is no description."},
		"/package?name=alpha": {"Alpha Operator", "alpha goes", "Whole description.", "old goes",
			"one goes", "AllNamespaces", "thing", "custom.thing", "example.test/alpha:v1.0.0"},
		"/channel?package=alpha&name=stable": {"default channel", ">=1.0.0 <1.1.0", "alpha.v1.0.1", "alpha.v1.1.0"},
		"/channel?package=alpha&name=old":    {"This channel is deprecated.", "old goes"},
		"/bundle?package=alpha&name=alpha.v1.1.0": {"An alpha.", "alpha.test", "Beta", "not in this catalog",
			"example.test/operator:v1", "olm.constraint", "failureMessage", "storage", "M m@alpha.test"},
		"/bundle?package=alpha&name=alpha.v1.0.0": {"This bundle is deprecated.", "ClusterServiceVersion",
			"Upgraded by", "Storage"},
	} {
		d, ok := pages[page]
		if !ok {
			t.Errorf("%s cannot be reached", page)
			continue
		}
		for _, text := range says {
			if !strings.Contains(d.text, text) {
				t.Errorf("%s does not say %q", page, text)
			}
		}
		if strings.Contains(d.text, "OwnNamespace") {
			t.Errorf("%s shows an install mode that is not supported", page)
		}
	}
	if len(pages) != 16 {
		t.Errorf("%d pages", len(pages))
	}
	if svg := pages["/package?name=alpha"].count["svg"]; svg != 2 {
		t.Errorf("%d pictures: the graph and its legend are wanted", svg)
	}
}

// A search finds packages that contain all words.
func TestSearch(t *testing.T) {
	server := siteOf(t, contentOf(t, sampleFS()))
	for q, want := range map[string]string{"": "2 packages", "ALPHA": "1 package of 2",
		"someone storage": "1 package of 2", "alpha beta": "0 packages of 2", "things": "1 package of 2", "<b>": "0 packages of 2",
		"<i>": "0 packages of 2"} {
		d := parsePage(t, get(t, server.URL+"/?q="+url.QueryEscape(q)).body)
		if err := d.check(); err != nil || !strings.Contains(d.text, want) {
			t.Errorf("%q: %q is not there, %v", q, want, err)
		}
	}
	d := parsePage(t, get(t, server.URL+"/images?q=operator").body)
	if !strings.Contains(d.text, "1 image") || strings.Contains(d.text, "alpha:v1") {
		t.Errorf("images: %s", d.text)
	}
}

// hostile are texts that would be something else if they were not escaped.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, "a\x00b",
	"a\u202eb\u2028c", "</title></style></svg><iframe>", "{}", "&lt;b&gt;&#60;", "..", "../../etc/passwd", "%2e%2e",
	"a?b=c&d#e", "a\r\nSet-Cookie: x=y", "\x1b[31m", "javascript:alert(1)", "]]><!--", strings.Repeat("é", 300_000),
}

// hostileCatalog returns a catalog in which every name and text is the given one.
func hostileCatalog(t testing.TB, evil string) *Content {
	t.Helper()
	property := func(kind string, value any) map[string]any { return map[string]any{"type": kind, "value": value} }
	blobs := []map[string]any{
		{"schema": "olm.package", "name": evil, "defaultChannel": evil, "description": "# " + evil + "\n\n" + evil,
			"icon": map[string]any{"base64data": base64.StdEncoding.EncodeToString(
				[]byte("<svg onload='alert(1)'/>")), "mediatype": "image/svg+xml"}},
		{"schema": "olm.channel", "package": evil, "name": evil,
			"entries": []any{map[string]any{"name": evil, "replaces": evil + "0", "skips": []string{evil + "1"},
				"skipRange": evil}}},
		{"schema": "olm.bundle", "package": evil, "name": evil, "image": evil,
			"relatedImages": []any{map[string]any{"name": evil, "image": evil}}, "properties": []any{
				property("olm.package", map[string]any{"packageName": evil, "version": "1.0.0"}),
				property(evil, evil),
				property("olm.gvk", map[string]any{"group": evil, "kind": evil, "version": evil}),
				property("olm.package.required", map[string]any{"packageName": evil, "versionRange": evil}),
				property("olm.csv.metadata",
					map[string]any{"displayName": evil, "description": evil, "keywords": []string{evil},
						"annotations": map[string]string{"description": evil, "repository": evil,
							"capabilities": evil, "createdAt": "2024-01-02"}, "provider": map[string]string{"name": evil},
						"links": []any{map[string]any{"name": evil, "url": evil},
							map[string]any{"name": evil, "url": "javascript:alert(1)"},
							map[string]any{"name": evil, "url": "https://x.test/" + evil}},
						"maintainers": []any{map[string]any{"name": evil, "email": evil}},
						"crdDescriptions": map[string]any{"owned": []any{map[string]any{"name": evil, "kind": evil,
							"version": evil, "description": evil}}}, "apiServiceDefinitions": map[string]any{}}),
			}},
		{"schema": "olm.deprecations", "package": evil, "entries": []any{
			map[string]any{"reference": map[string]any{"schema": "olm.package"}, "message": evil},
			map[string]any{"reference": map[string]any{"schema": "olm.channel", "name": evil}, "message": evil},
			map[string]any{"reference": map[string]any{"schema": "olm.bundle", "name": evil}, "message": evil}}},
		{"schema": evil, "package": evil, "name": evil},
	}
	var text bytes.Buffer
	for _, b := range blobs {
		if err := json.NewEncoder(&text).Encode(b); err != nil {
			t.Fatal(err)
		}
	}
	return contentOf(t, fstest.MapFS{"c.json": {Data: text.Bytes()}})
}

// Everything from a catalog is text: no name, description, message, link, icon or property becomes markup or script, or
// a URL outside of its place.
func TestHostileCatalogIsText(t *testing.T) {
	for i, evil := range hostile {
		server := siteOf(t, hostileCatalog(t, evil))
		if len(evil) > maxLink {
			a := get(t, server.URL+"/")
			if d := parsePage(t, a.body); d.check() != nil || len(a.body) > 20_000 {
				t.Errorf("a name of %d bytes: a page of %d bytes, %v", len(evil), len(a.body), d.check())
			}
			continue
		}
		pages := crawl(t, server.URL)
		// the list, and that of the provider, the package, its channel, its bundle, its images and all images
		if len(pages) != 7 {
			t.Errorf("name %d %q: %d pages", i, evil, len(pages))
		}
	}
}

// Markup consists of constants, and values cannot break out of their places.
func TestValuesAreEscaped(t *testing.T) {
	var h markup
	h.emit(`<a href="{}">{}</a>`, `"><b>{}`, "'&\x00<i>")
	if got, want := h.String(), `<a href="&#34;&gt;&lt;b&gt;{}">&#39;&amp;`+"\uFFFD"+`&lt;i&gt;</a>`; got != want {
		t.Errorf("got %s", got)
	}
	for _, test := range []func(){func() { h.emit("{}") }, func() { h.emit("", "x") }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("values that do not fit their places are taken")
				}
			}()
			test()
		}()
	}
	h.emit("{}", strings.Repeat("x", maxPage))
	h.emit("more")
	if !h.full || h.Len() > maxPage || strings.Contains(h.String(), "more") {
		t.Errorf("a page of %d bytes", h.Len())
	}
}

// A package with very many bundles and channels has pages of limited size.
func TestLargePackage(t *testing.T) {
	var text strings.Builder
	const bundles, channels = 6000, 60
	text.WriteString(`{"schema":"olm.package","name":"big","defaultChannel":"c0"}` + "\n")
	for c := range channels {
		fmt.Fprintf(&text, `{"schema":"olm.channel","package":"big","name":"c%d","entries":[`, c)
		for i := range bundles / channels {
			n := c*bundles/channels + i
			if i > 0 {
				fmt.Fprintf(&text, `,{"name":"big.v1.%d.0","replaces":"big.v1.%d.0","skipRange":"<1.%d.0"}`, n, n-1, n)
			} else {
				fmt.Fprintf(&text, `{"name":"big.v1.%d.0"}`, n)
			}
		}
		text.WriteString("]}\n")
	}
	for n := range bundles {
		fmt.Fprintf(&text,
			`{"schema":"olm.bundle","package":"big","name":"big.v1.%d.0","image":"example.test/big:%d","properties":[{"type":"olm.package","value":{"packageName":"big","version":"1.%d.0"}}]}`+"\n", n, n, n)
	}
	server := siteOf(t, contentOf(t, fstest.MapFS{"c.json": {Data: []byte(text.String())}}))
	for _, path := range []string{"/package?name=big", "/channel?package=big&name=c7",
		"/bundle?package=big&name=big.v1.700.0", "/images"} {
		if a := get(t, server.URL+path, "Accept-Encoding", "gzip"); a.code != http.StatusOK {
			t.Errorf("%s: %d", path, a.code)
		}
	}
	if a := get(t, server.URL+"/package?name=big"); !strings.Contains(a.body, "The package has 60 channels") ||
		len(a.body) > 4<<20 {
		t.Errorf("%d bytes", len(a.body))
	}
}

// Every part of an answer has its own deadline, and the whole answer has one.
func TestSlowReadersHaveDeadlines(t *testing.T) {
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	p := newPatient(w)
	if _, err := p.Write(make([]byte, 10*pieceSize+1)); err != nil || w.Body.Len() != 10*pieceSize+1 ||
		len(w.at) != 11 {
		t.Fatalf("%d bytes in %d pieces, %v", w.Body.Len(), len(w.at), err)
	}
	for _, at := range w.at {
		if left := time.Until(at); left > stall || left < stall/2 {
			t.Errorf("a piece has %v", left)
		}
	}
	p.end = time.Now().Add(time.Second)
	if _, err := io.WriteString(p, "x"); err != nil || time.Until(w.at[11]) > time.Second {
		t.Errorf("the last piece has %v, %v", time.Until(w.at[11]), err)
	}
}

type deadlines struct {
	*httptest.ResponseRecorder
	at []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error { d.at = append(d.at, t); return nil }

// Pages wait for their turn, and beyond the memory limit get status 503.
func TestTooManyPages(t *testing.T) {
	s := NewSite("test", nil)
	s.SetContent(contentOf(t, sampleFS()))
	defer s.Close()
	s.sending.Store(pageMemory)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if s.sending.Load() != pageMemory || len(s.making) != 0 {
		t.Errorf("%d bytes and %d places stay taken", s.sending.Load()-pageMemory, len(s.making))
	}
}
