package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/jobs"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/migrate"
)

// listJobs is how many migrations of a list are done at a time unless --jobs says otherwise. Each takes memory of its own.
const listJobs = 2

// migrationList is the work of --from-file.
type migrationList struct {
	p     *program
	c     *cli.Context
	m     *migration
	lines []jobs.Line
	dir   string // of the reports
	inner int    // pieces of work at once in one migration
	ended int
	// status shows on a terminal how far the list is.
	status *cmdline.Status
}

// migrateList does the migrations of a list.
func (p *program) migrateList(c *cli.Context, m *migration) (err error) {
	if c.NArg() > 0 {
		return cmdline.Usagef("accepts %d arg(s) with --from-file, received %d", 0, c.NArg())
	}
	single := []string{"tag", "if-digest", "previous", "report", "digest-file", "iid-file", "image-refs", "metadata-file"}
	for _, flag := range single {
		if c.IsSet(flag) {
			return cmdline.Usagef("--%s is for one migration, and --from-file for many: the list says where each goes, and --report-dir and --results have the accounts", flag)
		}
	}
	if len(m.outputs) > 0 {
		return cmdline.Usagef("--output %q is for one migration, and --from-file for many: the list says where each goes", m.outputs[0])
	}
	l := &migrationList{p: p, c: c, m: m}
	if l.lines, err = l.read(); err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return l.printPlan()
	}
	if results := c.String("results"); results != "-" {
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
	settings, err := l.settings()
	if err != nil {
		return err
	}
	work, err := images.NewWorkspace(c.Context, nil, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	m.image.o.ServerLayers = build.NewServerLayers(work.Dir())
	l.status = cmdline.NewStatus(p.stderr, p.bars)
	outcomes, err := jobs.Run(c.Context, l.lines, jobs.Options{
		Dir: l.dir, Jobs: atOnce, KeepGoing: c.Bool("keep-going"), Verify: m.o.Verify, Overwrite: c.Bool("overwrite"),
		Settings: settings, Tool: version.Release, Images: m.o.Render.Images,
		Migrate: l.migrate, Done: l.tell,
		Class: func(err error) int { return int(cmdline.Classify(withClass(err))) },
	})
	l.status.Close()
	if errors.Is(err, jobs.ErrBusy) {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: l.dir, Err: err, Hint: "--report-dir names another directory, for another list"}
	}
	if err != nil {
		return err
	}
	// What images stood for is recorded also where some lines failed.
	return errors.Join(p.saveLock(), l.sumUp(outcomes))
}

// read reads the list, and settles where the reports go.
func (l *migrationList) read() ([]jobs.Line, error) {
	file := l.c.String("from-file")
	l.dir = l.c.String("report-dir")
	in, name, err := l.p.openInput(file)
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
		return nil, cmdline.Usagef("--from-file -: --report-dir DIR is needed, which a file gives its name to")
	}
	lines, err := jobs.Parse(in, name, jobs.ListOptions{OutDir: l.c.String("out-dir"), Image: l.destinations})
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
			return nil, cmdline.Usagef("line %d: the directory for the reports %q is or lies in the output %q", line.Number, l.dir, line.Directory)
		}
	}
	return lines, nil
}

// destinations are the places of an image that a line names, as -t, --push, --load and --output say them for one migration.
func (l *migrationList) destinations(names []string, given []images.Destination) ([]string, []images.Destination, error) {
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
		if l.c.Bool("load") {
			out = append(out, images.InStore(name))
		}
		switch {
		case l.c.Bool("push"):
			d, err := images.Parse("docker://" + name)
			if err != nil {
				return nil, nil, err
			}
			out = append(out, d)
		case len(given) == 0 && !l.c.Bool("load"):
			_, tag := splitName(name)
			out = append(out, images.Destination{Transport: images.OCI, Path: filepath.Join(l.c.String("out-dir"), layoutName(name)), Name: tag})
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

// migrate does one line.
func (l *migrationList) migrate(ctx context.Context, t *jobs.Task) (_ *migrate.Report, err error) {
	o := l.m.o
	o.Report, o.Replace = true, t.Replace
	o.Render.Jobs, o.Render.Pulled = l.inner, nil
	o.Render.Warn = func(pos declcfg.Position, text string) {
		if where := pos.String(); where != "" {
			text = where + ": " + text
		}
		l.p.log.Warn(fmt.Sprintf("line %d: %s", t.Number, text))
	}
	if len(t.Destinations) == 0 {
		o.Then = func(ctx context.Context, dir string, r *migrate.Report) error { return t.Prepared(ctx, dir, "", r) }
		return migrate.Run(ctx, t.Source, t.Directory, o)
	}
	if err := l.m.image.sameOnAll(ctx, l.m, t.Image); err != nil {
		return nil, err
	}
	check, err := l.p.checkPush(ctx, t.Destinations, l.c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, check.Close(ctx)) }()
	work, err := images.NewWorkspace(ctx, t.Destinations, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	out := t.Directory
	if out == "" {
		out = filepath.Join(work.Dir(), privateCatalog)
	}
	o.Then = func(ctx context.Context, dir string, r *migrate.Report) (err error) {
		r.Output = t.Directory
		image, err := l.m.image.assemble(ctx, dir, work.Dir(), t.Image, l.inner, nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, image.Close()) }()
		if err := t.Prepared(ctx, dir, image.Digest.String(), r); err != nil {
			return err
		}
		results, err := images.Copy(ctx, image.Reference(), t.Destinations, images.CopyOptions{
			Registry: registryOptions(l.c), Retries: l.c.Int("retries"), Timeout: l.c.Duration("timeout"),
			Events: l.p.warnEvent, Platform: storedPlatform(l.c), Checked: check,
		})
		r.Images = target{names: t.Names}.references(image, results)
		return err
	}
	return migrate.Run(ctx, t.Source, out, o)
}
