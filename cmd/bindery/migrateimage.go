package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/render"
)

// writtenImage is an image that is in its places.
type writtenImage struct {
	target  target
	image   *build.Image
	results []images.Result
}

// privateCatalog is where in a workspace a catalog is that only becomes an image.
const privateCatalog = "catalog"

// migrateImage migrates to an image, and to the directory out unless that is empty. The image is carried to its places
// when everything is ready, and then the directory gets its name.
func (p *program) migrateImage(c *cli.Context, m *migration, src, out string, imaged bool) (_ *migrate.Report, written *writtenImage, err error) {
	w := &writtenImage{}
	if imaged {
		if w.target, err = readTargetOf(c, m.outputs); err != nil {
			return nil, nil, err
		}
		if err := checkResultFiles(c, src, out); err != nil {
			return nil, nil, err
		}
	}
	dests := w.target.destinations
	if err := checkDestinations(src, dests); err != nil {
		return nil, nil, err
	}
	for _, d := range dests {
		if !d.InFiles() || out == "" {
			continue
		}
		if err := errors.Join(checkApart(out, d.Path), checkApart(d.Path, out)); err != nil {
			return nil, nil, err
		}
	}
	dir := out
	if c.Bool("dry-run") {
		dests, dir = nil, ""
	}
	work, err := images.NewWorkspace(c.Context, dests, "")
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
	if imaged && isImage(src) {
		if from, err = render.Describe(c.Context, m.o.Render.Images, src); err != nil {
			return nil, nil, err
		}
		if err := m.image.sameOnAll(c.Context, m, from); err != nil {
			return nil, nil, err
		}
	}
	o := m.o
	o.Then = func(ctx context.Context, dir string, r *migrate.Report) (err error) {
		r.Output = out
		if !imaged {
			return nil
		}
		if err := unmoved(from, r); err != nil {
			return err
		}
		start := time.Now()
		bo := build.Options{}
		if w.image, err = p.assemble(&bo, func() (*build.Image, error) {
			return m.image.assemble(ctx, dir, work.Dir(), from, c.Int("jobs"), bo.Events)
		}); err != nil {
			return err
		}
		p.tellBase(c, w.image)
		p.log.Info(fmt.Sprintf("assembled %s in %s, %s, in %s", count(w.image.Totals.Packages, "package"), layerCount(w.image),
			cmdline.FormatSize(w.image.Totals.Size), time.Since(start).Round(time.Millisecond)))
		if w.results, err = p.copyImage(ctx, w.image, dests, registryOptions(c), c, check); err != nil {
			return err
		}
		w.image.Pushed(w.results)
		r.Images = w.target.references(w.image, w.results)
		return nil
	}
	defer func() {
		if w.image != nil {
			err = errors.Join(err, w.image.Close())
		}
	}()
	report, err := migrate.Run(c.Context, src, dir, o)
	if w.image == nil {
		return report, nil, err
	}
	return report, w, err
}

// unmoved fails if the name of an image stood for another one when its labels were read than when its content was.
func unmoved(from *images.Description, r *migrate.Report) error {
	if from == nil {
		return nil
	}
	if _, now, named := strings.Cut(r.Image, "@sha256:"); named && "sha256:"+now != from.Top.String() {
		return fmt.Errorf("%q changed while it was read: it stood for %s and then for sha256:%s", images.WithoutCredentials(from.Name), from.Top, now)
	}
	return nil
}
