package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/internal/outage"
	"github.com/operator-bindery/bindery/mirror/releases/graphimage"
)

// publishGraph puts the image with the data of update graphs at the target: built here, or as the archive has it. That
// it is not there is no error, unless all that comes after it would have the same one.
func (r *publisher) publishGraph(ctx context.Context, g *graph) error {
	if g == nil || r.o.Shard.Count > 0 {
		return nil
	}
	err := r.bringGraph(ctx, g)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case outage.Fatal(err):
		return err
	case err != nil:
		g.failed, g.account.Error = err, err.Error()
		r.report.addProblem(Problem{Level: filter.Failure, Object: g.dest.Name(), Message: "the graph image is not " +
			r.o.Mode.published() + ": " + err.Error()})
		r.report.log.warn(g.dest.Name() + ": the graph image is not " + r.o.Mode.published())
	}
	r.report.progress.add(func(e *Event) { e.Images++; e.Image, e.Err = g.dest.Name(), err })
	return nil
}

func (r *publisher) bringGraph(ctx context.Context, g *graph) error {
	if r.places.input != nil {
		at := onMedium.GraphImage()
		from := r.places.input.reader.Repository(at.Path)
		top, err := from.Head(ctx, at.Tag)
		if errors.Is(err, fs.ErrNotExist) {
			return absentError("the archive has no graph image: it was written for an image set without \"graph: true\"")
		}
		if err != nil {
			return err
		}
		if err := r.places.input.checkName(at.Path, at.Tag, top.Digest); err != nil {
			return err
		}
		to, err := r.places.to.repository(g.dest)
		if err != nil {
			return err
		}
		return r.writeGraph(ctx, g, r.places.input.repository(at.Path, to), top)
	}
	return r.buildGraph(ctx, g)
}

// buildGraph builds the graph image and writes it to the target.
func (r *publisher) buildGraph(ctx context.Context, g *graph) (err error) {
	dir := filepath.Join(r.work.Dir(), "graph")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	from, on := cmp.Or(r.o.Releases.GraphData, graphimage.DefaultURL), cmp.Or(r.o.Releases.GraphBase, graphimage.DefaultBase)
	r.report.log.info("building the graph image of " + redact.Text(from) + " on " + on)
	data, err := graphimage.Download(ctx, r.o.Releases.Client, from, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	base, err := r.o.Images.Open(ctx, on)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	image, err := graphimage.Build(ctx, graphimage.Options{Base: base, Data: data, Dir: dir,
		Platforms: r.o.Set.Platform.Platforms})
	if err != nil {
		return err
	}
	return errors.Join(r.writeGraph(ctx, g, image.Store(), image.Top()), image.Close())
}

// writeGraph writes the graph image to the target, if it is not there.
func (r *publisher) writeGraph(ctx context.Context, g *graph, from store.Reader, top v1.Descriptor) error {
	to, err := r.places.to.repository(g.dest)
	if err != nil {
		return err
	}
	there, err := to.Head(ctx, g.dest.Tag)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", g.dest.Name(), err)
	}
	g.account.Digest = top.Digest
	if there.Digest == top.Digest {
		g.account.Published, g.account.Present = true, true
		return nil
	}
	moves := r.report.moved.Image()
	defer moves.End()
	if _, err := store.CopyOne(ctx, from, top, to, g.dest.Tag, store.CopyOptions{Jobs: r.o.Layers,
		Absent: there.Digest == "" && r.places.output == nil, Elsewhere: r.places.input.reposElsewhere,
		Moved: moves.Event}); err != nil {
		return err
	}
	g.account.Published = true
	return nil
}
