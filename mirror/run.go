package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/internal/outage"
	"github.com/operator-bindery/bindery/mirror/internal/taglists"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
)

// run is one call of [Options.Run]. Its steps are methods, each in the file of its subject; what one finds out is in the
// collection and in the accounts of its images.
type run struct {
	o       *Options
	report  *report
	places  places
	found   *collection
	carried *workdir.Carried // what earlier runs have copied whole
	work    *images.Workspace
	tags    *taglists.Lists // of the repositories that images come from; nil if they are not listed
	targets *taglists.Lists // of those that they go to; nil if they are not listed
	outages outage.Counter
	// uploads limits the blobs that are sent at once, of all images.
	uploads chan struct{}
	// sparse and asDocker give the advice about indexes that the target refuses, and about Docker's types, once.
	sparse, asDocker sync.Once
}

// Run mirrors an image set. The account is returned with every error that comes after the configuration was read. An
// [*IncompleteError] means that everything that could be done is done; other errors end the run.
func (o Options) Run(ctx context.Context) (_ *Account, err error) {
	r, err := newRun(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err = r.open(ctx, true); err != nil {
		return r.report.account, err
	}
	err = r.mirror(ctx)
	return r.report.finish(r.found), err
}

// newRun returns a run that has not opened anything but its temporary directory. The caller closes it.
func newRun(ctx context.Context, options Options) (*run, error) {
	o := options.withDefaults()
	if err := o.Check(); err != nil {
		return nil, err
	}
	work, err := images.NewWorkspace(ctx, o.Spec.Build.Dir)
	return &run{o: o, report: newReport(o), found: &collection{}, work: work,
		uploads: make(chan struct{}, o.ParallelImages*o.ParallelLayers)}, err
}

// open opens what the run reads and writes; ask is that of [places.open].
func (r *run) open(ctx context.Context, ask bool) (err error) {
	if r.carried, err = workdir.ReadCarried(r.o.Workspace.files()); err != nil {
		return err
	}
	return r.places.open(ctx, r.o, r.report, ask)
}

// mirror does the steps of the run, one after the other.
func (r *run) mirror(ctx context.Context) (err error) {
	if err := r.collect(ctx); err != nil {
		return err
	}
	list, err := r.checkDestinations(ctx)
	if err != nil {
		return err
	}
	if r.o.Filter.Strict && !r.o.PublishOnly {
		if err := r.checkSources(ctx, list); err != nil {
			return err
		}
	}
	if r.o.DryRun {
		if err := r.forecast(ctx); err != nil {
			return err
		}
		return r.found.outcome(r.o)
	}
	if r.o.Mode == ToDisk {
		complete, err := partIsComplete(ctx, r.o, r.places.from, r.found)
		if err != nil {
			return err
		}
		if complete {
			r.report.log.info("the archive of this part is there")
			return r.writeResults(ctx)
		}
		if err := r.places.openOutput(ctx, r.o, r.report); err != nil {
			return err
		}
	}
	if err := r.transfer(ctx); err != nil {
		return err
	}
	r.settleReleases()
	r.settleCharts()
	if err := r.publish(ctx); err != nil {
		return err
	}
	if r.o.Mode == ToDisk {
		if err := r.finishArchive(ctx); err != nil {
			return err
		}
	}
	if err := r.writeResults(ctx); err != nil {
		return err
	}
	return r.found.outcome(r.o)
}

// transfer copies the images of this run, or looks for what other runs have copied. Release images are copied after
// what the releases name, also where other runs have copied that.
func (r *run) transfer(ctx context.Context) error {
	published := len(r.toPublish())
	if r.o.PublishOnly {
		var parts, whole []*item
		for _, i := range r.found.items.list {
			if i.kind == Release {
				whole = append(whole, i)
			} else {
				parts = append(parts, i)
			}
		}
		if err := r.findAll(ctx, parts, published+len(whole)); err != nil {
			return err
		}
		return r.copyKind(ctx, whole)
	}
	list, err := r.found.keepShard(ctx, r.o, r.places.from)
	if err != nil {
		return err
	}
	return r.copyAll(ctx, list, published)
}

// settleReleases notes what became of the releases, when their images are copied.
func (r *run) settleReleases() {
	for _, one := range r.found.releases {
		one.settle()
		if n := one.unsigned(); n > 0 && r.o.With.Tags {
			r.report.problem(filter.Warning, "release "+one.account.Name(), "", "%d of its images have no signature of cosign at "+
				"their source (sha256-HEX.sig), which clusters from 4.21 on ask for", n)
		}
	}
}

// close releases what the run holds.
func (r *run) close() error {
	err := errors.Join(r.found.close(), r.places.close())
	if r.work != nil {
		err = errors.Join(err, r.work.Close())
	}
	return err
}

// checkSources returns an error with the additional images that are not there; of an archive, with all images that it
// lacks.
func (r *run) checkSources(ctx context.Context, list []*item) error {
	errs := guard.TryEach(ctx, r.o.ParallelImages, 0, list, func(ctx context.Context, _ int, i *item) error {
		if i.account.Status == Blocked || i.kind != Additional && r.o.Mode != FromDisk {
			return nil
		}
		at, err := r.places.from.open(ctx, i)
		if err == nil {
			err = at.close()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", i.name(), err)
		}
		return nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e := &CollectError{Err: errors.Join(errs...)}
	if e.Err == nil {
		return nil
	}
	for n, i := range list {
		switch {
		case errs[n] == nil:
		case i.kind == Additional:
			e.Additional++
		case i.ofRelease():
			e.Releases++
		case i.kind == ChartImage:
			e.Charts++
		default:
			e.Operators++
		}
	}
	return e
}

// addReleases adds the releases that are not at the destination to an error, and the graph image.
func (f *collection) addReleases(o *Options, e *IncompleteError) {
	add := func(name, why string, cause error) {
		e.Cause = cmp.Or(e.Cause, cause)
		if e.First == "" && why != "" {
			e.First = strings.TrimPrefix(name+": "+why, "release : ") // a problem of a channel has no release
		}
	}
	for _, one := range f.releases {
		if one.isLeftOut(o.DryRun || o.Shard.Count > 0) {
			e.UnpublishedReleases = append(e.UnpublishedReleases, one.account.Name())
			add("release "+one.account.Name(), one.account.Error, one.failed)
		}
	}
	if g := f.graph; g != nil && g.cause != nil {
		e.NoGraph = true
		add(g.destination.Name(), g.account.Error, g.cause)
	}
}

// outcome is the error of a run that went through to its end: nil if nothing is missing.
func (f *collection) outcome(o *Options) error {
	e := &IncompleteError{}
	for _, i := range f.items.list {
		if !i.failed() {
			continue
		}
		e.Damaged = e.Damaged || i.damaged && o.Mode == FromDisk
		if e.Cause == nil && i.cause != nil {
			e.Cause = fmt.Errorf("%s: %w", i.name(), i.cause)
		}
		if e.First == "" && i.account.Error != "" {
			e.First = i.name() + ": " + i.account.Error
		}
		switch i.kind {
		case Additional:
			e.Additional++
		case ChartImage:
			e.Charts++
		case Release, ReleaseContent, Graph:
			e.Releases++
		case Related, Bundle:
			e.Operators++
		}
	}
	f.addReleases(o, e)
	f.addCharts(e)
	for _, c := range slices.Concat(f.absent, f.catalogs) {
		e.LeftOut += len(c.account.LeftOut)
		if e.First == "" && len(c.account.LeftOut) > 0 {
			e.First = c.account.LeftOut[0].text()
		}
		e.Missing += len(c.account.Missing)
		if e.First == "" && len(c.account.Missing) > 0 {
			e.First = c.account.Source + ": " + c.account.Missing[0]
		}
		if !c.account.Published && !o.DryRun && o.Shard.Count == 0 || c.failed != nil {
			e.Unpublished = append(e.Unpublished, c.account.Destination)
			e.Cause = cmp.Or(e.Cause, c.failed)
			if e.First == "" && c.account.Error != "" {
				e.First = c.account.Source + ": " + c.account.Error
			}
		}
	}
	if !e.LacksReleases() && !e.LacksCharts() && e.Operators+e.Additional+e.LeftOut+e.Missing+len(e.Unpublished) == 0 {
		return nil
	}
	return e
}
