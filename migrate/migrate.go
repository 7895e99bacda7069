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
	"github.com/operator-bindery/bindery/edit"
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
	// Verify reads what was written again, and compares it with what SQL finds in the database.
	Verify bool
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

// QuarantineError tells that packages were left out because they are broken (see render.Options.KeepGoing). The others
// have been written.
type QuarantineError struct {
	Packages []string
}

func (e *QuarantineError) Error() string {
	return fmt.Sprintf("broken packages were left out (%d): %s", len(e.Packages), strings.Join(e.Packages, ", "))
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
	return fmt.Sprintf("verification failed: %d differences between the database and what was written, the first: %s: %s: %q in the database, %q written",
		len(e.Differences), where, d.What, d.Source, d.Output)
}

// ErrNoFacts is returned if verification is asked for a source other than a database.
var ErrNoFacts = errors.New("only a database can be verified")

// Run migrates a database or a catalog directory to the directory out, which must be absent or empty. On every error but
// a *[QuarantineError] out is as it was. The report is there for that error and for a *[VerificationError] too.
func Run(ctx context.Context, src, out string, o Options) (*Report, error) {
	if o.Format == "" {
		o.Format = declcfg.FormatJSON
	}
	level, err := edit.ParseLevel(string(o.Render.Level))
	if err != nil {
		return nil, err
	}
	r := &Report{Source: src, Output: out, Level: string(level), Format: string(o.Format), Compat: string(o.Render.Compat), Findings: []sqlite.Finding{}}
	var facts *sqlite.Facts
	o.Render.Reuse = true
	tell := o.Render.Quarantined
	o.Render.Quarantined = func(pkg string, reason error) {
		r.Findings = append(r.Findings, sqlite.Finding{Kind: sqlite.Quarantined, Package: pkg, Reason: reason.Error()})
		if tell != nil {
			tell(pkg, reason)
		}
	}
	also := o.Render.Database
	o.Render.Database = func(ctx context.Context, db *sqlite.DB) (err error) {
		if version, has := db.SchemaVersion(); has {
			r.SchemaVersion = &version
		}
		r.Findings = append(r.Findings, db.Findings()...)
		if o.Report || o.Verify {
			if facts, err = db.Facts(ctx); err != nil {
				return err
			}
		}
		if also != nil {
			return also(ctx, db)
		}
		return nil
	}
	if err := checkEmpty(out); err != nil {
		return nil, err
	}
	blobs, err := render.Reference(ctx, src, o.Render)
	if err != nil {
		return nil, err
	}
	blobs, stop, err := begun(blobs)
	if err != nil {
		return nil, err
	}
	defer stop()
	var counts outputCounts
	check := func(dir string) error {
		if !o.Verify {
			return nil
		}
		if facts == nil {
			return ErrNoFacts
		}
		var err error
		r.Verification, err = verify(ctx, dir, facts, r.Findings, o)
		return err
	}
	err = declcfg.WriteFSChecked(ctx, out, o.Format, counting(blobs, &counts, o.Progress), check)
	var failed *VerificationError
	if err != nil && !errors.As(err, &failed) {
		return nil, err
	}
	var source map[string]*Counts
	if facts != nil {
		source = sourceCounts(facts)
	}
	r.Packages = packageReports(source, counts.counts, r.Findings)
	if err != nil {
		return r, err
	}
	var broken []string
	for _, p := range r.Packages {
		if p.Quarantined != "" {
			broken = append(broken, p.Name)
		}
	}
	if len(broken) > 0 {
		return r, &QuarantineError{broken}
	}
	return r, nil
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

func counting(blobs iter.Seq2[declcfg.Blob, error], counts *outputCounts, progress func(Step, int, string)) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		n := 0
		for b, err := range blobs {
			if err == nil {
				counts.add(b)
			}
			if p, ok := b.(*declcfg.Package); ok && progress != nil {
				n++
				progress(StepWrite, n, p.Name)
			}
			if !yield(b, err) {
				return
			}
		}
	}
}
