package main

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/render"
)

// copiedImage is an image that has been copied to its destinations.
type copiedImage struct {
	target  target
	image   *build.Image
	results []images.Result
}

// privateCatalog is the name in a workspace of a catalog that only becomes an image.
const privateCatalog = "catalog"

// migrateImage migrates to an image, and to the directory out unless that is empty. When both are complete, the image
// is copied and then the directory renamed to its final name.
func (p *program) migrateImage(c *cli.Context, m *migration, src, out string,
	imaged bool) (_ *migrate.Report, copied *copiedImage, err error) {
	t, err := p.migrateTarget(c, m, src, out, imaged)
	if err != nil {
		return nil, nil, err
	}
	dests, dir := t.destinations, out
	if c.Bool("dry-run") {
		dests, dir = nil, ""
	}
	work, err := p.copyOptions(c).Workspace(c.Context, dests)
	if err != nil {
		return nil, nil, withOutputHint(c, err)
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	if dir == "" {
		dir = filepath.Join(work.Dir(), privateCatalog)
	}
	check, err := p.checkPush(c.Context, dests, c)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, check.Close(c.Context)) }()
	var from *images.Description
	if imaged && indeximage.IsImage(src) {
		if from, err = render.Describe(c.Context, m.o.Render.Images, src); err != nil {
			return nil, nil, err
		}
		if err := m.spec.CheckPlatforms(c.Context, from, m.o); err != nil {
			return nil, nil, err
		}
	}
	prepared, err := m.o.Prepare(c.Context, src, dir)
	if prepared == nil {
		return nil, nil, err
	}
	if err != nil {
		return prepared.Report, nil, err
	}
	defer func() { err = errors.Join(err, prepared.Discard()) }()
	prepared.Report.Output = out
	if imaged {
		if err := indeximage.CheckUnmoved(from, prepared.Report); err != nil {
			return nil, nil, err
		}
		start := time.Now()
		var o build.Options
		var image *build.Image
		image, err = p.assemble(&o, func() (*build.Image, error) {
			return m.spec.Migrated(c.Context, prepared,
				indeximage.Migrated{From: from, Work: work.Dir(), Jobs: c.Int("jobs"), Warn: p.warnAt,
					Planned: o.Planned, Events: o.Events})
		})
		if err != nil {
			return nil, nil, withServerHint(err)
		}
		defer func() { err = errors.Join(err, image.Close()) }()
		p.reportAssembled(image, start)
		p.reportBase(c, image)
		copied = &copiedImage{target: t, image: image}
		if copied.results, err = p.copyImage(c.Context, image, dests, c, check); err != nil {
			return nil, nil, err
		}
		prepared.Report.Images = t.references(image, copied.results)
	}
	if err := prepared.Commit(); err != nil {
		return nil, nil, err
	}
	return prepared.Report, copied, prepared.Partial()
}

// migrateTarget determines the destinations of the image and refuses conflicting paths.
func (p *program) migrateTarget(c *cli.Context, m *migration, src, out string, imaged bool) (t target, err error) {
	if imaged {
		if t, err = readTargetOf(c, m.outputs); err == nil {
			err = p.prepareSigning(c, t)
		}
		if err == nil {
			err = p.prepareSupplies(c, t, src)
		}
		if err != nil {
			return t, err
		}
		if err := checkResultFiles(c, src, out); err != nil {
			return t, err
		}
	}
	if err := checkDestinations(src, t.destinations); err != nil {
		return t, err
	}
	for _, d := range t.destinations {
		if !d.InFiles() || out == "" {
			continue
		}
		if err := errors.Join(checkApart(out, d.Path), checkApart(d.Path, out)); err != nil {
			return t, err
		}
	}
	return t, nil
}
