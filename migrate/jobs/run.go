package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/migrate"
)

// Options configure a run.
type Options struct {
	// Dir is the directory of the records. It is created if missing; one run at a time can use it.
	Dir string
	// Part, unless empty, names the part of the list that the lines are (see [Part]). Runs of different parts use Dir
	// at the same time, one run of each.
	Part string
	// Jobs is how many lines are done concurrently; 1 if it is less.
	Jobs int
	// KeepGoing continues with other lines after one has failed. Otherwise no further line is begun; those that have
	// been begun are finished.
	KeepGoing bool
	// Verify means that a line counts as done only if its result was verified.
	Verify bool
	// Overwrite replaces outputs that hold the result of another input, other settings or another release.
	Overwrite bool
	// Settings returns a digest of everything except the source that the outputs of a line depend on. Tool is the
	// program's release.
	Settings func(*Line) string
	Tool     string
	// Images opens images.
	Images *images.Client
	// Migrate does one line. It is called concurrently.
	Migrate func(ctx context.Context, t *Task) (*migrate.Report, error)
	// Class returns the class of an error for the records; 0 for none.
	Class func(error) int
	// Done, unless nil, is called for each finished line; calls do not overlap.
	Done func(*Outcome)
}

// Task is a line being done.
type Task struct {
	*Line
	// Replace means that the directory holds an older result, which is to be replaced.
	Replace bool
	// Image describes the source if it is an image.
	Image *images.Description

	run    *run
	source *source
	record *Record
	path   string
	before *Tree
}

// Outcome is the result of a line.
type Outcome struct {
	*Line
	State State
	// Before means that the line was done before and this run did nothing.
	Before bool
	// Written is the content of the outputs; nil unless the line is done.
	Written *Written
	// Record is the file of the record; empty for a line that was not begun.
	Record string
	// Repairs is the number of repairs that were made on request.
	Repairs int
	Err     error
	Took    time.Duration
}

// Quarantined returns the packages that were left out.
func (o *Outcome) Quarantined() (names []string) {
	if o.Written == nil || o.Written.Report == nil {
		return nil
	}
	for _, p := range o.Written.Report.Packages {
		if p.Quarantined != "" {
			names = append(names, p.Name)
		}
	}
	return names
}

// Packages returns the number of packages in the outputs.
func (o *Outcome) Packages() int {
	if o.Written == nil || o.Written.Report == nil {
		return 0
	}
	return o.Written.Report.Written()
}

// ErrBusy is returned if another run is using the directory of the records.
var ErrBusy = errors.New("another run is using it")

type run struct {
	o     Options
	lines []Line

	mu       sync.Mutex
	outcomes []Outcome
	stop     bool
}

// Run does the lines and returns their outcomes in order. An error is about the directory of the records; errors of
// lines are in the outcomes. When the context ends, running lines are cancelled and no other one is begun; their
// outcomes have the context's error.
func Run(ctx context.Context, lines []Line, o Options) (_ []Outcome, err error) {
	if err := os.MkdirAll(o.Dir, 0o777); err != nil {
		return nil, fmt.Errorf("report directory: %w", err)
	}
	release, err := lock(o.Dir, o.Part)
	if err != nil {
		return nil, fmt.Errorf("report directory %q: %w", o.Dir, err)
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := sweep(o.Dir); err != nil {
		return nil, fmt.Errorf("report directory %q: %w", o.Dir, err)
	}
	r := &run{o: o, lines: lines, outcomes: make([]Outcome, len(lines))}
	for i := range lines {
		r.outcomes[i] = Outcome{Line: &lines[i], State: NotBegun}
	}
	err = guard.Each(ctx, o.Jobs, lines, func(_ context.Context, i int, _ Line) error {
		r.one(ctx, i)
		return nil
	})
	if ctx.Err() != nil {
		err = nil // the outcomes have it
	}
	return r.outcomes, err
}

// ended reports whether no further line may begin.
func (r *run) ended(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stop || ctx.Err() != nil
}

// one does a line and stores its outcome.
func (r *run) one(ctx context.Context, i int) {
	if r.ended(ctx) { // another line failed while this one was waiting
		return
	}
	start := time.Now()
	l := &r.lines[i]
	out := Outcome{Line: l, Record: filepath.Join(r.o.Dir, recordName(l))}
	t := &Task{Line: l, run: r, path: out.Record}
	before, err := t.do(ctx)
	out.Before, out.Err, out.Took = before, err, time.Since(start)
	if err != nil {
		out.State = Failed
		if ctx.Err() == nil {
			if rerr := t.failed(err); rerr != nil {
				out.Err = errors.Join(err, rerr)
			}
		}
	} else {
		out.State, out.Written = t.record.State, t.record.Written
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes[i] = out
	r.stop = r.stop || err != nil && !r.o.KeepGoing
	if r.o.Done != nil && (err == nil || ctx.Err() == nil) {
		r.o.Done(&r.outcomes[i])
	}
	// The details of the report are in its file; thousands of reports would fill the memory.
	r.outcomes[i].forget()
}

// forget drops the details of the report.
func (o *Outcome) forget() {
	if o.Written == nil || o.Written.Report == nil {
		return
	}
	o.Repairs = o.Written.Report.Repairs()
	short := *o.Written
	report := migrate.Report{}
	for _, p := range o.Written.Report.Packages {
		kept := migrate.PackageReport{Name: p.Name, Quarantined: p.Quarantined}
		if p.Output != nil {
			kept.Output = &migrate.Counts{}
		}
		report.Packages = append(report.Packages, kept)
	}
	short.Report = &report
	o.Written = &short
}

// do does the line unless it is done already.
func (t *Task) do(ctx context.Context) (before bool, err error) {
	defer guard.Recover(&err)
	if t.record, err = readRecord(t.path, t.Line); err != nil {
		return false, err
	}
	if t.source, err = identify(ctx, t.run.o.Images, t.Source); err != nil {
		return false, err
	}
	t.Image = t.source.image
	if t.record == nil {
		t.record = &Record{Version: recordVersion, Source: redact.Text(t.Source), Outputs: t.Outputs()}
	} else if done, err := t.decide(ctx); err != nil || done {
		return done, err
	}
	t.record.Source = redact.Text(t.Source)
	report, err := t.run.o.Migrate(ctx, t)
	var partial *migrate.PartialError
	if err != nil && !errors.As(err, &partial) {
		return false, err
	}
	w := t.record.Written
	if w == nil || report == nil {
		return false, errors.New("the migration reported no outputs")
	}
	w.Report = report
	return false, t.complete()
}

// complete records that the outputs have their final names.
func (t *Task) complete() error {
	w := t.record.Written
	w.Complete, w.Before = true, nil
	t.record.Error, t.record.State = nil, Done
	if w.incomplete() {
		t.record.State = Incomplete
	}
	return t.record.write(t.path)
}

// Prepared must be called when all outputs are written and before any is renamed to its final name: dir is the
// directory with the catalog, image the digest of the image if there is one. It records the content of the outputs.
// After an error no output may be renamed.
func (t *Task) Prepared(ctx context.Context, dir, image string, report *migrate.Report) error {
	if err := t.source.check(ctx, report.Image); err != nil {
		return err
	}
	w := &Written{Input: t.source.Input, Settings: t.run.o.Settings(t.Line), Tool: t.run.o.Tool, Image: image,
		Before: t.before, Report: report}
	if t.Directory != "" {
		tree, err := sumTree(ctx, dir)
		if err != nil {
			return err
		}
		w.Directory = &tree
	}
	next := *t.record
	next.Written, next.State, next.Error = w, Writing, nil
	if err := next.write(t.path); err != nil {
		return err
	}
	*t.record = next
	return nil
}

func (t *Task) failed(err error) error {
	if t.record == nil {
		// The record belongs to another line or cannot be read: it is not overwritten.
		if _, serr := os.Lstat(t.path); serr == nil {
			return nil
		}
		t.record = &Record{Version: recordVersion, Source: redact.Text(t.Source), Outputs: t.Outputs()}
	}
	t.record.State = Failed
	t.record.Error = &Failure{Message: redact.Text(err.Error())}
	if t.run.o.Class != nil {
		t.record.Error.Class = t.run.o.Class(err)
	}
	return t.record.write(t.path)
}
