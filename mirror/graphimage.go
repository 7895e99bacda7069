package mirror

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/mirror/releases/graphimage"
)

// openGraph opens the image with the data of update graphs: built here, or as the archive has it.
func (r *run) openGraph(ctx context.Context) (*opened, error) {
	if r.places.input == nil {
		return r.buildGraph(ctx)
	}
	at := onMedium.GraphImage()
	top, err := r.places.input.reader.Repository(at.Path).Head(ctx, at.Tag)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, absentError("the archive has no graph image: it was written for an image set without \"graph: true\"")
	}
	if err == nil {
		err = r.places.input.checkName(at.Path, at.Tag, top.Digest)
	}
	if err != nil {
		return nil, err
	}
	to, err := r.places.to.repository(r.found.graph.destination)
	return &opened{Reader: r.places.input.repository(at.Path, to), top: top, close: func() error { return nil }}, err
}

// buildGraph builds the graph image. Its files are removed with those of the run.
func (r *run) buildGraph(ctx context.Context) (_ *opened, err error) {
	dir, err := os.MkdirTemp(r.work.Dir(), "graph-")
	if err != nil {
		return nil, err
	}
	from, on := cmp.Or(r.o.Releases.GraphData, graphimage.DefaultURL), cmp.Or(r.o.Releases.GraphBase, graphimage.DefaultBase)
	r.report.log.info("building the graph image of " + redact.Text(from) + " on " + on)
	data, err := graphimage.Download(ctx, r.o.Releases.Client, from, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	base, err := r.o.Images.Open(ctx, on)
	if err != nil {
		return nil, err
	}
	image, err := graphimage.Build(ctx, graphimage.Options{Base: base, Data: data, Dir: dir,
		Platforms: r.o.Set.Platform.Platforms})
	if err != nil {
		return nil, errors.Join(err, base.Close())
	}
	return &opened{Reader: image.Store(), top: image.Top(),
		close: func() error { return errors.Join(image.Close(), base.Close()) }}, nil
}
