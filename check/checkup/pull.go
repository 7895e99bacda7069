package checkup

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"sync"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/render"
)

// pull reads the images of the bundles, and applies the rules of OLM v1 to them. An image that cannot be read is a
// finding: a cluster cannot read it either.
func (c *checkup) pull(ctx context.Context) error {
	unknown := c.run.Unknown()
	if !c.Pull || len(unknown) == 0 {
		return nil
	}
	var mu sync.Mutex
	done := 0
	return guard.Each(ctx, max(c.Jobs, 2), unknown, func(ctx context.Context, _ int, b rules.Installability) error {
		if err := c.pullBundle(ctx, b); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if done++; c.Progress != nil {
			c.Progress(done, len(unknown))
		}
		return context.Cause(ctx)
	})
}

func (c *checkup) pullBundle(ctx context.Context, b rules.Installability) error {
	s := bundlecheck.Subject{Package: b.Package, Name: b.Bundle, Pulled: b.Image, Settings: c.Settings,
		APIs: c.APIs}
	var inner error
	err := c.pulled(ctx, b.Image, func(fsys fs.FS, read *bundle.Bundle) error {
		s.FS, s.Bundle = fsys, read
		if inner = bundlecheck.OLMv1(ctx, c.run, s); inner == nil && c.upgrades != nil {
			inner = c.upgrades.files(b.Package, b.Bundle, fsys)
		}
		return inner
	})
	switch {
	case inner != nil || ctx.Err() != nil:
		return inner
	case err != nil:
		return bundlecheck.Unreadable(ctx, c.run, s, err, severityOf(err))
	}
	c.run.SetKnown(b.Package, b.Bundle)
	return nil
}

// pulled opens the image of a bundle. Its labels do not matter to OLM v1.
func (c *checkup) pulled(ctx context.Context, ref string, use func(fs.FS, *bundle.Bundle) error) (err error) {
	if ref == "" {
		return errors.New("the bundle has no image")
	}
	if err := render.CheckName(ref); err != nil {
		return err
	}
	img, err := c.Render.Images.Image(ctx, ref, v1.Platform{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	return c.unpacked(ctx, img, img.Config.Config.Labels, use)
}

// severityOf tells an image that no cluster can read from one that could not be asked for: a cluster may have the
// connection or the credentials that are missing here, so that the bundle stays unknown.
func severityOf(err error) rules.Severity {
	var status *registries.StatusError
	absent := errors.As(err, &status) && status.Status == http.StatusNotFound
	if fault.ClassOf(err) == fault.Network && !absent {
		return rules.Warning
	}
	return rules.Error
}
