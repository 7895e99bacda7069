package serve

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/url"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/olmv1/upgrade"
	"github.com/operator-bindery/bindery/serve/internal/web"
)

// SiteOptions configure [WriteSite].
type SiteOptions struct {
	// Title is the displayed name of the catalog; empty for a general one.
	Title string
	// URL is the absolute address of the directory where the site is published, for what needs one: the sitemap, links
	// in feeds, and what pages say to programs that link to them. Nil leaves these out.
	URL *url.URL
	// Judge is that of [Options].
	Judge upgrade.Judge
	// Jobs is how many pages are built concurrently; 0 means one per CPU.
	Jobs int
	// HeadsOnly writes the pages of no other bundles than the heads of channels, and of what changes up to these.
	HeadsOnly bool
	// Planned, unless nil, is called before anything is written with estimates: of the number of pages, and their bytes.
	Planned func(pages int, bytes int64)
	// Progress, unless nil, is called after each page with the number of pages that are written, and of those that are
	// known of. Calls do not overlap.
	Progress func(done, all int)
}

// WriteSite writes the pages that are served over HTTP as files into the directory dir, which any web server can
// publish and a browser can open from disk. Links are relative. The same catalog gives the same bytes, whatever the
// order of the blobs. The directory appears completely or not at all; one that exists must be empty.
func WriteSite(ctx context.Context, blobs iter.Seq2[declcfg.Blob, error], dir string, o SiteOptions) (err error) {
	w, err := web.NewWriter(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	for b, err := range blobs {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = w.Add(b)
		}
		if err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	content, err := w.Finish(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	return web.WriteStatic(ctx, content, dir, web.StaticOptions(o))
}
