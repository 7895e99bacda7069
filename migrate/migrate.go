package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/edit"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

// Options say how a catalog is migrated. The zero value writes JSON at the lowest level.
type Options struct {
	// Render says how the source is read, the migration level included. Its functions Database and Quarantined are called as
	// well.
	Render render.Options
	// Format is that of the files that are written; empty means JSON.
	Format declcfg.Format
	// Report asks for the source side of the report's counts, which takes a second pass over a database.
	Report bool
	// Verify reads what was written again, and compares it with what SQL finds in the database, or with the blobs of a
	// catalog.
	Verify bool
	// AllowEmpty writes a catalog without packages. Otherwise that is a *[declcfg.EmptyError].
	AllowEmpty bool
	// Replace writes in place of a directory that is there, whatever it holds.
	Replace bool
	// Then, unless nil, is called with the directory when it is complete and verified and has not got its name yet, and with
	// the report. After an error of it the output is as it was.
	Then func(ctx context.Context, dir string, r *Report) error
	// Progress, unless nil, is told of each package before it is written and before it is verified, by one goroutine at a
	// time. Packages are counted from 1.
	Progress func(step Step, n int, pkg string)
}

// Step is what is being done with a package.
type Step string

// The steps of a migration.
const (
	StepWrite  Step = "migrating"
	StepVerify Step = "verifying"
)

// PartialError tells that what was written is not all of the source, or not as it was there: broken packages were
// left out (see render.Options.KeepGoing), or repairs were made (see render.Options.Repair).
type PartialError struct {
	Packages []string // that were left out
	Repairs  int
}

func (e *PartialError) Error() string {
	var parts []string
	if len(e.Packages) > 0 {
		parts = append(parts, fmt.Sprintf("broken packages were left out (%d): %s", len(e.Packages), strings.Join(e.Packages, ", ")))
	}
	if e.Repairs > 0 {
		parts = append(parts, fmt.Sprintf("repairs were made (%d)", e.Repairs))
	}
	return strings.Join(parts, "; ")
}

// VerificationError tells that the directory does not hold what the database does. Nothing was written.
type VerificationError struct {
	Differences []Difference // those without a reason
}

func (e *VerificationError) Error() string {
	d := e.Differences[0]
	where := fmt.Sprintf("package %q", d.Package)
	if d.Channel != "" {
		where += fmt.Sprintf(", channel %q", d.Channel)
	}
	if d.Bundle != "" {
		where += fmt.Sprintf(", bundle %q", d.Bundle)
	}
	return fmt.Sprintf("verification failed: %d differences between the source and what was written, the first: %s: %s: %q in the source, %q written",
		len(e.Differences), where, d.What, d.Source, d.Output)
}

// Run migrates a database, a catalog directory or an image of either to the directory out, which must be absent or
// empty. On every error but a *[PartialError] out is as it was. The report is there for that error, for a
// *[VerificationError] and for a *[declcfg.EmptyError] too.
func Run(ctx context.Context, src, out string, o Options) (*Report, error) {
	if o.Format == "" {
		o.Format = declcfg.FormatJSON
	}
	level, err := edit.ParseLevel(string(o.Render.Level))
	if err != nil {
		return nil, err
	}
	r := &Report{Source: images.WithoutCredentials(src), Output: out, Level: string(level), Format: string(o.Format), Compat: string(o.Render.Compat), Findings: []sqlite.Finding{}}
	if !o.Replace {
		if err := checkEmpty(out); err != nil {
			return nil, err
		}
	}
	m := &migration{o: o, r: r, sums: o.Verify}
	if kind, err := render.Classify(src); err == nil && kind == render.Database {
		m.sums = false
	}
	blobs, err := render.Reference(ctx, src, m.renderOptions())
	if err != nil {
		return nil, err
	}
	blobs, stop, err := begun(blobs)
	if err != nil {
		return nil, err
	}
	defer stop()
	write := declcfg.WriteFSChecked
	if o.Replace {
		write = declcfg.ReplaceFS
	}
	err = write(ctx, out, o.Format, m.counting(blobs), func(dir string) error { return m.written(ctx, dir) })
	var failed *VerificationError
	var empty *declcfg.EmptyError
	switch {
	case errors.As(err, &failed), errors.As(err, &empty):
		return r, err
	case err != nil:
		return nil, err
	}
	return r, r.partial()
}

// partial is the *[PartialError] of a report; nil if the catalog was written as it was.
func (r *Report) partial() error {
	e := &PartialError{Repairs: r.Repairs()}
	for _, p := range r.Packages {
		if p.Quarantined != "" {
			e.Packages = append(e.Packages, p.Name)
		}
	}
	if len(e.Packages)+e.Repairs == 0 {
		return nil
	}
	return e
}

// migration is one run.
type migration struct {
	o      Options
	r      *Report
	facts  *sqlite.Facts // of a database
	counts outputCounts
	sums   bool // the source is a catalog, to be verified by its blobs
	blobs  blobSums
}

// renderOptions are those of the source, with the report listening.
func (m *migration) renderOptions() render.Options {
	ro := m.o.Render
	ro.Reuse = true
	ro.Pulled = func(p render.Pulled) {
		m.r.Image = p.Digest
		m.sums = m.sums && p.Kind != render.DatabaseImage
		if tell := m.o.Render.Pulled; tell != nil {
			tell(p)
		}
	}
	ro.Quarantined = func(pkg string, reason error) {
		m.r.Findings = append(m.r.Findings, sqlite.Finding{Kind: sqlite.Quarantined, Package: pkg, Reason: reason.Error()})
		if tell := m.o.Render.Quarantined; tell != nil {
			tell(pkg, reason)
		}
	}
	ro.Repaired = func(made declcfg.Repair) {
		m.r.Findings = append(m.r.Findings, sqlite.RepairFinding(made))
		if tell := m.o.Render.Repaired; tell != nil {
			tell(made)
		}
	}
	ro.Database = func(ctx context.Context, db *sqlite.DB) (err error) {
		if version, has := db.SchemaVersion(); has {
			m.r.SchemaVersion = &version
		}
		m.r.Findings = append(m.r.Findings, db.Findings()...)
		if m.o.Report || m.o.Verify {
			if m.facts, err = db.Facts(ctx); err != nil {
				return err
			}
		}
		if also := m.o.Render.Database; also != nil {
			return also(ctx, db)
		}
		return nil
	}
	return ro
}

// written looks at the complete directory, completes the report, and lets the caller look.
func (m *migration) written(ctx context.Context, dir string) error {
	err := m.verify(ctx, dir)
	var failed *VerificationError
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	var source map[string]*Counts
	if m.facts != nil {
		source = sourceCounts(m.facts)
	}
	m.r.Packages = packageReports(source, m.counts.counts, m.r.Findings)
	m.facts, m.blobs = nil, nil // they can be large, and what follows may be
	if err == nil && m.r.Written() == 0 && !m.o.AllowEmpty {
		return &declcfg.EmptyError{Catalog: m.r.Source, Err: m.r.partial()}
	}
	if err == nil && m.o.Then != nil {
		err = m.o.Then(ctx, dir, m.r)
	}
	return err
}

func (m *migration) verify(ctx context.Context, dir string) (err error) {
	switch {
	case !m.o.Verify:
	case m.facts != nil:
		m.r.Verification, err = verify(ctx, dir, m.facts, m.r.Findings, m.o)
	default:
		m.r.Verification, err = verifyBlobs(ctx, dir, m.blobs, m.r.Findings, m.o)
	}
	return err
}

// checkEmpty looks at the output before the source is read. It is looked at again when it is written.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("output dir %q: %w", dir, err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("output dir %q must be empty", dir)
	}
	return nil
}

// begun reads the first blob. A database is checked as a whole before that, so that what is wrong with it is known
// before anything is made on disk.
func begun(blobs iter.Seq2[declcfg.Blob, error]) (_ iter.Seq2[declcfg.Blob, error], stop func(), err error) {
	next, stop := iter.Pull2(blobs)
	first, err, ok := next()
	if err != nil {
		stop()
		return nil, nil, err
	}
	return func(yield func(declcfg.Blob, error) bool) {
		for b, err := first, error(nil); ok; b, err, ok = next() {
			if !yield(b, err) {
				return
			}
		}
	}, stop, nil
}

func (m *migration) counting(blobs iter.Seq2[declcfg.Blob, error]) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		n := 0
		for b, err := range blobs {
			if err == nil {
				m.counts.add(b)
				if m.sums {
					m.blobs.add(b)
				}
			}
			if p, ok := b.(*declcfg.Package); ok && m.o.Progress != nil {
				n++
				m.o.Progress(StepWrite, n, p.Name)
			}
			if !yield(b, err) {
				return
			}
		}
	}
}
