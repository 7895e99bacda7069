package web

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"
)

// jsonLines is catalogd's media type.
const jsonLines = "application/jsonl"

// serveAll answers with every blob of the catalog.
func (s *Site) serveAll(c *Content, w http.ResponseWriter, r *http.Request) {
	s.serveLines(c, w, r, io.NewSectionReader(c.file, 0, c.size), c.size, true)
}

// serveMetas answers with the blobs that match all given values of schema, package and name; without any of them, with
// all blobs. As in catalogd, package=X does not match the olm.package blob of X, which has no field "package", the
// first of several values counts, and a parameter that cannot be read is absent. [Site.knownParameters] has looked at
// the parameters' names.
func (s *Site) serveMetas(c *Content, w http.ResponseWriter, r *http.Request) {
	params := r.URL.Query()
	q := query{params.Get("schema"), params.Get("package"), params.Get("name")}
	if q == (query{}) {
		s.serveAll(c, w, r)
		return
	}
	lines := newExtents(c, c.find(q))
	s.serveLines(c, w, r, lines, lines.size, false)
}

// smallest is the size of the smallest answer that is compressed, as in catalogd.
const smallest = 1024

// serveLines answers with lines that depend only on the catalog and the URL. Ranges refer to the uncompressed lines, so
// a request with a range gets these; so do small answers and requests beyond the number of concurrent compressions. The
// compressed form of all lines is stored.
func (s *Site) serveLines(c *Content, w http.ResponseWriter, r *http.Request, lines io.ReadSeeker, size int64,
	all bool) {
	h := w.Header()
	h.Set("Content-Type", jsonLines)
	h.Set("Cache-Control", "no-cache")
	tag := c.etag()
	zip := size >= smallest && acceptsGzip(r.Header) && r.Header.Get("Range") == ""
	h.Set("ETag", tag)
	h.Set("Last-Modified", c.modified.UTC().Format(http.TimeFormat))
	if zip {
		h.Set("ETag", strings.TrimSuffix(tag, `"`)+`-gzip"`)
	}
	switch c.precondition(r.Header, h.Get("ETag")) {
	case http.StatusNotModified:
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	case http.StatusPreconditionFailed:
		if !all {
			h.Del("Content-Type") // as in catalogd
		}
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	}
	if !zip {
		if size == 0 { // net/http would name a range of an empty text that no client understands
			r.Header.Del("Range")
		}
		http.ServeContent(w, r, "", c.modified, lines)
		return
	}
	if r.Method == http.MethodHead {
		h.Set("Content-Encoding", "gzip")
		return
	}
	if all {
		if k := c.compressed(); k != nil {
			h.Set("Content-Encoding", "gzip")
			if err := k.serve(w, r); err != nil {
				panic(http.ErrAbortHandler) // see below
			}
			return
		}
	}
	z := s.zips.try(w)
	if z == nil {
		h.Set("ETag", tag)
		http.ServeContent(w, r, "", c.modified, lines)
		return
	}
	defer s.zips.done(z)
	h.Set("Content-Encoding", "gzip")
	if _, err := io.Copy(z, lines); err != nil || z.Close() != nil {
		// The status has been sent: only a broken connection shows that the answer is incomplete.
		panic(http.ErrAbortHandler)
	}
}

// precondition evaluates the conditions of RFC 9110 section 13 in order; 0 means that the request continues.
func (c *Content) precondition(h http.Header, tag string) int {
	modified := c.modified.Truncate(time.Second)
	if match := h.Get("If-Match"); match != "" {
		if !hasTag(match, tag, false) {
			return http.StatusPreconditionFailed
		}
	} else if t, err := http.ParseTime(h.Get("If-Unmodified-Since")); err == nil && modified.After(t) {
		return http.StatusPreconditionFailed
	}
	if match := h.Get("If-None-Match"); match != "" {
		if hasTag(match, tag, true) {
			return http.StatusNotModified
		}
	} else if t, err := http.ParseTime(h.Get("If-Modified-Since")); err == nil && !modified.After(t) {
		return http.StatusNotModified
	}
	return 0
}

// hasTag reports whether a list of entity tags contains one; weakly ignores a W/ prefix.
func hasTag(list, tag string, weakly bool) bool {
	for one := range strings.SplitSeq(list, ",") {
		one = textproto.TrimString(one)
		if weakly {
			one = strings.TrimPrefix(one, "W/")
		}
		if one == tag || one == "*" {
			return true
		}
	}
	return false
}

// acceptsGzip parses Accept-Encoding (RFC 9110 section 12.5.3).
func acceptsGzip(h http.Header) bool {
	best := false
	for one := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		coding, params, _ := strings.Cut(one, ";")
		coding = strings.ToLower(textproto.TrimString(coding))
		if coding != "gzip" && coding != "x-gzip" && coding != "*" {
			continue
		}
		weight := 1.0
		if q, ok := strings.CutPrefix(strings.ToLower(textproto.TrimString(params)), "q="); ok {
			weight, _ = strconv.ParseFloat(textproto.TrimString(q), 64)
		}
		if coding != "*" {
			return weight > 0
		}
		best = weight > 0
	}
	return best
}

// serveIcon answers with the icon of a package. Its headers prevent browsers from running anything in it. It shares the
// concurrency and memory limits of pages.
func (s *Site) serveIcon(c *Content, w http.ResponseWriter, r *http.Request) {
	b := c.packageBlob(r.URL.Query().Get("package"))
	if b == nil {
		notFound(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), pageTime)
	defer cancel()
	if !s.turn(ctx) {
		answerBusy(w)
		return
	}
	icon, err := s.readIcon(c, b, acceptsGzip(r.Header) && r.Header.Get("Range") == "")
	switch {
	case err != nil:
		s.log.Error("an icon cannot be read", "error", err)
		fail(w, http.StatusInternalServerError, "the package cannot be read")
		return
	case icon.kind == "":
		notFound(w, r)
		return
	}
	sent, ok := s.reserve(w, len(icon.data))
	defer sent()
	if !ok {
		answerBusy(w)
		return
	}
	h := w.Header()
	h.Set("Content-Type", icon.kind)
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == c.version() {
		h.Set("Cache-Control", "public, max-age=86400, immutable")
	}
	h.Set("ETag", c.etag())
	if icon.zipped {
		h.Set("ETag", strings.TrimSuffix(c.etag(), `"`)+`-gzip"`)
		h.Set("Content-Encoding", "gzip")
	}
	http.ServeContent(w, r, "", c.modified, bytes.NewReader(icon.data))
}

// readIcon reads the icon of a package, compressed if that is requested and makes it smaller, and ends the turn.
func (s *Site) readIcon(c *Content, b *blob, zip bool) (picture, error) {
	defer s.next()
	pkg, err := c.pkg(b)
	if err != nil {
		return picture{}, err
	}
	p := pictureOf(pkg.Icon)
	if zip && p.kind == svgType && len(p.data) >= smallest { // the other kinds are compressed
		p.data, p.zipped = s.zips.compress(p.data), true
	}
	return p, nil
}
