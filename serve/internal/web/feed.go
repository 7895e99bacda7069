package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
)

// The maximum number of entries of the feeds of a catalog and of a package.
const (
	maxLatest   = 50
	maxVersions = 200
)

// version is a bundle with a date, as a feed shows it.
type version struct {
	pkg, bundle, title, about, author string
	created                           time.Time
}

// newestFirst orders versions.
func newestFirst(a, b *version) int {
	return cmp.Or(b.created.Compare(a.created), cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.bundle, b.bundle))
}

// newest returns the newest versions of blobs, at most a number of them. Bundles are read one after the other, and
// those without a date that can be read are left out.
func (c *Content) newest(ctx context.Context, blobs []blob, most int) ([]*version, error) {
	var found []*version
	for i := range blobs {
		b := &blobs[i]
		at, there := c.byName[b.pkg]
		if b.schema != declcfg.SchemaBundle || !there {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		bundle, err := c.bundle(b)
		if err != nil {
			return nil, err
		}
		facts := csvOf(bundle)
		v := &version{pkg: b.pkg, bundle: b.name}
		if v.created, there = facts.created(); !there {
			continue
		}
		place, known := slices.BinarySearchFunc(found, v, newestFirst)
		if known || place == most {
			continue
		}
		v.title = cmp.Or(optional(strings.TrimSpace(facts.DisplayName)), c.packages[at].heading()) + " "
		if number, err := bundle.VersionRelease(); err == nil {
			v.title += name(number.String())
		} else {
			v.title += name(b.name)
		}
		v.about = lines(clip(facts.Annotations["description"], 600))
		v.author = name(cmp.Or(strings.TrimSpace(facts.Provider.Name), b.pkg))
		found = append(found, nil)
		copy(found[place+1:], found[place:])
		found[place] = v
		found = found[:min(len(found), most)]
	}
	return found, nil
}

// feedPage is the Atom feed (RFC 4287) of the newest versions of a package or of the whole catalog. It depends on the
// catalog only, and not on the time of the request.
func feedPage(p *page) error {
	title, pkg := "New versions in "+p.site, p.query.Get("package")
	var all []*version
	var err error
	address := p.to("./")
	if pkg == "" {
		all, err = p.c.latest.get(p.ctx, p.c, func() ([]*version, error) {
			return p.c.newest(context.Background(), p.c.blobs, maxLatest)
		})
	} else {
		i, ok := p.c.byName[pkg]
		if !ok {
			return errNotFound
		}
		title, address = "New versions of "+p.c.packages[i].heading(), p.to("package", "name", pkg)
		all, err = p.c.newest(p.ctx, p.c.blobsOf(pkg), maxVersions)
	}
	if err != nil {
		return err
	}
	p.kind = "application/atom+xml; charset=utf-8"
	updated := time.Unix(0, 0).UTC()
	if len(all) > 0 {
		updated = all[0].created
	}
	p.emit(`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>{}</id>
<title>{}</title>
<updated>{}</updated>
<author><name>{}</name></author>
<link rel="alternate" type="text/html" href="{}"/>
<link rel="self" type="application/atom+xml" href="{}"/>
`, urn("feed", p.site, pkg), lines(title), updated.Format(time.RFC3339), lines(p.site), p.absolute(address),
		p.absolute(p.to("feed.atom", "package", pkg)))
	for _, v := range all {
		address := p.to("bundle", "package", v.pkg, "name", v.bundle)
		if !p.hasSpace() {
			break
		}
		if address == "" || len(address) > maxLink {
			continue
		}
		at := v.created.Format(time.RFC3339)
		p.emit("<entry><id>{}</id><title>{}</title><updated>{}</updated><published>{}</published>\n",
			urn("bundle", v.pkg, v.bundle), v.title, at, at)
		p.emit("<author><name>{}</name></author><link rel=\"alternate\" type=\"text/html\" href=\"{}\"/>", v.author,
			p.absolute(address))
		if v.about != "" {
			p.emit("<summary>{}</summary>", v.about)
		}
		p.emit("</entry>\n")
	}
	p.emit("</feed>\n")
	return nil
}

// urn returns the identifier of something in feeds, which stays the same wherever the catalog is served: a UUID of the
// kind that its maker defines (RFC 9562, version 8), of a digest of names.
func urn(names ...string) string {
	h := sha256.New()
	for _, n := range names {
		sum := sha256.Sum256([]byte(n))
		h.Write(sum[:])
	}
	id := h.Sum(nil)[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	s := hex.EncodeToString(id)
	return "urn:uuid:" + s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// absolute returns the absolute form of an address of this site if that is known, else the relative one.
func (p *page) absolute(address string) string {
	base, err := url.Parse(p.base)
	if p.base == "" || err != nil {
		return address
	}
	u, err := base.Parse(address)
	if err != nil {
		return address
	}
	return u.String()
}
