package template

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/guard"
)

// RenderOptions configure [Template.Render].
type RenderOptions struct {
	// Render renders the bundle in an image: it returns a catalog with one bundle, with the manifests as
	// olm.bundle.object properties. It is called once for every image in the template, in any order and concurrently.
	// Its error names the image.
	Render func(ctx context.Context, image string) (*declcfg.Catalog, error)
	// Jobs is how many images are rendered concurrently; 0 means eight.
	Jobs int
	// Level is the migration level of bundles.
	Level edit.Level
	// Compat does not migrate the bundles in the template itself, as opm does.
	Compat bool
	// Warn, unless nil, is called for what is left out.
	Warn func(declcfg.Position, string)
}

const defaultJobs = 8

// maxFailures is the number of failed images after which no more are tried: an unavailable registry is then not asked
// for every image.
const maxFailures = 20

// run is one rendering of a template.
type run struct {
	report
	options  RenderOptions
	rendered map[string]rendered // by image
}

// rendered is the bundle of an image: as rendered, and at the requested level.
type rendered struct {
	original, bundle declcfg.Bundle
}

// Render builds the catalog of the template. Its blobs have no positions; [declcfg.Catalog.Blobs] determines their
// order. The error is an *[Error] with every problem, or ctx's.
func (t *Template) Render(ctx context.Context, o RenderOptions) (*declcfg.Catalog, error) {
	r := &run{report: report{source: t.source, prefix: "rendering template: "}, options: o}
	if err := r.renderImages(ctx, t.body.images()); err != nil {
		return nil, err
	}
	c := t.body.assemble(r)
	if err := r.err(); err != nil {
		return nil, err
	}
	if !o.Compat {
		for i := range c.Bundles {
			if err := o.Level.Apply(&c.Bundles[i]); err != nil {
				return nil, err
			}
		}
	}
	forgetPositions(c)
	return c, nil
}

// renderImages renders every image once.
func (r *run) renderImages(ctx context.Context, refs []imageRef) error {
	var unique []imageRef
	seen := map[string]bool{}
	for _, ref := range refs {
		if !seen[ref.image] {
			seen[ref.image] = true
			unique = append(unique, ref)
		}
	}
	if len(unique) > 0 && r.options.Render == nil {
		return errors.New("images are not rendered here")
	}
	results := make([]rendered, len(unique))
	jobs := cmp.Or(max(r.options.Jobs, 0), defaultJobs)
	var tried atomic.Int64
	errs := guard.TryEach(ctx, jobs, maxFailures, unique, func(ctx context.Context, i int, ref imageRef) (err error) {
		tried.Add(1)
		results[i], err = r.renderImage(ctx, ref.image)
		return err
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.rendered = make(map[string]rendered, len(unique))
	for i, ref := range unique {
		r.rendered[ref.image] = results[i]
		if err := errs[i]; err != nil {
			r.addProblem(reported{Problem{Text: err.Error(), Err: err}, ref.path, ref.opm + err.Error()})
		}
	}
	if tried := int(tried.Load()); tried < len(unique) {
		r.add(unique[tried].path, "", "%d more images were not tried", len(unique)-tried)
	}
	return r.err()
}

func (r *run) renderImage(ctx context.Context, image string) (rendered, error) {
	c, err := r.options.Render(ctx, image)
	if err != nil {
		return rendered{}, err
	}
	if c == nil || len(c.Bundles) != 1 {
		n := 0
		if c != nil {
			n = len(c.Bundles)
		}
		return rendered{}, fmt.Errorf("rendering %q resulted in %d bundles, expected 1", image, n)
	}
	if len(c.Packages)+len(c.Channels)+len(c.Deprecations)+len(c.Others) > 0 {
		return rendered{}, fmt.Errorf("rendering %q resulted in a catalog, expected a bundle", image)
	}
	out := rendered{original: c.Bundles[0], bundle: c.Bundles[0]}
	if err := r.options.Level.Apply(&out.bundle); err != nil {
		return rendered{}, err
	}
	return out, nil
}

// copyOf returns a catalog whose blobs can be replaced, and channels' entries changed, without changing c.
func copyOf(c *declcfg.Catalog) *declcfg.Catalog {
	out := &declcfg.Catalog{}
	out.Append(c)
	for i := range out.Channels {
		out.Channels[i].Entries = slices.Clone(out.Channels[i].Entries)
	}
	return out
}

// forgetPositions removes positions, which are internal to the template.
func forgetPositions(c *declcfg.Catalog) {
	for i := range c.Packages {
		c.Packages[i].Pos = declcfg.Position{}
	}
	for i := range c.Channels {
		c.Channels[i].Pos = declcfg.Position{}
	}
	for i := range c.Bundles {
		c.Bundles[i].Pos = declcfg.Position{}
	}
	for i := range c.Deprecations {
		c.Deprecations[i].Pos = declcfg.Position{}
	}
	for i := range c.Others {
		c.Others[i].Pos = declcfg.Position{}
	}
}
