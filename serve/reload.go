package serve

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/serve/internal/web"
)

// errChanged is returned for a catalog that was replaced while it was read, so that the result may contain parts of
// two.
var errChanged = errors.New("the catalog changed while it was loaded")

// errEmptied is returned for a catalog without packages in the place of one that had some: a volume that is gone or a copy
// that has begun, and hardly what should be served.
var errEmptied = errors.New("it has no packages any more: start the server again to serve it")

// catalogLoader loads a source, and reloads it after changes. All of it except metrics is used by one goroutine.
type catalogLoader struct {
	src     Source
	options LoadOptions
	every   time.Duration
	log     *slog.Logger
	metrics loadMetrics
	// use makes a catalog the current one.
	use func(held)
	// site serves the catalog over HTTP; nil if there is none.
	site *web.Site

	full  bool        // the last catalog that was loaded has packages
	seen  fingerprint // at the last look
	tried fingerprint // of the last catalog that was loaded or failed
	// retry is the time of the next attempt after a temporary failure, and wait the interval before it; zero if there
	// is none.
	retry time.Time
	wait  time.Duration
}

// held is a loaded source. It is closed if it is not used.
type held struct {
	Store
	content *web.Content // nil if nothing is offered over HTTP
	src     Source
}

func (h held) Close() error { return errors.Join(h.closeLoaded(), h.src.Close()) }

// closeLoaded closes what was loaded, but not its source.
func (h held) closeLoaded() error {
	err := h.Store.Close()
	if h.content != nil {
		// If the content was handed over, the site has closed it already.
		err = errors.Join(err, h.content.Close())
	}
	return err
}

// read builds everything that is served from a source.
func (c *catalogLoader) read(ctx context.Context, src Source) (held, error) {
	if c.site == nil {
		store, err := Load(ctx, src, c.options)
		return held{Store: store, src: src}, err
	}
	l, err := newSiteLoad(src, c.log)
	if err != nil {
		return held{}, err
	}
	store, err := Load(ctx, l.source(), c.options)
	if err != nil {
		return held{}, errors.Join(err, l.abort())
	}
	content, err := l.finish(ctx, c.site.Content())
	if err != nil {
		return held{}, errors.Join(err, store.Close())
	}
	return held{store, content, src}, nil
}

// loadOnce loads a source and closes it on failure. The error is [errChanged] if the source changed between the first
// look and the last.
func (c *catalogLoader) loadOnce(ctx context.Context, src Source) (_ held, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, src.Close())
		}
	}()
	defer guard.Recover(&err)
	before, watched := src.fingerprint()
	// A second change within one clock tick would leave the same times.
	for range 10 {
		wait := before.unsettled()
		if !watched || wait <= 0 {
			break
		}
		if err := pause(ctx, wait); err != nil {
			return held{}, err
		}
		before, _ = src.fingerprint()
	}
	start := time.Now()
	h, err := c.read(ctx, src)
	if watched && ctx.Err() == nil {
		// The source was opened before the first look: another directory may have replaced it in between.
		if after, _ := src.fingerprint(); !after.same(before) || src.hasMoved() {
			c.metrics.torn.Add(1)
			if err == nil {
				err = h.closeLoaded()
			}
			return held{}, errors.Join(errChanged, err)
		}
	}
	if err == nil {
		if full := len(h.Packages()) > 0; c.full && !full {
			err = errors.Join(errEmptied, h.closeLoaded())
			h = held{}
		} else {
			c.full = full
		}
	}
	if ctx.Err() == nil {
		c.metrics.done(start, err)
	}
	c.tried, c.seen = before, before
	return h, err
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *catalogLoader) open(ctx context.Context) (Source, error) {
	if c.src.open == nil {
		return Source{}, errors.New("it cannot be opened again")
	}
	src, err := c.src.open(ctx)
	if err != nil {
		return src, err
	}
	// Such errors already name the source and do not depend on the time.
	if src.open == nil {
		src.open = c.src.open
	}
	src.path = cmp.Or(src.path, c.src.path)
	return src.without(c.options.CacheDir), nil
}

// Waiting for a source that changes while it is read.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// loadFirst loads the initial catalog. If it changes meanwhile it is loaded again until it does not: there is nothing
// else to serve.
func (c *catalogLoader) loadFirst(ctx context.Context) (held, error) {
	h, err := c.loadOnce(ctx, c.src)
	for wait := firstRetry; errors.Is(err, errChanged) && c.src.open != nil; wait = min(2*wait, lastRetry) {
		c.log.Warn("the catalog is loaded again", "configs", c.src.name, "reason", err)
		if err := pause(ctx, wait); err != nil {
			return held{}, err
		}
		h, err = c.loadAgain(ctx)
	}
	return h, err
}

// loadAgain reopens the source and loads it. A failure to open counts as a failed load.
func (c *catalogLoader) loadAgain(ctx context.Context) (held, error) {
	start := time.Now()
	before, _ := c.src.fingerprint()
	src, err := c.open(ctx)
	if err != nil {
		if after, _ := c.src.fingerprint(); !after.same(before) {
			c.metrics.torn.Add(1)
			return held{}, errors.Join(errChanged, err)
		}
		c.metrics.done(start, err)
		c.tried, c.seen = before, before
		return held{}, err
	}
	return c.loadOnce(ctx, src)
}

// reload replaces the catalog, or keeps the old one and logs the reason. It reports whether to try again soon.
func (c *catalogLoader) reload(ctx context.Context) (soon bool) {
	start := time.Now()
	h, err := c.loadAgain(ctx)
	c.retryAfter(err)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			h.Close()
		}
		return false
	case errors.Is(err, errChanged):
		c.log.Info("the catalog is loaded again when it has come to rest", "configs", c.src.name, "reason", err)
		return true
	case err != nil && c.wait > 0:
		c.log.Error("the catalog cannot be loaded again now: the one before is served until it can", "configs",
			c.src.name, "error", err, "again in", c.wait.String())
		return false
	case err != nil:
		c.log.Error("the catalog cannot be loaded again: the one before is served until it changes", "configs",
			c.src.name, "error", err)
		return false
	}
	packages := len(h.Packages())
	c.use(h)
	h = held{}
	// Two catalogs were in memory, and one of them is mostly garbage now.
	debug.FreeOSMemory()
	c.log.Info("the catalog was loaded again", "configs", c.src.name, "packages", packages, "duration",
		time.Since(start).Round(time.Millisecond).String())
	return false
}

// changed looks at the source. soon reports a change that was not tried yet; load reports, once two looks agree, that
// it should be loaded.
func (c *catalogLoader) changed() (load, soon bool) {
	if c.wait > 0 && !time.Now().Before(c.retry) {
		return true, false
	}
	now, watched := c.src.fingerprint()
	if !watched || now.same(c.tried) {
		c.seen = now
		return false, false
	}
	if !now.same(c.seen) {
		c.seen = now
		return false, true
	}
	return true, false
}

// mostRetryWait is the maximum interval between attempts after temporary failures.
const mostRetryWait = 5 * time.Minute

// retryAfter sets the time of the next attempt after an error, with growing intervals, or clears it. Without looking
// for changes there are no attempts either.
func (c *catalogLoader) retryAfter(err error) {
	if err == nil || !isTemporary(err) || c.every <= 0 {
		c.wait = 0
		return
	}
	c.wait = min(max(2*c.wait, c.every), max(mostRetryWait, c.every))
	c.retry = time.Now().Add(c.wait)
}

// isTemporary reports whether an error is temporary, about resources or connections and not about the catalog.
func isTemporary(err error) bool {
	short := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOSPC, syscall.EDQUOT,
		syscall.EAGAIN, syscall.EINTR, syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT}
	return slices.ContainsFunc(short, func(errno error) bool { return errors.Is(err, errno) })
}

// shortly returns the interval to the next look after a change was seen.
func (c *catalogLoader) shortly() time.Duration { return min(c.every, time.Second) }

// watch reloads until ctx ends: for each value of again and, if every is not 0, when a look at the source shows a
// change. The certificate is checked at the same time.
func (c *catalogLoader) watch(ctx context.Context, again <-chan os.Signal, cert *certificate) {
	timer := time.NewTimer(c.every)
	defer timer.Stop()
	if c.every <= 0 {
		timer.Stop()
	}
	for {
		soon := false
		select {
		case <-ctx.Done():
			return
		case <-again:
			c.log.Info("asked to load the catalog again", "configs", c.src.name)
			cert.refresh(ctx, true)
			for wait := firstRetry; c.reload(ctx); wait = min(2*wait, lastRetry) {
				if pause(ctx, wait) != nil {
					return
				}
			}
		case <-timer.C:
			cert.refresh(ctx, false)
			var load bool
			if load, soon = c.changed(); load {
				soon = c.reload(ctx)
			}
		}
		if c.every > 0 {
			timer.Reset(c.every)
			if soon {
				timer.Reset(c.shortly())
			}
		}
	}
}
