package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// maxSitemap is the maximum number of addresses in a sitemap (https://www.sitemaps.org/protocol.html).
const maxSitemap = 50_000

// sitemapPage lists the absolute addresses of the pages of the catalog, its packages, their channels and newest
// bundles, one per line.
func sitemapPage(p *page) error {
	if p.files == nil {
		if p.base = p.hosts.baseOf(p.request); p.base == "" {
			return errHost
		}
	}
	p.kind = "text/plain; charset=utf-8"
	n := 0
	add := func(page string, pairs ...string) {
		address := p.to(page, pairs...)
		if n++; n <= maxSitemap && p.hasSpace() && len(address) <= maxLink {
			p.write(p.absolute(address) + "\n") // the characters of an address need no escapes in a text
		}
	}
	add("./")
	add("images")
	for i := range p.c.packages {
		s := &p.c.packages[i]
		add("package", "name", s.name)
		for _, b := range p.c.blobsOf(s.name) {
			if b.schema == declcfg.SchemaChannel {
				add("channel", "package", s.name, "name", b.name)
			}
		}
		if p.c.findFirst(s.name, declcfg.SchemaBundle, s.head) != nil {
			add("bundle", "package", s.name, "name", s.head)
		}
	}
	return nil
}

// baseOf returns the absolute address of a request's page, from the header Host, if that names this server, and from
// what a proxy in front of the server says; empty if that is no address.
func (h Hosts) baseOf(r *http.Request) string {
	u := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path}
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		u.Scheme = "https"
	}
	bad := func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune(".-_:[]", c))
	}
	read, err := url.Parse(u.String())
	if err != nil || !h.know(r.Host) || read.Hostname() == "" || read.Host != r.Host || strings.ContainsFunc(r.Host, bad) {
		return ""
	}
	return u.String()
}
