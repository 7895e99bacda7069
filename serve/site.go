package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/serve/web"
)

// openSite offers over HTTP what there will be, where that is asked for: catalogd's API, and pages. Until there is a catalog
// its answers say so.
func (r *running) openSite(ctx context.Context) (err error) {
	if r.HTTPAddr == "" && r.HTTPListener == nil {
		return nil
	}
	r.site = web.NewSite(r.loader.src.name, r.Log)
	r.loader.site = r.site
	r.http, err = openEndpoint(ctx, "http-addr", r.HTTPAddr, r.HTTPListener, r.cert.config(), r.requests.count(r.site), r.Log)
	return err
}

// closeSite lets open answers end, for a bounded time, and gives everything back.
func (r *running) closeSite() {
	r.http.close(httpDrain)
	if r.site != nil {
		r.site.Close()
	}
}

// siteLoad makes the content of a site while a catalog is loaded. Its methods are called in the order in which they stand
// here; abort takes the place of finish where the loading failed.
type siteLoad struct {
	src    Source
	writer *web.Writer
	whole  bool // the blobs of a source that is read once were all seen
}

// newSiteLoad begins the content of a source.
func newSiteLoad(src Source, log *slog.Logger) (*siteLoad, error) {
	w, err := web.NewWriter(log)
	if err != nil {
		return nil, err
	}
	return &siteLoad{src: src, writer: w}, nil
}

// source is to be loaded in place of the one that the content is of: blobs that come only once are written on their way.
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

// finish reads the files of a catalog and returns the content, whose time is that of an older content with the same
// bytes. old may be nil.
func (l *siteLoad) finish(ctx context.Context, old *web.Content) (*web.Content, error) {
	var err error
	switch {
	case l.src.blobs == nil:
		err = declcfg.Walk(ctx, l.src.fsys, declcfg.LoadOptions{}, func(m *declcfg.Meta) error { return l.writer.Add(m) })
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

// abort gives everything back.
func (l *siteLoad) abort() error { return l.writer.Abort() }
