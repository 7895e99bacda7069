package migrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/hint"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/migrate/jobs"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/sqlite"
	"github.com/operator-bindery/bindery/supply/publish"
)

// listJobs is the default number of concurrent migrations of a list. Each needs memory.
const listJobs = 2

// listFlags are the flags about the migrations of a list.
type listFlags struct {
	file, reportDir, outDir, results string
	shard                            mirror.Shard
	push, load, keepGoing, overwrite bool
	base, cache                      string // --binary-image and --cache, which are part of the settings
	copy                             images.CopyOptions
}

// listFlags reads the flags of a list of migrations.
func (m *migration) listFlags(ctx context.Context, p *option.Session) (listFlags, error) {
	copying := m.CopyOptions(p)
	caches, err := m.ServeCaches()
	if err == nil {
		copying.Attachments, err = m.Signing.Attachments(ctx, p, publish.Target{})
	}
	var shard mirror.Shard
	if err == nil {
		shard, err = option.ReadShard(m.shard)
	}
	var names []string
	for _, k := range caches {
		names = append(names, string(k))
	}
	return listFlags{
		file: m.list, reportDir: m.reportDir, outDir: m.dir, results: m.results, shard: shard,
		push: m.Push, load: m.Load, keepGoing: m.keepGoing, overwrite: m.overwrite,
		base: m.BaseImage, cache: strings.Join(names, ","), copy: copying,
	}, err
}

// migrationList is the state of --from-file.
type migrationList struct {
	p     *option.Session
	m     *migration
	flags listFlags
	lines []jobs.Line
	dir   string // of the reports
	inner int    // concurrency inside one migration
	// part names the part of the list that is done; empty for all of it.
	part     string
	ended    int
	progress *cmdline.Progress
}

// migrateList runs the migrations of a list.
func migrateList(ctx context.Context, p *option.Session, m *migration, args []string) (err error) {
	if len(args) > 0 {
		return cmdline.Usagef("accepts %d arg(s) with --from-file, received %d", 0, len(args))
	}
	single := []string{"tag", "if-digest", "previous", "report", "digest-file", "iid-file", "image-refs",
		"metadata-file"}
	for _, flag := range single {
		if p.Given(flag) {
			return cmdline.Usagef(
				"--%s cannot be combined with --from-file: the list names the outputs, and --report-dir and "+
					"--results the reports", flag)
		}
	}
	if err := option.CheckNoDocuments(p, "with --from-file, which writes directories"); err != nil {
		return err
	}
	if len(m.outputs) > 0 {
		return cmdline.Usagef("--to %q cannot be combined with --from-file: the list names the outputs",
			m.outputs[0])
	}
	l := &migrationList{p: p, m: m}
	if l.flags, err = m.listFlags(ctx, p); err != nil {
		return err
	}
	if l.lines, err = l.read(ctx); err != nil {
		return err
	}
	if m.DryRun {
		return l.printPlan()
	}
	if results := l.flags.results; results != "-" {
		var catalogs []string
		for i := range l.lines {
			catalogs = append(catalogs, l.lines[i].Source, l.lines[i].Directory)
		}
		if err := atomicfs.CheckResult("Results", results, catalogs...); err != nil {
			return err
		}
	}
	atOnce := min(listJobs, runtime.GOMAXPROCS(0))
	if p.Given("jobs") {
		if atOnce = m.Jobs; atOnce == 0 {
			atOnce = runtime.GOMAXPROCS(0)
		}
	}
	l.inner = max(1, runtime.GOMAXPROCS(0)/atOnce)
	settings, err := l.settings(ctx)
	if err != nil {
		return err
	}
	work, err := images.NewWorkspace(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	p.Embedded.CacheLayers(work.Dir())
	l.progress = p.Task()
	outcomes, err := jobs.Run(ctx, l.lines, jobs.Options{
		Dir: l.dir, Part: l.part, Jobs: atOnce, KeepGoing: l.flags.keepGoing, Verify: m.o.Verify,
		Overwrite: l.flags.overwrite,
		Settings:  settings, Tool: version.Release(), Images: m.o.Render.Images,
		Migrate: l.migrate, Done: l.report,
		Class: func(err error) int { return int(cmdline.Classify(hint.WithClass(err))) },
	})
	l.progress.Close()
	if errors.Is(err, jobs.ErrBusy) {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: l.dir, Err: err,
			Hint: "use another --report-dir for another list"}
	}
	if err != nil {
		return err
	}
	// The lock file is also written if some lines failed.
	return errors.Join(p.SaveLock(), l.sumUp(ctx, outcomes))
}

// read reads the list and determines the directory of reports.
func (l *migrationList) read(ctx context.Context) ([]jobs.Line, error) {
	file := l.flags.file
	l.dir = l.flags.reportDir
	in, name, err := l.p.OpenInput(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("--from-file: %w", err)
	}
	defer in.Close()
	if file == "-" {
		name = "standard input"
	} else if l.dir == "" {
		l.dir = filepath.Clean(file) + ".reports"
	}
	if l.dir == "" {
		return nil, cmdline.Usagef("--from-file - requires --report-dir")
	}
	lines, err := jobs.Parse(in, name, jobs.ListOptions{OutDir: l.flags.outDir, Transports: program.Transports,
		Image: l.destinations})
	if err != nil {
		return nil, err
	}
	reports, err := atomicfs.Resolve(l.dir)
	if err != nil {
		return nil, fmt.Errorf("--report-dir: %w", err)
	}
	for _, line := range lines {
		if line.Directory == "" {
			continue
		}
		if err := atomicfs.CheckApart(line.Directory, reports); err != nil {
			return nil, cmdline.Usagef("line %d: the report directory %q is in the output %q", line.Number, l.dir,
				line.Directory)
		}
	}
	if s := l.flags.shard; s.Count > 0 {
		l.part = fmt.Sprintf("%d-of-%d", s.Index, s.Count)
		lines = jobs.Part(lines, s.Index, s.Count)
	}
	return lines, nil
}

// destinations returns the names and the destinations of the image of a line, as those of a single migration.
func (l *migrationList) destinations(names []string, given []transport.Destination) ([]string, []transport.Destination, error) {
	t, err := publish.Destination{Tags: names, Given: given, Push: l.flags.push, Load: l.flags.load, Dir: l.flags.outDir}.
		Target(program.Transports)
	return t.Names, t.Destinations, err
}

// runMigrate runs one line.
func (l *migrationList) migrate(ctx context.Context, t *jobs.Task) (_ *migrate.Report, err error) {
	o := l.m.o
	o.Report, o.Replace = true, t.Replace
	o.Render.Jobs, o.Render.Opened = l.inner, nil
	o.Render.Warn = func(pos declcfg.Position, text string) {
		if where := pos.String(); where != "" {
			text = where + ": " + text
		}
		l.p.Log.Warn(fmt.Sprintf("line %d: %s", t.Number, text))
	}
	if len(t.Destinations) == 0 {
		return l.prepare(ctx, t, t.Directory, o,
			func(p *migrate.Prepared) error { return t.Prepared(ctx, p.Dir(), "", p.Report) })
	}
	if err := l.m.spec.CheckPlatforms(ctx, t.Image, o); err != nil {
		return nil, err
	}
	check, err := l.flags.copy.CheckPush(ctx, t.Destinations)
	if err != nil {
		return nil, err
	}
	publish.WarnOfConflicts(check, l.p.WarnOf)
	defer func() { err = errors.Join(err, check.Close(ctx)) }()
	work, err := l.flags.copy.Workspace(ctx, t.Destinations)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	out := t.Directory
	if out == "" {
		out = filepath.Join(work.Dir(), privateCatalog)
	}
	return l.prepare(ctx, t, out, o, func(p *migrate.Prepared) (err error) {
		p.Report.Output = t.Directory
		image, err := l.m.spec.Migrated(ctx, p,
			indeximage.Migrated{From: t.Image, Work: work.Dir(), Jobs: l.inner, Warn: l.p.WarnAt})
		if err != nil {
			return option.WithServerHint(err)
		}
		defer func() { err = errors.Join(err, image.Close()) }()
		co := l.flags.copy
		co.Checked = check
		results, err := publish.CopyTyped(ctx, image, !l.p.Given("format"), l.p.WarnOf, func() ([]images.Result, error) {
			if err := t.Prepared(ctx, p.Dir(), image.Digest.String(), p.Report); err != nil {
				return nil, err
			}
			// images.Copy and not [build.Image.Copy]: that may rebuild the image with another digest than the recorded one.
			return images.Copy(ctx, image.Store(), image.Top(), t.Destinations, co)
		})
		p.Report.Images = publish.References(t.Names, image, results)
		return err
	})
}

// prepare runs a migration up to complete outputs and commits it.
func (l *migrationList) prepare(ctx context.Context, t *jobs.Task, out string, o migrate.Options,
	complete func(*migrate.Prepared) error) (*migrate.Report, error) {
	p, err := o.Prepare(ctx, t.Source, out)
	if p == nil {
		return nil, err
	}
	if err != nil {
		return p.Report, err
	}
	if err := complete(p); err != nil {
		return nil, errors.Join(err, p.Discard())
	}
	if err := p.Commit(); err != nil {
		return nil, err
	}
	return p.Report, p.Partial()
}

// Report logs the result of a migration in one line.
func (l *migrationList) report(o *jobs.Outcome) {
	l.ended++
	l.progress.Set(cmdline.State{What: "migrating", Done: l.ended, All: len(l.lines), Units: "indexes"})
	text := fmt.Sprintf("[%d/%d] line %d, %s: ", l.ended, len(l.lines), o.Number, redact.Text(o.Source))
	switch o.State {
	case jobs.Failed:
		l.p.Log.Error(text + redact.Text(o.Err.Error()))
		return
	case jobs.Incomplete:
		left := o.Quarantined()
		l.p.Log.Warn(fmt.Sprintf("%s%s; skipped invalid packages (%d): %s", text, l.written(o), len(left),
			strings.Join(left, ", ")))
		return
	}
	l.p.Log.Info(text + l.written(o))
}

// written describes the outputs of a line.
func (l *migrationList) written(o *jobs.Outcome) string {
	if o.Before {
		return "was done before"
	}
	text := fmt.Sprintf("wrote %s to %s in %s", program.Count(o.Packages(), "package"), strings.Join(o.Outputs(), ", "),
		o.Took.Round(time.Millisecond))
	r := o.Written.Report
	text += sameText(r)
	for _, k := range []struct {
		kind sqlite.FindingKind
		what string
	}{{sqlite.Dropped, "dropped"}, {sqlite.Repaired, "repaired"}, {sqlite.Derived, "worked out"}} {
		if n := len(program.Findings(r.Findings, k.kind)); n > 0 {
			text += fmt.Sprintf("; %s %d", k.what, n)
		}
	}
	return text
}

// sumUp prints the results of all lines. Its error is the result of the command.
func (l *migrationList) sumUp(ctx context.Context, outcomes []jobs.Outcome) error {
	var lines bytes.Buffer
	counts := map[string]int{}
	enc := json.NewEncoder(&lines)
	enc.SetEscapeHTML(false)
	for i := range outcomes {
		o := &outcomes[i]
		r := LineResult{
			Line: o.Number, Source: redact.Text(o.Source), Outputs: o.Outputs(), Status: o.State, Before: o.Before,
			Packages: o.Packages(), Quarantined: o.Quarantined(), Repairs: o.Repairs, Report: o.Record,
			Seconds: o.Took.Seconds(),
		}
		if o.Written != nil {
			r.Image = o.Written.Image
		}
		if o.Err != nil {
			r.Error = &jobs.Failure{Class: int(cmdline.Classify(hint.WithClass(o.Err))), Message: redact.Text(o.Err.Error())}
		}
		if err := enc.Encode(r); err != nil {
			return err
		}
		counts[statusText(o)]++
		if o.Repairs > 0 {
			counts[repairedText]++
		}
	}
	results := redact.JSON(lines.Bytes())
	if file := l.flags.results; file != "" && file != "-" {
		if err := atomicfs.WriteFile(file, results, 0o666); err != nil {
			return fmt.Errorf("--results: %w", err)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if l.flags.results == "-" {
		if _, err := l.p.Stdout.Write(results); err != nil {
			return err
		}
	} else if err := l.printSummary(outcomes, counts); err != nil {
		return err
	}
	return l.verdict(counts, len(outcomes))
}

// printSummary prints the counts of results and the lines that are not done.
func (l *migrationList) printSummary(outcomes []jobs.Outcome, counts map[string]int) error {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "STATUS\tLINES\n")
	for _, s := range statuses {
		if counts[s] > 0 {
			fmt.Fprintf(w, "%s\t%d\n", s, counts[s])
		}
	}
	_ = w.Flush() // a write to memory
	head := false
	for i := range outcomes {
		o := &outcomes[i]
		if o.State == jobs.Done || o.State == jobs.NotBegun {
			continue
		}
		if !head {
			head = true
			fmt.Fprintf(w, "\nLINE\tSTATUS\tSOURCE\tREASON\tREPORT\n")
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", o.Number, o.State, printable.Cell(redact.Text(o.Source)),
			printable.Cell(redact.Text(reasonOf(o))), printable.Cell(o.Record))
	}
	_ = w.Flush() // a write to memory
	_, err := l.p.Stdout.Write(b.Bytes())
	return err
}

// verdict returns nil if everything is done.
func (l *migrationList) verdict(counts map[string]int, all int) error {
	var parts []string
	if n := counts[string(jobs.Failed)]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s failed", n, program.Count(all, "line")))
	}
	if n := counts[string(jobs.NotBegun)]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d were not started", n))
	}
	if n := counts[string(jobs.Incomplete)]; n > 0 {
		parts = append(parts, fmt.Sprintf("invalid packages were skipped in %d", n))
	}
	repaired := counts[repairedText]
	if len(parts) == 0 && repaired > 0 {
		return &cmdline.ExitStatus{Status: 4,
			Err: fmt.Errorf("repairs were made in %d of %s", repaired, program.Count(all, "line"))}
	}
	if len(parts) == 0 {
		return nil
	}
	err := &cmdline.Error{Class: cmdline.ClassInput, Object: l.flags.file,
		Err:  fmt.Errorf("%s", strings.Join(parts, ", ")),
		Hint: "run the same command again to resume"}
	status := 1
	if l.flags.keepGoing {
		status = 4
	}
	return &cmdline.ExitStatus{Status: status, Err: err}
}

// PrintPlan prints what would be done.
func (l *migrationList) printPlan() error {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "LINE\tSOURCE\tOUTPUTS\n")
	for _, line := range l.lines {
		fmt.Fprintf(w, "%d\t%s\t%s\n", line.Number, printable.Cell(redact.Text(line.Source)),
			printable.Cell(strings.Join(line.Outputs(), " ")))
	}
	_ = w.Flush() // a write to memory
	_, err := l.p.Stdout.Write(b.Bytes())
	return err
}
