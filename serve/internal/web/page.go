package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/olmv1/upgrade"
)

// page is the page being built for a request.
type page struct {
	markup
	ctx   context.Context
	c     *Content
	site  string // the displayed name of the catalog
	query url.Values
	judge upgrade.Judge   // may be nil
	of    *packageSummary // the package that the page is about; nil for others
	kind  string          // the media type, unless it is HTML
	base  string          // the absolute address of the page; empty if it is not known

	request *http.Request // nil in a static site
	hosts   Hosts         // by which the server is asked
	files   files         // of a static site; nil on the server
}

// files make the addresses of a static site, whose pages are files.
type files interface {
	// to returns the address of another page, relative to this one; empty for one that is not written.
	to(page string, pairs []string) string
	// manifest returns the address of the page of a manifest, or of a version of what it defines. Manifests of a package
	// with the same content have one page.
	manifest(page string, b *declcfg.Bundle, m *manifest, version string) string
	// bundle returns a bundle as [page.readBundle] does.
	bundle(place *blob) (*readBundle, error)
	// asset returns the address of an asset, relative to this page.
	asset(name string) string
	// view returns a package as [page.readView] does.
	view(name string) (*view, error)
	// head writes what only the head of a page in a file has.
	head(p *page)
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
		p := &page{ctx: ctx, c: c, site: s.title, query: r.URL.Query(), request: r, hosts: s.hosts, judge: s.judge}
		code, body, err := s.build(p, build, zip)
		switch {
		case ctx.Err() != nil:
			answerBusy(w)
			return
		case errors.Is(err, errPageSize):
			fail(w, http.StatusInternalServerError, errPageSize.Error())
			return
		case errors.Is(err, errHost):
			fail(w, http.StatusBadRequest, errHost.Error())
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
		h.Set("Content-Type", cmp.Or(p.kind, "text/html; charset=utf-8"))
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
		p.markup, p.kind = markup{}, ""
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
`, title, p.site)
	p.describe(title)
	p.emit(`<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="stylesheet" href="{}">
<link rel="icon" type="image/svg+xml" href="{}">
<script src="{}" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top"><div class="wrap">
<a class="brand" href="{}"><img src="{}" alt="" width="28" height="28">{}</a>
<nav aria-label="Catalog"><a href="{}">Packages</a><a href="{}">Images</a>`, p.asset("style.css"),
		p.asset("mark.svg"), p.asset("page.js"), p.to("./"), p.asset("mark.svg"), p.site, p.to("./"), p.to("images"))
	if all := p.to("api/v1/all"); all != "" {
		p.emit(`<a href="{}">JSON</a>`, all)
	}
	p.emit("</nav>\n</div></header>\n<div class=\"wrap\">\n")
	if len(way) > 0 {
		p.emit(`<nav class="way" aria-label="Breadcrumb"><ol><li><a href="{}">Packages</a></li>`, p.to("./"))
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

// describe writes what the head of a page says to programs that link to it (Open Graph), and names its feed. In a
// static site it comes before everything that is loaded.
func (p *page) describe(title string) {
	if p.files != nil {
		p.files.head(p)
	}
	about, feed := "Packages, channels and versions of "+p.site, "New versions in "+p.site
	if p.of != nil {
		about = cmp.Or(lines(p.of.about), "The package "+name(p.of.name)+" of "+p.site)
		feed = "New versions of " + p.of.heading()
	}
	p.emit(`<meta name="description" content="{}">
<meta property="og:title" content="{}">
<meta property="og:description" content="{}">
<meta property="og:site_name" content="{}">
<meta property="og:type" content="website">
`, about, title, about, p.site)
	if address := p.feed(); len(address) <= maxLink {
		p.emit(`<link rel="alternate" type="application/atom+xml" title="{}" href="{}">`+"\n", feed, address)
	}
}

// feed returns the address of the feed with the versions of the page's package, or of the catalog.
func (p *page) feed() string {
	if p.of != nil {
		return p.to("feed.atom", "package", p.of.name)
	}
	return p.to("feed.atom")
}

// close ends a page. raw is the URL of the blobs that it shows.
func (p *page) close(raw string) {
	p.emit("</main>\n</div>\n<footer><div class=\"wrap\"><p>{}, {}. <span class=\"source\">{}</span>. ",
		count(len(p.c.packages), "package"), count(p.c.bundles, "bundle"), p.site)
	if raw != "" && len(raw) <= maxLink {
		p.emit(`<a href="{}">This page’s blobs as JSON lines</a> · `, raw)
	}
	p.a(p.feed(), "Feed of new versions")
	p.emit("</p></div></footer>\n</body>\n</html>\n")
}

// to returns the address of another page, relative to this one.
func (p *page) to(page string, pairs ...string) string {
	if p.files != nil {
		return p.files.to(page, pairs)
	}
	return link(page, pairs...)
}

// asset returns the address of an asset, relative to this page.
func (p *page) asset(name string) string {
	if p.files != nil {
		return p.files.asset(name)
	}
	return assetPath(name)
}

// live returns markup that only the pages of a server have, or the other for those of a static site.
func (p *page) live(served, static literal) literal {
	if p.files != nil {
		return static
	}
	return served
}

// maxLink is the maximum length of a linked URL in bytes: browsers and servers have limits.
const maxLink = 4 << 10

// a writes a link, or only the text if the URL would be too long or there is no such page.
func (p *page) a(address, text string) {
	if address == "" || len(address) > maxLink {
		p.emit("{}", text)
		return
	}
	p.emit(`<a href="{}">{}</a>`, address, text)
}

func (p *page) notFound() {
	p.message("Not found", "The catalog has nothing of this name: it may have had it before it was last loaded.")
}

// message writes a page with nothing but a sentence.
func (p *page) message(title, text string) {
	p.open(title, crumb{text: title})
	p.emit(`<div class="empty"><h1>{}</h1>
<p>{}</p><p><a href="{}">All packages</a></p></div>`, title, text, p.to("./"))
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
