package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/serve/internal/web"
)

// openSite opens the HTTP service, if requested: catalogd's API and pages. Until there is a catalog its answers have
// status 503.
func (r *running) openSite(ctx context.Context) (err error) {
	if r.HTTPAddr == "" && r.HTTPListener == nil {
		return nil
	}
	r.site = web.New(web.Options{Title: r.HTTPTitle, Log: r.Log, Name: r.HTTPName, Gates: r.httpGates,
		Judge: r.Judge, Hosts: r.httpHosts})
	r.loader.site = r.site
	r.http, err = openEndpoint(ctx, "http-addr", r.HTTPAddr, r.HTTPListener, r.cert.config(), r.httpHosts, r.requests.count(r.site),
		r.Limits.HTTP, r.Log)
	return err
}

// closeSite waits for open answers for a bounded time and releases everything.
func (r *running) closeSite() {
	r.http.close(httpDrain)
	if r.site != nil {
		r.site.Close()
	}
}

// siteLoad builds the content of a site while a catalog is loaded. Its methods are called in the order of the file;
// abort replaces finish if loading failed.
type siteLoad struct {
	src    Source
	writer *web.Writer
	whole  bool // all blobs of a source that can be read only once have been seen
}

// newSiteLoad begins the content of a source.
func newSiteLoad(src Source, log *slog.Logger) (*siteLoad, error) {
	w, err := web.NewWriter(log)
	if err != nil {
		return nil, err
	}
	return &siteLoad{src: src, writer: w}, nil
}

// source returns the source to load: blobs that can be read only once are written to the content while they pass.
func (l *siteLoad) source() Source {
	src := l.src
	if src.blobs == nil {
		return src
	}
	blobs := src.blobs
	src.blobs = func(yield func(declcfg.Blob, error) bool) {
		for b, err := range blobs {
			if err == nil {
				err = l.writer.Add(b)
			}
			if !yield(b, err) {
				return
			}
		}
		l.whole = true
	}
	return src
}

// finish reads the files of a catalog and returns the content. If the bytes equal those of old, the content gets the
// time of old, which may be nil.
func (l *siteLoad) finish(ctx context.Context, old *web.Content) (*web.Content, error) {
	var err error
	switch {
	case l.src.blobs == nil:
		err = declcfg.Walk(ctx, l.src.fsys, declcfg.LoadOptions{},
			func(m *declcfg.Meta) error { return l.writer.Add(m) })
	case !l.whole:
		err = errors.New("the catalog was not read to its end")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s for HTTP: %w", l.src.name, err), l.abort())
	}
	c, err := l.writer.Finish(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s for HTTP: %w", l.src.name, err)
	}
	c.KeepTime(old)
	return c, nil
}

// abort releases everything.
func (l *siteLoad) abort() error { return l.writer.Abort() }
