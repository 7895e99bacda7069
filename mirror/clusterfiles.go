package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Resources writes the files for clusters to a directory as [Run] does after copying, for all that the image set asks
// for, whether it was copied or not. A catalog that is not at the target is a problem, and gets no file if its place
// depends on its digest.
func Resources(ctx context.Context, o Options, dir string) (_ *Account, err error) {
	if o.Mode == ToDisk {
		return nil, fmt.Errorf("%w: the files are about a registry", fault.ErrInvalid)
	}
	o.DryRun = true
	r, err := o.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.open(ctx); err != nil {
		return r.account, err
	}
	if err := r.collectAll(ctx); err != nil {
		return r.account, err
	}
	if err := r.checkItems(ctx, r.items.sorted()); err != nil {
		return r.account, err
	}
	rec, err := readRecord(o.Workspace, o.Target)
	if err != nil {
		return r.account, err
	}
	for _, c := range r.catalogs {
		at, err := publishedAt(o.Target, c.op, rec)
		if err != nil {
			r.problem(Warning, c.op.Written, "", "no file for it: %v", err)
			continue
		}
		to, err := r.to.repository(at)
		if err != nil {
			return r.account, err
		}
		_, top, err := headPulled(ctx, to, at)
		if errors.Is(err, fs.ErrNotExist) {
			r.problem(Warning, c.op.Written, "", "%s is not at the target", at.Name())
		} else if err != nil {
			return r.account, fmt.Errorf("%s: %w", at.Name(), err)
		}
		c.goesTo(at, top.Digest)
	}
	err = r.writeResources(ctx, dir)
	r.finishAccount()
	return r.account, err
}
