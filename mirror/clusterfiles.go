package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/atmirror"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
)

// WriteResources writes the files for clusters to a directory as [Options.Run] does after copying, for all that the image set asks
// for, whether it was copied or not. A catalog that is not at the target is a problem, and gets no file if its place
// depends on its digest.
func (o Options) WriteResources(ctx context.Context, dir string) (_ *Account, err error) {
	if o.Mode == ToDisk {
		return nil, fmt.Errorf("%w: the files are about a registry", fault.ErrInvalid)
	}
	o.DryRun = true
	r, err := newRun(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.open(ctx, false); err != nil {
		return r.report.account, err
	}
	if err := r.collectWhole(ctx); err != nil {
		return r.report.account, err
	}
	if _, err := r.checkDestinations(ctx); err != nil {
		return r.report.account, err
	}
	if err := r.findCatalogs(ctx); err != nil {
		return r.report.account, err
	}
	err = r.writeResources(ctx, dir)
	return r.report.finish(r.found), err
}

// findCatalogs finds out what the catalogs and the graph image are at the target.
func (r *run) findCatalogs(ctx context.Context) error {
	rec, err := workdir.ReadRecord(r.o.Workspace.files(), r.o.Target)
	if err != nil {
		return err
	}
	if g := r.found.graph; g != nil {
		top, err := r.head(ctx, g)
		if err != nil {
			return err
		}
		if g.account.Digest = top.Digest; top.Digest == "" {
			r.found.graph = nil
			r.report.problem(filter.Warning, "graph: true", "", "%s is not at the target", g.destination.Name())
		}
	}
	for _, c := range r.found.catalogs {
		at, err := publishedAt(r.o.Target, c.op, rec)
		if err != nil {
			r.report.problem(filter.Warning, c.op.Written, "", "no file for it: %v", err)
			continue
		}
		to, err := r.places.to.repository(at)
		if err != nil {
			return err
		}
		_, top, err := atmirror.Head(ctx, to, at)
		if errors.Is(err, fs.ErrNotExist) {
			r.report.problem(filter.Warning, c.op.Written, "", "%s is not at the target", at.Name())
		} else if err != nil {
			return fmt.Errorf("%s: %w", at.Name(), err)
		}
		c.setDestination(at, top.Digest)
	}
	return nil
}

// Repositories returns the repositories at a target that an image set writes to, below the path of the target, sorted:
// for registries that do not list theirs. The catalogs are read at their sources.
func (o Options) Repositories(ctx context.Context) (_ []string, err error) {
	o.Mode, o.Target.Host, o.Target.Path = ToMirror, "", ""
	var out []string
	if !o.Set.Platform.IsZero() { // the names are the same for all releases
		set := *o.Set
		set.Platform, o.Set = imageset.Platform{}, &set
		for _, at := range []imageset.Ref{o.Target.ReleaseImages(""), o.Target.ReleaseContent("", ""), o.Target.GraphImage()} {
			out = append(out, at.Path)
		}
	}
	all := o.withDefaults()
	r := &run{o: all, report: newReport(all), places: places{from: registryOrigin{all.Images}}}
	err = r.collectWhole(ctx)
	defer func() { err = errors.Join(err, r.found.close()) }()
	if err != nil {
		return nil, err
	}
	for _, i := range r.found.items.list {
		out = append(out, i.destination.Path)
	}
	for _, c := range r.found.catalogs {
		out = append(out, c.image.destination.Path)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
