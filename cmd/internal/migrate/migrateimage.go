package migrate

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/render"
)

// copiedImage is an image that has been copied to its destinations.
type copiedImage struct {
	target  option.Target
	image   *build.Image
	results []images.Result
}

// privateCatalog is the name in a workspace of a catalog that only becomes an image.
const privateCatalog = "catalog"

// migrateImage migrates to an image, and to the directory out unless that is empty. When both are complete, the image
// is copied and then the directory renamed to its final name.
func migrateImage(p *option.Session, c *cli.Context, m *migration, src, out string,
	imaged bool) (_ *migrate.Report, copied *copiedImage, err error) {
	t, err := migrateTarget(p, c, m, src, out, imaged)
	if err != nil {
		return nil, nil, err
	}
	dests, dir := t.Destinations, out
	if c.Bool("dry-run") {
		dests, dir = nil, ""
	}
	work, err := p.CopyOptions(c).Workspace(c.Context, dests)
	if err != nil {
		return nil, nil, option.WithOutputHint(p, c, err)
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	if dir == "" {
		dir = filepath.Join(work.Dir(), privateCatalog)
	}
	check, err := p.CheckPush(c.Context, dests, c)
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
	prepared, err := migrate.Prepare(c.Context, src, dir, m.o)
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
		image, err = p.Assemble(&o, func() (*build.Image, error) {
			return m.spec.Migrated(c.Context, prepared,
				indeximage.Migrated{From: from, Work: work.Dir(), Jobs: c.Int("jobs"), Warn: p.WarnAt,
					Planned: o.Planned, Events: o.Events})
		})
		if err != nil {
			return nil, nil, option.WithServerHint(err)
		}
		defer func() { err = errors.Join(err, image.Close()) }()
		p.ReportAssembled(image, start)
		p.ReportBase(c, image)
		copied = &copiedImage{target: t, image: image}
		if copied.results, err = p.CopyImage(c.Context, image, dests, c, check); err != nil {
			return nil, nil, err
		}
		prepared.Report.Images = t.References(image, copied.results)
	}
	if err := prepared.Commit(); err != nil {
		return nil, nil, err
	}
	return prepared.Report, copied, prepared.Partial()
}

// migrateTarget determines the destinations of the image and refuses conflicting paths.
func migrateTarget(p *option.Session, c *cli.Context, m *migration, src, out string, imaged bool) (t option.Target, err error) {
	if imaged {
		if t, err = option.ReadTargetOf(p, c, m.outputs); err == nil {
			err = p.PrepareSigning(c, t)
		}
		if err == nil {
			err = p.PrepareSupplies(c, t, src)
		}
		if err != nil {
			return t, err
		}
		if err := option.CheckResultFiles(p, c, src, out); err != nil {
			return t, err
		}
	}
	if err := option.CheckDestinations(src, t.Destinations); err != nil {
		return t, err
	}
	for _, d := range t.Destinations {
		if !d.InFiles() || out == "" {
			continue
		}
		if err := errors.Join(option.CheckApart(out, d.Path), option.CheckApart(d.Path, out)); err != nil {
			return t, err
		}
	}
	return t, nil
}
