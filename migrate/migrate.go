package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

// Options configure a migration. The zero value writes JSON at the lowest level.
type Options struct {
	// Render configures how the source is read, including the migration level.
	Render render.Options
	// Format is the format of the written files; empty means JSON.
	Format declcfg.Format
	// Report requests the counts of the source in the report, which takes a second pass over a database.
	Report bool
	// Verify reads the output again and compares it with SQL queries on the database, or with the blobs of the source
	// catalog.
	Verify bool
	// AllowEmpty allows a catalog without packages, which is otherwise a *[declcfg.EmptyError].
	AllowEmpty bool
	// Replace replaces an existing output directory, whatever it contains.
	Replace bool
	// Progress, unless nil, is called for each package before it is written and before it is verified; calls do not
	// overlap. Packages are counted from 1; all is their number, or 0 if it is not known.
	Progress func(step Step, n, all int, pkg string)
}

// Step is a step of a migration.
type Step string

// The steps of a migration.
const (
	StepWrite  Step = "migrating"
	StepVerify Step = "verifying"
)

// PartialError reports that the output differs from the source: invalid packages were left out (see
// render.Options.KeepGoing) or repairs were made (see render.Options.Repair).
type PartialError struct {
	Packages []string // the packages that were left out
	Repairs  int
}

func (e *PartialError) Error() string {
	var parts []string
	if len(e.Packages) > 0 {
		parts = append(parts,
			fmt.Sprintf("invalid packages were skipped (%d): %s", len(e.Packages), strings.Join(e.Packages, ", ")))
	}
	if e.Repairs > 0 {
		parts = append(parts, fmt.Sprintf("repairs were made (%d)", e.Repairs))
	}
	return strings.Join(parts, "; ")
}

// verificationError reports that the directory does not hold the content of the source. Nothing was written.
type verificationError struct {
	Differences []difference // differences without a known reason
}

func (e *verificationError) Error() string {
	d := e.Differences[0]
	where := fmt.Sprintf("package %q", d.Package)
	if d.Channel != "" {
		where += fmt.Sprintf(", channel %q", d.Channel)
	}
	if d.Bundle != "" {
		where += fmt.Sprintf(", bundle %q", d.Bundle)
	}
	return fmt.Sprintf("verification failed: %d differences between the source and what was written, the first: %s: "+
		"%s: %q in the source, %q written",
		len(e.Differences), where, d.What, d.Source, d.Output)
}

// Run migrates a database, a catalog directory or an image of either to the directory out, which must be absent or
// empty unless [Options.Replace] is set. On every error except a *[PartialError], out is unchanged. A report is also
// returned with that error, a *[verificationError] and a *[declcfg.EmptyError].
func (o Options) Run(ctx context.Context, src, out string) (*Report, error) {
	p, err := o.Prepare(ctx, src, out)
	if p == nil {
		return nil, err
	}
	if err != nil {
		return p.Report, err
	}
	if err := p.Commit(); err != nil {
		return nil, err
	}
	return p.Report, p.Partial()
}

// Prepared is a migration whose output is complete and, if requested, verified, but not yet renamed to its final name.
// The caller may build an image of it first, and must then commit or discard it.
type Prepared struct {
	// Report describes the migration.
	Report *Report
	staged *declcfg.StagedFS
}

// Prepare does a migration up to the final rename, see [Options.Run]. With a *[verificationError] or a
// *[declcfg.EmptyError] the result has a report and cannot be committed; with any other error it is nil.
func (o Options) Prepare(ctx context.Context, src, out string) (_ *Prepared, err error) {
	o.Format = cmp.Or(o.Format, declcfg.FormatJSON)
	level, err := edit.ParseLevel(string(o.Render.Level))
	if err != nil {
		return nil, err
	}
	r := &Report{Source: redact.Text(src), Output: out, Level: string(level), Format: string(o.Format),
		Compat: string(o.Render.Compat), Findings: []sqlite.Finding{}}
	if !o.Replace {
		if err := atomicfs.CheckEmpty(out); err != nil {
			return nil, err
		}
	}
	m := &migration{o: o, r: r}
	if kind, err := render.Classify(src); err == nil {
		m.database = kind == render.Database
	}
	if m.account = o.Render.Account; m.account == nil {
		m.account = &render.Account{}
	}
	m.o.Render.Reuse, m.o.Render.Facts, m.o.Render.Account = true, o.Report || o.Verify, m.account
	blobs, err := m.o.Render.Render(ctx, src)
	if err != nil {
		return nil, err
	}
	blobs, stop, err := begun(blobs)
	if err != nil {
		return nil, err
	}
	defer stop()
	staged, err := declcfg.StageFS(ctx, out, o.Format, m.counting(blobs), o.Replace)
	if err != nil {
		return nil, err
	}
	p := &Prepared{Report: r, staged: staged}
	err = m.written(ctx, staged.Dir())
	if err == nil {
		return p, nil
	}
	err = errors.Join(err, p.Discard())
	var failed *verificationError
	var empty *declcfg.EmptyError
	if errors.As(err, &failed) || errors.As(err, &empty) {
		return p, err
	}
	return nil, err
}

// Dir is the temporary directory with the output.
func (p *Prepared) Dir() string { return p.staged.Dir() }

// Commit renames the output to its final name. After an error the previous content is in place.
func (p *Prepared) Commit() error { return p.staged.Commit() }

// Discard removes the output. After Commit it does nothing.
func (p *Prepared) Discard() error { return p.staged.Discard() }

// Partial returns the *[PartialError] of a migration; nil if the catalog was written unchanged.
func (p *Prepared) Partial() error { return p.Report.partial() }

// partial returns the *[PartialError] of a report; nil if the catalog was written unchanged.
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

// migration is the state of one migration.
type migration struct {
	o        Options
	r        *Report
	account  *render.Account
	counts   outputCounts
	database bool // the source is a database; set later for images
	blobs    blobSums
}

// sums reports whether the source is a catalog, which is verified by digests of its blobs.
func (m *migration) sums() bool {
	images := m.account.Images
	return m.o.Verify && !m.database && (len(images) == 0 || images[0].Kind != render.DatabaseImage)
}

// accountFor copies the account of the rendering into the report.
func (m *migration) accountFor() {
	a := m.account
	for _, i := range a.Images {
		m.r.Image = i.Digest
	}
	m.r.SchemaVersion = a.SchemaVersion
	for _, r := range a.Repairs {
		m.r.Findings = append(m.r.Findings, sqlite.RepairFinding(r))
	}
	for _, left := range a.LeftOut {
		m.r.Findings = append(m.r.Findings,
			sqlite.Finding{Kind: sqlite.Quarantined, Package: left.Package, Reason: left.Reason.Error()})
	}
	m.r.Findings = append(m.r.Findings, a.Findings...)
}

// written verifies the complete directory and completes the report.
func (m *migration) written(ctx context.Context, dir string) error {
	m.accountFor()
	err := m.verify(ctx, dir)
	var failed *verificationError
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	var source map[string]*Counts
	if m.account.Facts != nil {
		source = sourceCounts(m.account.Facts)
	}
	m.r.Packages = packageReports(source, m.counts.counts, m.r.Findings)
	if err == nil && m.r.Written() == 0 && !m.o.AllowEmpty {
		return &declcfg.EmptyError{Catalog: m.r.Source, Err: m.r.partial()}
	}
	return err
}

func (m *migration) verify(ctx context.Context, dir string) (err error) {
	switch {
	case !m.o.Verify:
	case m.account.Facts != nil:
		m.r.Verification, err = verify(ctx, dir, m.account.Facts, m.r.Findings, m.o)
	default:
		m.r.Verification, err = verifyBlobs(ctx, dir, m.blobs, m.r.Findings, m.o)
	}
	return err
}

// begun reads the first blob. A database is validated completely before that, so that an invalid one is refused before
// anything is written.
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
				if m.sums() {
					m.blobs.add(b)
				}
			}
			if p, ok := b.(*declcfg.Package); ok && m.o.Progress != nil {
				n++
				m.o.Progress(StepWrite, n, m.account.Packages, p.Name)
			}
			if !yield(b, err) {
				return
			}
		}
	}
}
