package migrate

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/supply/publish"
)

// copiedImage is an image that has been copied to its destinations.
type copiedImage struct {
	out    *option.Output
	result *publish.Result
}

// privateCatalog is the name in a workspace of a catalog that only becomes an image.
const privateCatalog = "catalog"

// migrateImage migrates to an image, and to the directory out unless that is empty. When both are complete, the image
// is copied and then the directory renamed to its final name.
func migrateImage(ctx context.Context, p *option.Session, m *migration, src, out string) (_ *migrate.Report, _ *copiedImage, err error) {
	to, err := m.PublishOptions(p, src)
	if err != nil {
		return nil, nil, err
	}
	to.To, to.Beside = m.outputs, out
	image, err := m.Output(ctx, p, to)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, image.Close(ctx)) }()
	if err := image.Ready(); err != nil {
		return nil, nil, err
	}
	var from *images.Description
	if isImage(src) {
		if from, err = render.Describe(ctx, m.o.Render.Images, src); err != nil {
			return nil, nil, err
		}
		if err := m.spec.CheckPlatforms(ctx, from, m.o); err != nil {
			return nil, nil, err
		}
	}
	dir := out
	if dir == "" || m.DryRun {
		dir = filepath.Join(image.Dir(), privateCatalog)
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
	if err := indeximage.CheckUnmoved(from, prepared.Report); err != nil {
		return nil, nil, err
	}
	copied := &copiedImage{out: image}
	start, spec := time.Now(), *m.spec
	within := image.Prepare(&spec.Build)
	built, err := spec.Migrated(within, prepared, indeximage.Migrated{From: from, Work: spec.Build.Dir, Jobs: m.Jobs, Warn: p.WarnAt})
	if err == nil {
		p.ReportAssembled(built, start)
		m.Base.Report(p, built)
	}
	if copied.result, err = image.Write(built, option.WithServerHint(err)); err != nil {
		return nil, nil, err
	}
	prepared.Report.Images = copied.result.References
	if err := prepared.Commit(); err != nil {
		return nil, nil, err
	}
	return prepared.Report, copied, prepared.Partial()
}

// dryRun migrates to a directory that is removed.
func dryRun(ctx context.Context, m *migration, src, out string) (_ *migrate.Report, err error) {
	work, err := images.NewWorkspace(ctx, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	report, err := m.o.Run(ctx, src, filepath.Join(work.Dir(), privateCatalog))
	if report != nil {
		report.Output = out
	}
	return report, err
}

// isImage reports whether a reference names an image. Errors are left to the function that reads it.
func isImage(ref string) bool {
	kind, err := render.Classify(ref)
	return err == nil && kind == render.Image
}
