package mirror

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/internal/outage"
	"github.com/operator-bindery/bindery/mirror/internal/tally"
)

// report is what a run says of itself: in the log, in the account, and as progress. It is safe for concurrent use.
type report struct {
	log      logger
	progress progress
	moved    *tally.Tally // counts the bytes of the progress

	causes atomic.Int32 // how many images failed

	mu      sync.Mutex // guards the problems of the account
	account *Account
}

// maxCauses is of how many images that fail the errors are kept, and not only their texts: the first one decides on the
// advice.
const maxCauses = 100

func newReport(o *Options) *report {
	r := &report{log: newLogger(o.Log), account: &Account{Mode: o.Mode, Config: o.Config, DryRun: o.DryRun,
		Catalogs: []CatalogAccount{}, Images: []*imageAccount{}, Resources: []string{}, Problems: []Problem{}}}
	r.progress.events = o.Events
	r.moved = tally.New(func(bytes, all int64) {
		r.progress.add(func(e *Event) { e.Bytes += bytes; e.AllBytes += all })
	})
	return r
}

// problem adds something that a user should know about to the account, and logs it.
func (r *report) problem(level filter.Level, object, hint, format string, args ...any) {
	p := Problem{Level: level, Object: object, Message: fmt.Sprintf(format, args...), Hint: hint}
	r.addProblem(p)
	r.log.warn(p.String())
}

// addProblem adds a problem to the account without logging it: an error that the run ends with has it.
func (r *report) addProblem(p Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.account.Problems = append(r.account.Problems, p)
}

// imageDone reports the progress by an image that is done.
func (r *report) imageDone(i *item, err error) {
	r.progress.add(func(e *Event) {
		e.Image, e.Status, e.Err = i.name(), i.account.Status, err
		e.Images++
	})
}

// imageFailed notes why an image is not copied. The log has only a line about it, as the end of the run says why.
func (r *report) imageFailed(i *item, what string, err error) {
	i.fail(err)
	if r.causes.Add(1) > maxCauses {
		i.cause = nil // the account has its text
	}
	r.log.warn(i.name() + " " + what)
	r.log.debug(fmt.Sprintf("%s: %v", i.name(), err))
}

// unpublished notes why a catalog or the graph image is not published. The log has only a line about it, as the end of the
// run says why; it has none of an error that ends the run.
func (r *report) unpublished(name string, kind Kind, err error) {
	text := "the catalog is not " + r.account.Mode.published()
	if kind == Graph {
		text = "the graph image is not " + r.account.Mode.published()
	}
	r.addProblem(Problem{Level: filter.Failure, Object: name, Message: text + ": " + err.Error()})
	if !outage.Fatal(err) {
		r.log.warn(name + ": " + text)
		r.log.debug(fmt.Sprintf("%s: %v", name, err))
	}
}

// finish completes the account with what was collected.
func (r *report) finish(found *collection) *Account {
	for _, one := range found.releases {
		r.account.Releases = append(r.account.Releases, one.account)
	}
	if g := found.graph; g != nil {
		r.account.Graph = &GraphAccount{Destination: g.account.Destination, Digest: g.account.Digest, Published: g.isThere(),
			Present: g.account.Status == Present, Error: g.account.Error}
	}
	for _, c := range slices.Concat(found.catalogs, found.absent) {
		r.account.Catalogs = append(r.account.Catalogs, c.account)
	}
	for _, c := range found.charts {
		r.account.Charts = append(r.account.Charts, c.account)
	}
	for _, i := range found.items.list {
		if i.account == nil { // the run ended before its images were looked at
			i.startAccount(r.moved)
		}
		r.account.Images = append(r.account.Images, i.account)
	}
	found.items.list = nil // the account has what is wanted of them
	r.account.total()
	return r.account
}

// progress counts what is done and reports it, one event at a time.
type progress struct {
	mu     sync.Mutex
	events func(Event)
	sums   Event
}

// add changes the sums and reports them.
func (p *progress) add(change func(*Event)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.sums)
	if p.events != nil {
		p.events(p.sums)
	}
	p.sums.Image, p.sums.Status, p.sums.Err = "", "", nil
}

// logger writes to the caller's log, if there is one, without control characters and credentials.
type logger struct{ to *slog.Logger }

func newLogger(to *slog.Logger) logger {
	if to == nil {
		to = slog.New(slog.DiscardHandler)
	}
	return logger{to}
}

func (l logger) info(text string)  { l.to.Info(printable.Text(text)) }
func (l logger) debug(text string) { l.to.Debug(printable.Text(text)) }
func (l logger) warn(text string)  { l.to.Warn(printable.Text(text)) }
