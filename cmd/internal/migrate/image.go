package migrate

import (
	"context"
	"errors"
	"path/filepath"
	"time"

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
func migrateImage(ctx context.Context, p *option.Session, m *migration, src, out string,
	imaged bool) (_ *migrate.Report, copied *copiedImage, err error) {
	t, err := m.target(ctx, p, src, out, imaged)
	if err != nil {
		return nil, nil, err
	}
	dests, dir := t.Destinations, out
	if m.DryRun {
		dests, dir = nil, ""
	}
	work, err := m.CopyOptions(p).Workspace(ctx, dests)
	if err != nil {
		return nil, nil, m.WithOutputHint(err)
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	if dir == "" {
		dir = filepath.Join(work.Dir(), privateCatalog)
	}
	check, err := m.CheckPush(ctx, p, dests)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, check.Close(ctx)) }()
	var from *images.Description
	if imaged && isImage(src) {
		if from, err = render.Describe(ctx, m.o.Render.Images, src); err != nil {
			return nil, nil, err
		}
		if err := m.spec.CheckPlatforms(ctx, from, m.o); err != nil {
			return nil, nil, err
		}
	}
	prepared, err := m.o.Prepare(ctx, src, dir)
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
			return m.spec.Migrated(ctx, prepared,
				indeximage.Migrated{From: from, Work: work.Dir(), Jobs: m.Jobs, Warn: p.WarnAt,
					Planned: o.Planned, Events: o.Events})
		})
		if err != nil {
			return nil, nil, option.WithServerHint(err)
		}
		defer func() { err = errors.Join(err, image.Close()) }()
		p.ReportAssembled(image, start)
		m.Base.Report(p, image)
		copied = &copiedImage{target: t, image: image}
		if copied.results, err = m.CopyImage(ctx, p, image, dests, check); err != nil {
			return nil, nil, err
		}
		prepared.Report.Images = t.References(image, copied.results)
	}
	if err := prepared.Commit(); err != nil {
		return nil, nil, err
	}
	return prepared.Report, copied, prepared.Partial()
}

// isImage reports whether a reference names an image. Errors are left to the function that reads it.
func isImage(ref string) bool {
	kind, err := render.Classify(ref)
	return err == nil && kind == render.Image
}

// target determines the destinations of the image and refuses conflicting paths.
func (m *migration) target(ctx context.Context, p *option.Session, src, out string, imaged bool) (t option.Target, err error) {
	if imaged {
		if t, err = m.TargetOf(m.outputs); err == nil {
			err = m.Signing.Prepare(ctx, p, t)
		}
		if err == nil {
			err = m.PrepareSupplies(ctx, p, t, src)
		}
		if err != nil {
			return t, err
		}
		if err := m.CheckFiles(src, out); err != nil {
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
