package web

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/operator-bindery/bindery/olmv1/upgrade"
)

// Limits of the resources that clients can use.
const (
	// stall is how long a client may take to read a part of an answer: some ten kilobytes.
	stall = 30 * time.Second
	// longest is how long an answer may take.
	longest = time.Hour
	// pageTime is how long a page may take, and wait for its turn.
	pageTime = 2 * time.Minute
	// pageMemory is the maximum size of all pages and icons being sent, in bytes.
	pageMemory = 32 << 20
)

// Site answers HTTP requests from the current content. Without one, its answers have status 503. It is safe for
// concurrent use.
type Site struct {
	title   string
	name    string
	gates   Gates
	judge   upgrade.Judge
	hosts   Hosts
	log     *slog.Logger
	current atomic.Pointer[Content]
	mux     *http.ServeMux
	making  chan struct{} // a slot for each page or icon being built
	sending atomic.Int64  // bytes of pages, icons and small answers to queries
	answers atomic.Int64  // bytes of large answers to queries
	zips    *compressors
}

// Options configure a [Site].
type Options struct {
	// Title is the displayed name of the catalog. Empty means [DefaultTitle].
	Title string
	// Log receives a record for each panic and each read failure. Nil drops them.
	Log *slog.Logger
	// Name is the only catalog name that is answered below /catalogs/, others get 404 as from catalogd. Empty means any
	// name.
	Name string
	// Gates hide routes below /catalogs/.
	Gates Gates
	// Hosts are names of the server, which its sitemap may have.
	Hosts Hosts
	// Judge says what OLM v1 refuses of the changes of definitions. Nil leaves that open.
	Judge upgrade.Judge
}

// DefaultTitle is the displayed name of a catalog without another one.
const DefaultTitle = "Operator catalog"

// NewSite returns a site with a displayed name of the catalog and a log, which may be nil: [New] with these options.
func NewSite(title string, log *slog.Logger) *Site { return New(Options{Title: title, Log: log}) }

// New returns a site without a catalog.
func New(o Options) *Site {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Site{title: cmp.Or(strings.TrimSpace(o.Title), DefaultTitle), name: o.Name, gates: o.Gates, judge: o.Judge, hosts: o.Hosts,
		log:    o.Log,
		mux:    http.NewServeMux(),
		making: make(chan struct{}, runtime.GOMAXPROCS(0)), zips: newCompressors(maxZips)}
	s.routes()
	return s
}

// SetContent gives the site a catalog, which it closes after use. Answers in progress continue with their catalog.
func (s *Site) SetContent(c *Content) {
	if old := s.current.Swap(c); old != nil {
		old.Close()
	}
}

// Content returns the current content; nil before there is any. It is for [Content.KeepTime].
func (s *Site) Content() *Content { return s.current.Load() }

// Close removes the catalog.
func (s *Site) Close() { s.SetContent(nil) }

// content returns the catalog, acquired for one answer; nil if there is none.
func (s *Site) content() *Content {
	for {
		c := s.current.Load()
		if c == nil || c.acquire() {
			return c
		}
		if s.current.Load() == c {
			return nil
		}
	}
}

// pages are the functions that build pages, by their names in addresses.
func pages() map[string]func(*page) error {
	return map[string]func(*page) error{
		"./":          packagesPage,
		"package":     packagePage,
		"channel":     channelPage,
		"bundle":      bundlePage,
		"changes":     changesPage,
		"definition":  definitionPage,
		"file":        filePage,
		"images":      imagesPage,
		"feed.atom":   feedPage,
		"sitemap.txt": sitemapPage,
	}
}

func (s *Site) routes() {
	s.routesOfCatalogd()
	for name, build := range pages() {
		s.mux.HandleFunc("/"+strings.Replace(name, "./", "{$}", 1), reading(s.withContent(s.page(build))))
	}
	s.mux.HandleFunc("/icon", reading(s.withContent(s.serveIcon)))
	for path, a := range assets() {
		s.mux.HandleFunc("/"+path, reading(a.serve))
	}
	s.mux.HandleFunc("/", noRoute)
	missing := s.withContent(s.page(func(*page) error { return errNotFound }))
	s.mux.HandleFunc("/{path}", func(w http.ResponseWriter, r *http.Request) {
		if get := r.Method == http.MethodGet || r.Method == http.MethodHead; get &&
			strings.Contains(r.Header.Get("Accept"), "text/html") { // a person's browser
			missing(w, r)
			return
		}
		noRoute(w, r)
	})
}

// turn waits for a slot to build something in memory; it returns false if that takes too long. next frees the slot.
func (s *Site) turn(ctx context.Context) bool {
	select {
	case s.making <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Site) next() { <-s.making }

// reserve counts bytes to be sent from memory until done is called; ok is false if there is not enough memory. Clients
// have less time for these than for content read from the file.
func (s *Site) reserve(w http.ResponseWriter, size int) (done func(), ok bool) {
	if patient, ok := w.(*patient); ok {
		patient.end = time.Now().Add(pageTime)
	}
	return func() { s.sending.Add(int64(-size)) }, s.sending.Add(int64(size)) <= pageMemory
}

// withContent acquires the catalog for the duration of an answer.
func (s *Site) withContent(answer answerer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := s.content()
		if c == nil {
			w.Header().Set("Retry-After", "5")
			fail(w, http.StatusServiceUnavailable, "the catalog is being loaded")
			return
		}
		defer c.release()
		answer(c, w, r)
	}
}

// reading refuses other methods than GET and HEAD.
func reading(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			fail(w, http.StatusMethodNotAllowed, "only GET and HEAD are answered")
			return
		}
		answer(w, r)
	}
}

// ServeHTTP implements [http.Handler].
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action "+
			"'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Vary", "Accept-Encoding")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			panic(p)
		default:
			s.log.Error("panic in an answer over HTTP", "panic", p, "stack", string(debug.Stack()))
			panic(http.ErrAbortHandler)
		}
	}()
	s.mux.ServeHTTP(newPatient(w), r)
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	fail(w, http.StatusNotFound, "there is no such page")
}

// fail answers with an error in plain text. message must not contain anything from the request.
func fail(w http.ResponseWriter, code int, message string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	for _, name := range []string{"ETag", "Last-Modified", "Content-Encoding", "Content-Length"} {
		h.Del(name)
	}
	w.WriteHeader(code)
	_, _ = w.Write([]byte(http.StatusText(code) + ": " + message + "\n"))
}

// patient sets a deadline for every part of an answer and one for the whole. So a slow client gets everything, and one
// that has stopped reading is disconnected.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
	end     time.Time
}

func newPatient(w http.ResponseWriter) *patient {
	return &patient{ResponseWriter: w, control: http.NewResponseController(w), end: time.Now().Add(longest)}
}

// pieceSize is how much is written at once.
const pieceSize = 32 << 10

func (p *patient) Write(b []byte) (int, error) {
	done := 0
	for {
		piece := b[done:min(len(b), done+pieceSize)]
		deadline := time.Now().Add(stall)
		if deadline.After(p.end) {
			deadline = p.end
		}
		// Only writers in tests have no deadlines.
		_ = p.control.SetWriteDeadline(deadline)
		n, err := p.ResponseWriter.Write(piece)
		done += n
		if err != nil || done == len(b) {
			return done, err
		}
	}
}

func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
