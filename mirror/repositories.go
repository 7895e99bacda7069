package mirror

import (
	"context"
	"errors"
	"slices"
)

// Repositories returns the repositories at a target that an image set writes to, below the path of the target, sorted:
// for registries that do not list theirs. The catalogs are read at their sources.
func Repositories(ctx context.Context, o Options) (_ []string, err error) {
	o.Mode, o.Target.Host, o.Target.Path = ToMirror, "", ""
	r, err := o.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.collectAll(ctx); err != nil {
		return nil, err
	}
	var out []string
	for _, i := range r.items.list {
		out = append(out, i.destination.Path)
	}
	for _, c := range r.catalogs {
		out = append(out, c.dest.Path)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
