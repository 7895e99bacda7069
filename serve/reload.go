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

	"github.com/operator-bindery/bindery/serve/web"
)

// errChanged is a catalog that was replaced while it was read, so that parts of two may be in what was read.
var errChanged = errors.New("the catalog changed while it was loaded")

// catalogLoader loads a source, and loads it again when it changes. All of it but metrics is used by one goroutine.
type catalogLoader struct {
	src     Source
	options LoadOptions
	every   time.Duration
	log     *slog.Logger
	metrics loadMetrics
	// use makes a catalog the one that calls are answered from.
	use func(held)
	// site gets the catalog's content; nil where nothing is offered over HTTP.
	site *web.Site

	seen  fingerprint // at the last look
	tried fingerprint // of the last catalog that was loaded or could not be
	// retry is when a catalog that could not be loaded for a passing reason is tried again, and wait how long after the last
	// time that is; zero where there is none.
	retry time.Time
	wait  time.Duration
}

// held is what was loaded of a source. It is closed if it is not put to use.
type held struct {
	Store
	content *web.Content // nil where nothing is offered over HTTP
	src     Source
}

func (h held) Close() error { return errors.Join(h.drop(), h.src.Close()) }

// drop closes what was loaded, but not its source.
func (h held) drop() error {
	err := h.Store.Close()
	if h.content != nil {
		// The site has closed it already where it was handed over.
		err = errors.Join(err, h.content.Close())
	}
	return err
}

// read makes everything of a source that is served.
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

// once loads a source as it is, and closes it when that fails. The error is [errChanged] when something has changed
// between the first look and the last.
func (c *catalogLoader) once(ctx context.Context, src Source) (_ held, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, src.Close())
		}
	}()
	before, watched := src.fingerprint()
	// A change within one tick of the clock would leave the same times behind.
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
		// The source was opened before the first look: in between another directory may have taken its place.
		if after, _ := src.fingerprint(); !after.same(before) || src.moved() {
			c.metrics.torn.Add(1)
			if err == nil {
				err = h.drop()
			}
			return held{}, errors.Join(errChanged, err)
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

// open opens the source again.
func (c *catalogLoader) open(ctx context.Context) (Source, error) {
	if c.src.open == nil {
		return Source{}, errors.New("it cannot be opened again")
	}
	src, err := c.src.open(ctx)
	if err != nil {
		return src, err
	}
	// Errors about the source name it and hold at any time.
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

// first loads the catalog with which the server begins. A catalog that changes meanwhile is loaded again until it does
// not: until then there is nothing else to serve.
func (c *catalogLoader) first(ctx context.Context) (held, error) {
	h, err := c.once(ctx, c.src)
	for wait := firstRetry; errors.Is(err, errChanged) && c.src.open != nil; wait = min(2*wait, lastRetry) {
		c.log.Warn("the catalog is loaded again", "configs", c.src.name, "reason", err)
		if err := pause(ctx, wait); err != nil {
			return held{}, err
		}
		h, err = c.again(ctx)
	}
	return h, err
}

// again reopens the source and loads it. A source that cannot be opened has been tried like one that cannot be loaded.
func (c *catalogLoader) again(ctx context.Context) (held, error) {
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
	return c.once(ctx, src)
}

// reload replaces the catalog, or leaves the old one and logs why. It reports whether it should be tried again soon.
func (c *catalogLoader) reload(ctx context.Context) (soon bool) {
	start := time.Now()
	h, err := c.again(ctx)
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
		c.log.Error("the catalog cannot be loaded again now: the one before is served until it can", "configs", c.src.name, "error", err, "again in", c.wait.String())
		return false
	case err != nil:
		c.log.Error("the catalog cannot be loaded again: the one before is served until it changes", "configs", c.src.name, "error", err)
		return false
	}
	packages := len(h.Packages())
	c.use(h)
	h = held{}
	// Two catalogs were in memory, and one of them mostly is garbage now.
	debug.FreeOSMemory()
	c.log.Info("the catalog was loaded again", "configs", c.src.name, "packages", packages, "duration", time.Since(start).Round(time.Millisecond).String())
	return false
}

// changed looks at the source and reports whether it has a change that was not tried, and, as soon as two looks agree,
// whether that is to be loaded.
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

// mostRetryWait is how long a catalog that could not be loaded for a passing reason waits at most.
const mostRetryWait = 5 * time.Minute

// retryAfter remembers when to try again after an error, or after none, and waits longer each time. Nothing is tried where
// changes are not looked for either.
func (c *catalogLoader) retryAfter(err error) {
	if err == nil || !passing(err) || c.every <= 0 {
		c.wait = 0
		return
	}
	c.wait = min(max(2*c.wait, c.every), max(mostRetryWait, c.every))
	c.retry = time.Now().Add(c.wait)
}

// passing reports whether an error says that something was short, or out of reach, which says nothing of the catalog.
func passing(err error) bool {
	short := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOSPC, syscall.EDQUOT,
		syscall.EAGAIN, syscall.EINTR, syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT}
	return slices.ContainsFunc(short, func(errno error) bool { return errors.Is(err, errno) })
}

// shortly is when the next look is due after one that saw a change.
func (c *catalogLoader) shortly() time.Duration { return min(c.every, time.Second) }

// watch reloads until ctx ends: for each value of again, and, where every is not 0, when a look at the source shows that
// it has changed. The certificate is looked at with it.
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
			cert.refresh(true)
			for wait := firstRetry; c.reload(ctx); wait = min(2*wait, lastRetry) {
				if pause(ctx, wait) != nil {
					return
				}
			}
		case <-timer.C:
			cert.refresh(false)
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
