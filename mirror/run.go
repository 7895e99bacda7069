package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// run is one call of [Run].
type run struct {
	o         Options
	log       logger
	account   *Account
	catalogs  []*catalog
	absent    []*catalog // those that are not there
	items     items
	from      origin
	to        target
	reader    *medium.Reader   // FromDisk
	contained *medium.Contents // of the reader; nil for archives of oc-mirror
	// described are the digests of the images on the medium by PATH:TAG, as its description has them.
	described map[string][]digest.Digest
	// elsewhere are repositories of the target with what the medium leaves out.
	elsewhere map[digest.Digest][]string
	writer    *medium.Writer // ToDisk
	// have tells what the medium leaves out; nil is nothing.
	have     func(digest.Digest) bool
	earlier  *medium.History // what earlier archives had; ToDisk
	state    *carried
	work     *images.Workspace
	progress progress
	tally    tally
	problems sync.Mutex // guards the problems of the account
	weights  weights
	troubles troubles
	lists    *tagLists // of the sources
	// unfinished says that what is not at the target may be copied by runs that have not ended.
	unfinished bool
	sparse     sync.Once // advice about indexes that the target does not take
}

// Run mirrors an image set. The account is returned with every error that comes after the configuration was read. An
// [*IncompleteError] means that everything that could be done is done; other errors end the run.
func Run(ctx context.Context, o Options) (_ *Account, err error) {
	r, err := o.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.open(ctx); err != nil {
		return r.account, err
	}
	err = r.do(ctx)
	r.finishAccount()
	return r.account, err
}

// begin returns a run with the defaults of the options. The caller closes it.
func (o Options) begin(ctx context.Context) (*run, error) {
	if o.Jobs == 0 {
		o.Jobs = 4
	}
	unfinished := o.OnMissing == "" && o.PublishOnly
	if o.OnMissing == "" {
		o.OnMissing = SkipBundle
	}
	if o.Base == "" {
		o.Base = KeepBase
	}
	r := &run{o: o, unfinished: unfinished, log: logger{o.Log}, account: &Account{Mode: o.Mode, Config: o.Config,
		DryRun: o.DryRun, Catalogs: []CatalogAccount{}, Images: []ImageAccount{}, Resources: []string{},
		Problems: []Problem{}}}
	r.progress.events, r.tally.progress = o.Events, &r.progress
	var err error
	r.work, err = images.NewWorkspace(ctx, o.Spec.Build.Dir)
	return r, err
}

// open opens the two ends.
func (r *run) open(ctx context.Context) (err error) {
	if r.state, err = readCarried(r.o.Workspace); err != nil {
		return err
	}
	if r.o.Mode != ToDisk {
		// What is wrong with the workspace is reported before anything is copied.
		if _, err := r.o.Workspace.Resources(); err != nil {
			return err
		}
		if _, err := readRecord(r.o.Workspace, r.o.Target); err != nil {
			return err
		}
		r.account.Destination = r.o.Target.String()
		if !r.o.DryRun {
			if err := r.o.Remote.Ping(ctx, r.o.Target.String()); err != nil {
				return err // it names the registry
			}
		}
		r.to = remoteTarget{r}
	}
	switch r.o.Mode {
	case ToMirror:
		r.from = registryOrigin{r.o.Images}
	case ToDisk:
		r.from = registryOrigin{r.o.Images}
		r.account.Destination = r.o.Archive
	case FromDisk:
		return r.openReader(ctx)
	default:
		return fmt.Errorf("%w: mode %q", fault.ErrInvalid, r.o.Mode)
	}
	return nil
}

// do does the steps of a run.
func (r *run) do(ctx context.Context) error {
	if err := r.collect(ctx); err != nil {
		return err
	}
	list := r.items.sorted()
	if err := r.checkItems(ctx, list); err != nil {
		return err
	}
	if r.o.Filter.Strict && !r.o.PublishOnly {
		if err := r.checkThere(ctx, list); err != nil {
			return err
		}
	}
	if r.o.DryRun {
		return r.forecast(ctx, list)
	}
	if r.o.Mode == ToDisk {
		if there, err := r.partIsThere(ctx, list); there || err != nil {
			return err
		}
		if err := r.openWriter(ctx); err != nil {
			return err
		}
	}
	bring := r.transfer
	if r.o.PublishOnly {
		bring = r.lookFor
	}
	if err := bring(ctx, list); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.finishMedium(ctx); err != nil {
		return err
	}
	if err := r.writeResults(ctx); err != nil {
		return err
	}
	return r.outcome()
}

// checkThere returns an error with the additional images that are not there; of an archive, with all images that it lacks.
func (r *run) checkThere(ctx context.Context, list []*item) error {
	errs := make([]error, len(list))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(r.o.Jobs)
	for n, i := range list {
		if i.account.Status == Blocked || i.kind != Additional && r.o.Mode != FromDisk {
			continue
		}
		g.Go(func() error {
			at, err := r.from.open(gctx, i)
			if err == nil {
				err = at.close()
			}
			if err != nil {
				errs[n] = fmt.Errorf("%s: %w", i.name(), err)
			}
			return context.Cause(gctx)
		})
	}
	if err := g.Wait(); err != nil {
		return err
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
		default:
			e.Operators++
		}
	}
	return e
}

// close releases what the run holds.
func (r *run) close() error {
	var err error
	for _, c := range slices.Concat(r.catalogs, r.absent) {
		err = errors.Join(err, c.close())
	}
	if r.writer != nil {
		err = errors.Join(err, r.writer.Close())
	}
	if r.reader != nil {
		err = errors.Join(err, r.reader.Close())
	}
	if r.work != nil {
		err = errors.Join(err, r.work.Close())
	}
	return err
}

// outcome is the error of a run that went through to its end.
func (r *run) outcome() error {
	e := &IncompleteError{}
	for _, i := range r.items.list {
		if !i.failed() {
			continue
		}
		e.Damaged = e.Damaged || i.damaged && r.o.Mode == FromDisk
		if e.Cause == nil && i.cause != nil {
			e.Cause = fmt.Errorf("%s: %w", i.name(), i.cause)
		}
		if e.First == "" && i.account.Error != "" {
			e.First = i.name() + ": " + i.account.Error
		}
		switch i.kind {
		case Additional:
			e.Additional++
		case Related, Bundle:
			e.Operators++
		}
	}
	for _, c := range slices.Concat(r.absent, r.catalogs) {
		e.LeftOut += len(c.account.LeftOut)
		if e.First == "" && len(c.account.LeftOut) > 0 {
			e.First = c.account.LeftOut[0].text()
		}
		e.Missing += len(c.account.Missing)
		if e.First == "" && len(c.account.Missing) > 0 {
			e.First = c.account.Source + ": " + c.account.Missing[0]
		}
		if !c.account.Published && !r.o.DryRun && r.o.Shard.Count == 0 || c.failed != nil {
			e.Unpublished = append(e.Unpublished, c.account.Destination)
			e.Cause = cmp.Or(e.Cause, c.failed)
			if e.First == "" && c.account.Error != "" {
				e.First = c.account.Source + ": " + c.account.Error
			}
		}
	}
	if e.Operators+e.Additional+e.LeftOut+e.Missing+len(e.Unpublished) == 0 {
		return nil
	}
	return e
}

func (r *run) finishAccount() {
	for _, c := range slices.Concat(r.catalogs, r.absent) {
		r.account.Catalogs = append(r.account.Catalogs, c.account)
	}
	for _, i := range r.items.list {
		if i.account.Source == "" { // the run ended before its images were looked at
			i.begin(&r.tally)
		}
		r.account.Images = append(r.account.Images, i.account)
	}
	r.account.total()
}

// problem notes something that a user should know about. It is safe for concurrent use.
func (r *run) problem(level Level, object, hint, format string, args ...any) {
	p := Problem{Level: level, Object: object, Message: fmt.Sprintf(format, args...), Hint: hint}
	r.note(p)
	r.log.problem(p)
}

// note adds a problem to the account without logging it: an error that the run ends with has it.
func (r *run) note(p Problem) {
	r.problems.Lock()
	defer r.problems.Unlock()
	r.account.Problems = append(r.account.Problems, p)
}

// readAll reads at most so many bytes; more are an error.
func readAll(from io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%w: more than %d bytes", fault.ErrLimit, most)
	}
	return text, err
}

// onMedium are the names of repositories and tags on a medium: those of a target without a registry.
var onMedium imageset.Target
