package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
)

// jsonLines is catalogd's media type.
const jsonLines = "application/jsonl"

// named answers for a catalog with any valid name, as catalogd does for its catalogs; an invalid name is an error with
// catalogd's text.
func named(answer func(*Content, http.ResponseWriter, *http.Request)) func(*Content, http.ResponseWriter,
	*http.Request) {
	return func(c *Content, w http.ResponseWriter, r *http.Request) {
		if wrong := wrongName(r.PathValue("catalog")); wrong != "" {
			h := w.Header()
			h.Set("Cache-Control", "no-store")
			h.Set("Vary", "Accept-Encoding")
			http.Error(w, "invalid catalog name: "+wrong, http.StatusBadRequest)
			return
		}
		answer(c, w, r)
	}
}

// subdomain matches valid names of Kubernetes objects (RFC 1123).
var subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// wrongName returns Kubernetes' message about an invalid object name; it is empty for a valid one.
func wrongName(name string) string {
	switch {
	case len(name) > 253:
		return "must be no more than 253 characters"
	case !subdomain.MatchString(name):
		return "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and " +
			"must start and end with an " +
			"alphanumeric character (e.g. 'example.com', regex used for validation is " +
			"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
	}
	return ""
}

// serveAll answers with every blob of the catalog.
func (s *Site) serveAll(c *Content, w http.ResponseWriter, r *http.Request) {
	s.serveLines(c, w, r, io.NewSectionReader(c.file, 0, c.size), true)
}

// serveMetas answers with the blobs that match all given values of schema, package and name; without any of them, with
// all blobs. As in catalogd, package=X does not match the olm.package blob of X, which has no field "package"; a
// parameter with another name is an error, and the first of several values counts.
func (s *Site) serveMetas(c *Content, w http.ResponseWriter, r *http.Request) {
	params, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		fail(w, http.StatusBadRequest, "the query cannot be read")
		return
	}
	for key := range params {
		if !slices.Contains([]string{"schema", "package", "name"}, key) {
			fail(w, http.StatusBadRequest, "the parameters are schema, package and name")
			return
		}
	}
	q := query{params.Get("schema"), params.Get("package"), params.Get("name")}
	if q == (query{}) {
		s.serveAll(c, w, r)
		return
	}
	s.serveLines(c, w, r, newExtents(c, q), false)
}

// serveLines answers with lines that depend only on the catalog and the URL. Ranges refer to the uncompressed lines, so
// a request with a range gets these; so do requests beyond the number of concurrent compressions. The compressed form
// of all lines is stored.
func (s *Site) serveLines(c *Content, w http.ResponseWriter, r *http.Request, lines io.ReadSeeker, all bool) {
	h := w.Header()
	h.Set("Content-Type", jsonLines)
	h.Set("Cache-Control", "no-cache")
	h.Add("Vary", "Accept-Encoding")
	tag := c.etag()
	zip := acceptsGzip(r.Header) && r.Header.Get("Range") == ""
	if !zip {
		h.Set("ETag", tag)
		http.ServeContent(w, r, "", c.modified, lines)
		return
	}
	h.Set("ETag", strings.TrimSuffix(tag, `"`)+`-gzip"`)
	h.Set("Last-Modified", c.modified.UTC().Format(http.TimeFormat))
	switch c.precondition(r.Header, h.Get("ETag")) {
	case http.StatusNotModified:
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	case http.StatusPreconditionFailed:
		w.WriteHeader(http.StatusPreconditionFailed)
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

// extents reads the lines of some blobs like a file.
type extents struct {
	c     *Content
	parts []extent
	size  int64
	at    int64
}

// extent is a part of the file with its offset in the result.
type extent struct{ offset, length, begins int64 }

func newExtents(c *Content, q query) *extents {
	e := &extents{c: c}
	for b := range c.find(q) {
		length := b.length + 1
		if n := len(e.parts); n > 0 && e.parts[n-1].offset+e.parts[n-1].length == b.offset {
			e.parts[n-1].length += length
		} else {
			e.parts = append(e.parts, extent{b.offset, length, e.size})
		}
		e.size += length
	}
	return e
}

func (e *extents) Read(b []byte) (int, error) {
	if e.at >= e.size {
		return 0, io.EOF
	}
	i, ok := slices.BinarySearchFunc(e.parts, e.at,
		func(x extent, at int64) int { return int(min(max(x.begins-at, -1), 1)) })
	if !ok {
		i--
	}
	p := e.parts[i]
	skip := e.at - p.begins
	b = b[:min(int64(len(b)), p.length-skip)]
	n, err := e.c.file.ReadAt(b, p.offset+skip)
	e.at += int64(n)
	if n == len(b) {
		err = nil
	}
	return n, err
}

func (e *extents) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += e.at
	case io.SeekEnd:
		offset += e.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning")
	}
	e.at = offset
	return offset, nil
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
		busy(w)
		return
	}
	icon, err := s.readIcon(c, b)
	kind := iconType(icon)
	switch {
	case err != nil:
		s.log.Error("an icon cannot be read", "error", err)
		fail(w, http.StatusInternalServerError, "the package cannot be read")
		return
	case kind == "":
		notFound(w, r)
		return
	}
	sent, ok := s.reserve(w, len(icon.Data))
	defer sent()
	if !ok {
		busy(w)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", c.etag())
	http.ServeContent(w, r, "", c.modified, bytes.NewReader(icon.Data))
}

// readIcon reads the icon of a package, which may be nil, and ends the turn.
func (s *Site) readIcon(c *Content, b *blob) (*declcfg.Icon, error) {
	defer s.next()
	pkg, err := c.pkg(b)
	if err != nil {
		return nil, err
	}
	return pkg.Icon, nil
}
