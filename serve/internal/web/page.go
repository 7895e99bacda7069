package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/operator-bindery/bindery/declcfg"
)

// page is the page being built for a request.
type page struct {
	markup
	ctx   context.Context
	c     *Content
	site  string // the displayed name of the catalog
	query url.Values
}

// crumb is an element of the breadcrumb navigation.
type crumb struct{ text, link string }

// errNotFound is returned for something that is not in the catalog.
var errNotFound = errors.New("not found")

// page returns the handler of a page. A few pages are built concurrently, each completely in memory before the first
// byte is sent, so that slow clients do not block others.
func (s *Site) page(build func(*page) error) func(*Content, http.ResponseWriter, *http.Request) {
	return func(c *Content, w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), pageTime)
		defer cancel()
		if !s.turn(ctx) {
			answerBusy(w)
			return
		}
		zip := acceptsGzip(r.Header)
		p := &page{ctx: ctx, c: c, site: s.title, query: r.URL.Query()}
		code, body, err := s.build(p, build, zip)
		switch {
		case ctx.Err() != nil:
			answerBusy(w)
			return
		case errors.Is(err, errPageSize):
			fail(w, http.StatusInternalServerError, errPageSize.Error())
			return
		case err != nil:
			s.log.Error("a page cannot be made", "page", r.URL.Path, "error", err)
			fail(w, http.StatusInternalServerError, "the catalog cannot be read")
			return
		}
		sent, ok := s.reserve(w, len(body))
		defer sent()
		if !ok {
			answerBusy(w)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		if zip {
			h.Set("Content-Encoding", "gzip")
		}
		h.Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(code)
		if r.Method != http.MethodHead {
			_, _ = w.Write(body)
		}
	}
}

// build builds the page, compressed if zip is set, and ends the turn.
func (s *Site) build(p *page, build func(*page) error, zip bool) (code int, body []byte, err error) {
	defer s.next()
	code = http.StatusOK
	err = build(p)
	if errors.Is(err, errNotFound) {
		code, err = http.StatusNotFound, nil
		p.markup = markup{}
		p.notFound()
	}
	switch {
	case err != nil:
		return 0, nil, err
	case p.full:
		return 0, nil, errPageSize
	case zip:
		return code, s.zips.compress(p.Bytes()), nil
	}
	return code, p.Bytes(), nil
}

func answerBusy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "10")
	fail(w, http.StatusServiceUnavailable, "too many pages are asked for")
}

// hasSpace reports whether there is space for more rows. A truncated list says so.
func (p *page) hasSpace() bool { return p.Len() < maxPage-maxDrawing/2 }

// open begins a page. The last crumb is the page itself.
func (p *page) open(title string, way ...crumb) {
	p.emit(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{} · {}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="stylesheet" href="{}">
<link rel="icon" type="image/svg+xml" href="{}">
<script src="{}" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top"><div class="wrap">
<a class="brand" href="./"><img src="{}" alt="" width="28" height="28">{}</a>
<nav aria-label="Catalog"><a href="./">Packages</a><a href="images">Images</a><a href="api/v1/all">JSON</a></nav>
</div></header>
<div class="wrap">
`, title, p.site, assetPath("style.css"), assetPath("mark.svg"), assetPath("page.js"), assetPath("mark.svg"), p.site)
	if len(way) > 0 {
		p.emit(`<nav class="way" aria-label="Breadcrumb"><ol><li><a href="./">Packages</a></li>`)
		for i, step := range way {
			if i == len(way)-1 {
				p.emit(`<li aria-current="page">{}</li>`, step.text)
			} else {
				p.emit(`<li><a href="{}">{}</a></li>`, step.link, step.text)
			}
		}
		p.emit("</ol></nav>\n")
	}
	p.emit(`<main id="main" tabindex="-1">` + "\n")
}

// close ends a page. raw is the URL of the blobs that it shows.
func (p *page) close(raw string) {
	p.emit("</main>\n</div>\n<footer><div class=\"wrap\"><p>{}, {}. <span class=\"source\">{}</span>. ",
		count(len(p.c.packages), "package"), count(p.c.bundles, "bundle"), p.site)
	if raw != "" && len(raw) <= maxLink {
		p.emit(`<a href="{}">This page’s blobs as JSON lines</a>`, raw)
	}
	p.emit("</p></div></footer>\n</body>\n</html>\n")
}

// maxLink is the maximum length of a linked URL in bytes: browsers and servers have limits.
const maxLink = 4 << 10

// a writes a link, or only the text if the URL would be too long.
func (p *page) a(address, text string) {
	if len(address) > maxLink {
		p.emit("{}", text)
		return
	}
	p.emit(`<a href="{}">{}</a>`, address, text)
}

func (p *page) notFound() {
	p.open("Not found", crumb{text: "Not found"})
	p.emit(
		`<div class="empty"><h1>Not found</h1>
<p>The catalog has nothing of this name: it may have had it before it was last loaded.</p><p><a href="./">All packages</a></p></div>`)
	p.close("")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// packageBlob returns the olm.package blob of a name, or nil.
func (c *Content) packageBlob(name string) *blob {
	return c.findFirst(name, declcfg.SchemaPackage, name)
}

func (c *Content) pkg(b *blob) (*declcfg.Package, error) {
	read, err := c.parse(b)
	if err != nil {
		return nil, err
	}
	pkg, ok := read.(*declcfg.Package)
	if !ok {
		return nil, errNotFound
	}
	return pkg, nil
}
