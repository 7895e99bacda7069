package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/library"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/migrate/jobs"
	"github.com/operator-bindery/bindery/mirror"
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

// readListFlags reads the flags of a list of migrations.
func (p *program) readListFlags(c *cli.Context) (listFlags, error) {
	caches, err := serveCaches(c)
	if err == nil {
		err = p.prepareSigning(c, target{})
	}
	var shard mirror.Shard
	if err == nil {
		shard, err = readShard(c)
	}
	var names []string
	for _, k := range caches {
		names = append(names, string(k))
	}
	return listFlags{
		file: c.String("from-file"), reportDir: c.String("report-dir"), outDir: c.String("out-dir"),
		results: c.String("results"), shard: shard,
		push: c.Bool("push"), load: c.Bool("load"), keepGoing: c.Bool("keep-going"), overwrite: c.Bool("overwrite"),
		base: c.String("binary-image"), cache: strings.Join(names, ","), copy: p.copyOptions(c),
	}, err
}

// migrationList is the state of --from-file.
type migrationList struct {
	p     *program
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
func (p *program) migrateList(c *cli.Context, m *migration) (err error) {
	if c.NArg() > 0 {
		return cmdline.Usagef("accepts %d arg(s) with --from-file, received %d", 0, c.NArg())
	}
	single := []string{"tag", "if-digest", "previous", "report", "digest-file", "iid-file", "image-refs",
		"metadata-file"}
	for _, flag := range single {
		if c.IsSet(flag) {
			return cmdline.Usagef(
				"--%s cannot be combined with --from-file: the list names the outputs, and --report-dir and "+
					"--results the reports", flag)
		}
	}
	if err := checkNoDocuments(c, "with --from-file, which writes directories"); err != nil {
		return err
	}
	if len(m.outputs) > 0 {
		return cmdline.Usagef("--output %q cannot be combined with --from-file: the list names the outputs",
			m.outputs[0])
	}
	l := &migrationList{p: p, m: m}
	if l.flags, err = p.readListFlags(c); err != nil {
		return err
	}
	if l.lines, err = l.read(c.Context); err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return l.printPlan()
	}
	if results := l.flags.results; results != "-" {
		var catalogs []string
		for i := range l.lines {
			catalogs = append(catalogs, l.lines[i].Source, l.lines[i].Directory)
		}
		if err := checkResult("results", results, catalogs...); err != nil {
			return err
		}
	}
	atOnce := min(listJobs, runtime.GOMAXPROCS(0))
	if c.IsSet("jobs") {
		if atOnce = c.Int("jobs"); atOnce == 0 {
			atOnce = runtime.GOMAXPROCS(0)
		}
	}
	l.inner = max(1, runtime.GOMAXPROCS(0)/atOnce)
	settings, err := l.settings(c.Context)
	if err != nil {
		return err
	}
	work, err := images.NewWorkspace(c.Context, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	p.embedded.CacheLayers(work.Dir())
	l.progress = p.task()
	outcomes, err := jobs.Run(c.Context, l.lines, jobs.Options{
		Dir: l.dir, Part: l.part, Jobs: atOnce, KeepGoing: l.flags.keepGoing, Verify: m.o.Verify,
		Overwrite: l.flags.overwrite,
		Settings:  settings, Tool: version.Release(), Images: m.o.Render.Images,
		Migrate: l.migrate, Done: l.report,
		Class: func(err error) int { return int(cmdline.Classify(withClass(err))) },
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
	return errors.Join(p.saveLock(), l.sumUp(c.Context, outcomes))
}

// read reads the list and determines the directory of reports.
func (l *migrationList) read(ctx context.Context) ([]jobs.Line, error) {
	file := l.flags.file
	l.dir = l.flags.reportDir
	in, name, err := l.p.openInput(ctx, file)
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
	lines, err := jobs.Parse(in, name, jobs.ListOptions{OutDir: l.flags.outDir, Transports: transports,
		Image: l.destinations})
	if err != nil {
		return nil, err
	}
	reports, err := jobs.Resolve(l.dir)
	if err != nil {
		return nil, fmt.Errorf("--report-dir: %w", err)
	}
	for _, line := range lines {
		if line.Directory == "" {
			continue
		}
		if err := checkApart(line.Directory, reports); err != nil {
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

// destinations returns the destinations of the image of a line, as -t, --push, --load and --output determine them for a
// single migration.
func (l *migrationList) destinations(names []string,
	given []transport.Destination) ([]string, []transport.Destination, error) {
	t := target{}
	for _, name := range names {
		name, err := checkName(name)
		if err != nil {
			return nil, nil, err
		}
		t.names = append(t.names, name)
	}
	out := slices.Clone(given)
	for _, name := range t.names {
		if l.flags.load {
			out = append(out, library.InStore(name))
		}
		switch {
		case l.flags.push:
			d, err := transports.Parse("docker://" + name)
			if err != nil {
				return nil, nil, err
			}
			out = append(out, d)
		case len(given) == 0 && !l.flags.load:
			_, tag := splitName(name)
			out = append(out,
				transport.Destination{Transport: transport.OCI, Path: filepath.Join(l.flags.outDir, layoutName(name)),
					Name: tag})
		}
	}
	for _, d := range out {
		if err := checkRegistry(d); err != nil {
			return nil, nil, err
		}
		t.destinations = append(t.destinations, t.withNames(d)...)
	}
	return t.names, t.destinations, nil
}

// migrate runs one line.
func (l *migrationList) migrate(ctx context.Context, t *jobs.Task) (_ *migrate.Report, err error) {
	o := l.m.o
	o.Report, o.Replace = true, t.Replace
	o.Render.Jobs, o.Render.Opened = l.inner, nil
	o.Render.Warn = func(pos declcfg.Position, text string) {
		if where := pos.String(); where != "" {
			text = where + ": " + text
		}
		l.p.log.Warn(fmt.Sprintf("line %d: %s", t.Number, text))
	}
	if len(t.Destinations) == 0 {
		return l.prepare(ctx, t, t.Directory, o,
			func(p *migrate.Prepared) error { return t.Prepared(ctx, p.Dir(), "", p.Report) })
	}
	if err := l.m.spec.CheckPlatforms(ctx, t.Image, o); err != nil {
		return nil, err
	}
	check, err := l.p.pushCheck(ctx, t.Destinations, l.flags.copy)
	if err != nil {
		return nil, err
	}
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
			indeximage.Migrated{From: t.Image, Work: work.Dir(), Jobs: l.inner, Warn: l.p.warnAt})
		if err != nil {
			return withServerHint(err)
		}
		defer func() { err = errors.Join(err, image.Close()) }()
		if err := t.Prepared(ctx, p.Dir(), image.Digest.String(), p.Report); err != nil {
			return err
		}
		co := l.flags.copy
		co.Checked = check
		// images.Copy and not [build.Image.Copy]: that may rebuild the image with another digest than the recorded one.
		results, err := images.Copy(ctx, image.Store(), image.Top(), t.Destinations, co)
		p.Report.Images = target{names: t.Names}.references(image, results)
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
