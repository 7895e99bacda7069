package migrate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

// options are the flags of "migrate".
type options struct {
	option.Image
	option.Catalogs
	formats                                 cli.StringSlice // --output
	report, list, reportDir, results, shard string
	verify, keepGoing, repair, overwrite    bool
}

func (o *options) flags() []cli.Flag {
	const many = "many migrations"
	flags := []cli.Flag{
		&cli.StringSliceFlag{Name: "output", Aliases: []string{"o"}, DefaultText: "json", Destination: &o.formats,
			Usage: "`FORMAT` of the catalog (json|yaml)"},
		&cli.StringSliceFlag{Name: "to", Aliases: []string{"out-dir"}, Category: "destination", Destination: &o.To,
			Usage: "write the image to `TRANSPORT:PATH`: " + program.OutputTransports() + "; or, with --from-file, all " +
				"directories and local images below the directory PATH, also for lines without an output"},
		o.LevelFlag(""),
		&cli.StringFlag{Name: "report", Destination: &o.report,
			Usage: "write a JSON report of source and output to `FILE`; \"-\" is standard output"},
		&cli.BoolFlag{Name: "verify", Destination: &o.verify,
			Usage: "verify that the output contains everything of the source; exit status 1 if not"},
		&cli.BoolFlag{Name: "keep-going", Destination: &o.keepGoing,
			Usage: "skip invalid packages, or failing lines of a list, instead of failing"},
		&cli.BoolFlag{Name: "repair", Destination: &o.repair,
			Usage: "repair what has one unambiguous repair, such as related images that are no pull specs; " +
				"exit status 4 if something was"},
		o.CompatFlag(""),
		o.AllowEmptyFlag(""),
		&cli.StringSliceFlag{Name: "platform", Destination: &o.Platforms,
			Usage:       "`OS/ARCH` to read of a multi-platform image, and to write; can be repeated for writing",
			DefaultText: "those of the source image, else linux and this machine's architecture",
			EnvVars:     program.Env("platform"), Category: "content"},
		&cli.BoolFlag{Name: "dry-run", Usage: "run the migration without writing anything", EnvVars: program.Env("dry-run"),
			Category: "execution", Destination: &o.DryRun},
		option.JobsFlag(&o.Jobs, "work"),
		&cli.StringFlag{Name: "from-file", Destination: &o.list,
			Usage:    "run the migrations in `LIST`, one per line: SOURCE [OUT] [-> IMAGE]; \"-\" is standard input",
			Category: many},
		&cli.StringFlag{Name: "report-dir", Destination: &o.reportDir, Usage: "write a report per line to `DIR`, and resume from existing ones",
			DefaultText: "LIST.reports", Category: many},
		&cli.StringFlag{Name: "results", Destination: &o.results,
			Usage:    "write the result of each line to `FILE`, as one JSON object per line; \"-\" is standard output",
			Category: many},
		option.ShardFlag(&o.shard, many, "run part `I/N` of the list only, or job/N in a pod of an indexed job"),
		&cli.BoolFlag{Name: "overwrite", Destination: &o.overwrite,
			Usage:    "replace outputs of earlier runs if the source, the settings or the release changed",
			Category: many},
	}
	for _, f := range o.Destination.Flags() {
		if f.Names()[0] != "to" {
			flags = append(flags, f)
		}
	}
	return program.Flags(flags, o.imageFlags(), o.Images.Flags())
}

// imageFlags are those about an image, but for its destinations.
func (o *options) imageFlags() []cli.Flag {
	return program.Flags(o.Base.Flags("image"), o.Form.Flags("image"), o.Layers.Flags("image"), o.Result.Flags(),
		o.Supply.Flags(), []cli.Flag{o.CacheKeyFlag()})
}

// Command returns "migrate".
func Command(p *option.Session) *cli.Command {
	o := &options{}
	return &cli.Command{
		Name:      "migrate",
		Usage:     "migrate index databases and catalogs to catalog directories and images",
		ArgsUsage: "SRC [OUT]",
		Description: `SRC is an index database, a catalog directory, or an image of either. OUT must be absent
or empty; it is written completely or not at all. --verify reads it back and compares it with the result of
plain SQL queries on the database. --keep-going skips invalid packages, with exit status 4. --repair makes
unambiguous repairs; the report has the values before and after.

With -t or with --to TRANSPORT:PATH a catalog image is written, with or without OUT. It keeps the
labels, annotations and platforms of SRC if that is an image. Nothing is written before everything is built
and verified.

--from-file runs many migrations, and resumes an interrupted run. --shard divides a list among machines.` +
			program.Examples("bindery migrate index.db migrated --verify",
				"bindery migrate index.db migrated -o yaml --report report.json",
				"bindery migrate catalog migrated --migrate-level bundle-object-to-csv-metadata",
				"bindery migrate registry.example.com/acme/catalog:v1 migrated --verify",
				"bindery migrate index.db -t registry.example.com/acme/catalog:v2 --to oci-archive:catalog.tar "+
					"--verify --server none",
				"bindery migrate --from-file indexes.txt --to migrated --verify --keep-going",
				"bindery migrate --from-file indexes.txt --to migrated --shard 2/8"),
		Flags:  o.flags(),
		Action: p.Action(func(ctx context.Context, args []string) error { return run(ctx, p, o, args) }),
	}
}

// migration has the settings from the flags that all migrations of a command share.
type migration struct {
	*options
	o       migrate.Options
	outputs []string         // destinations of images
	dir     string           // the directory of --to
	spec    *indeximage.Spec // of images
}

// run runs one migration, or those of a list.
func run(ctx context.Context, p *option.Session, o *options, args []string) error {
	m := &migration{options: o}
	if err := m.readPlaces(); err != nil {
		return err
	}
	var err error
	m.o.Verify = o.verify
	list := p.Given("from-file")
	imaged := p.Given("tag") || len(m.outputs) > 0 || o.Push || o.Load
	if err := m.readPlatform(p, imaged || list); err != nil {
		return err
	}
	if m.o.Render, err = o.Catalogs.Options(ctx, p, &o.Images, o.Jobs, args...); err != nil {
		return err
	}
	m.o.Render.Repair = o.repair
	m.o.Render.KeepGoing, m.o.Render.Allow = o.keepGoing, option.CatalogKinds()
	if m.o.AllowEmpty, err = o.AllowsEmpty(p); err != nil {
		return err
	}
	if imaged || list {
		if m.spec, err = o.IndexSpec(ctx, p); err != nil {
			return err
		}
	}
	switch {
	case list:
		return migrateList(ctx, p, m, args)
	case m.dir != "" && len(args) == 2:
		return cmdline.Usagef("the output is given twice: %q and --to %q", args[1], m.dir)
	case (imaged || m.dir != "") && len(args) == 1:
	case len(args) != 2:
		err := cmdline.Usagef("accepts %d arg(s), received %d", 2, len(args))
		if len(args) == 1 && !p.Opm {
			err.Hint = "name an output directory, or an image with -t NAME"
		}
		return err
	}
	for _, flag := range []string{"report-dir", "results", "shard", "overwrite"} {
		if p.Given(flag) {
			return cmdline.Usagef("--%s requires --from-file", flag)
		}
	}
	return migrateOne(ctx, p, m, args, imaged)
}

// readPlaces reads the format of the catalog and where it and its images go: --output has formats, of which the last
// counts, as in opm, and was once the flag of destinations; --to has destinations of images and a directory.
func (m *migration) readPlaces() error {
	formats, err := cmdline.List(m.formats.Value())
	if err != nil {
		return err
	}
	m.o.Format = declcfg.FormatJSON
	for _, v := range formats {
		if strings.Contains(v, ":") {
			m.outputs = append(m.outputs, v)
		} else if m.o.Format, err = declcfg.ParseFormat(v); err != nil {
			return cmdline.Usagef("invalid --output value %q, expected (json|yaml)", v)
		}
	}
	places, err := cmdline.List(m.To.Value())
	if err != nil {
		return err
	}
	for _, v := range places {
		switch {
		case program.Transports.Has(v):
			m.outputs = append(m.outputs, v)
		case m.dir != "":
			return cmdline.Usagef("--to names two directories: %q and %q", m.dir, v)
		default:
			m.dir = v
		}
	}
	return nil
}

// readPlatform determines which platform of an image is read. The catalog is the same for all of them, so any
// platform is accepted if an image is written or no platform was requested.
func (m *migration) readPlatform(p *option.Session, imaged bool) error {
	if len(m.Platforms.Value()) == 0 {
		return nil
	}
	of, err := m.WrittenPlatforms()
	if err != nil {
		return err
	}
	if len(of) > 1 && !imaged {
		return cmdline.Usagef("several --platform values require an image as output: name it with -t")
	}
	p.ReadPlatform, p.ReadAny = of[0], imaged
	return nil
}

// checkMigrateOutput refuses a directory that cannot be the output.
func checkMigrateOutput(src, out string) error {
	if out == "" || filepath.Clean(out) == "." {
		return cmdline.Usagef("the output %q is the working directory, which cannot be replaced: choose another", out)
	}
	return atomicfs.CheckApart(src, out)
}

// migrateOne runs the migration in the arguments.
func migrateOne(ctx context.Context, p *option.Session, m *migration, args []string, imaged bool) (err error) {
	src, out, reportFile := args[0], m.dir, m.report
	if len(args) == 2 {
		out = args[1]
	}
	if len(args) == 2 || m.dir != "" {
		if err := checkMigrateOutput(src, out); err != nil {
			return err
		}
	}
	if reportFile != "-" {
		if err := atomicfs.CheckResult("Report", reportFile, src, out); err != nil {
			return err
		}
	} else if imaged {
		return cmdline.Usagef("--report - conflicts with the image name on standard output: name a file")
	}
	if !imaged {
		if err := option.CheckNoDocuments(p, "without an image as output: name it with -t"); err != nil {
			return err
		}
		if !m.DryRun {
			of := program.Flags(m.imageFlags(), m.Signing.Flags())
			if err := option.WithoutImage(p, of, "name the image with -t NAME"); err != nil {
				return err
			}
		}
	}
	if p.Opm {
		p.Log.Info(fmt.Sprintf("rendering index %q as file-based catalog", src))
	}
	progress := p.Progress()
	m.o.Report = reportFile != ""
	m.o.Progress = func(step migrate.Step, n, all int, pkg string) {
		progress.Set(cmdline.State{What: string(step), Done: n, All: all, Units: "packages", Now: pkg})
	}
	var report *migrate.Report
	var copied *copiedImage
	switch {
	case imaged:
		report, copied, err = migrateImage(ctx, p, m, src, out)
	case m.DryRun:
		report, err = dryRun(ctx, m, src, out)
	default:
		report, err = m.o.Run(ctx, src, out)
	}
	progress.Close()
	if report != nil && reportFile != "" {
		if rerr := p.WriteAccount("report", reportFile, report); rerr != nil {
			return p.OpmMessage(errors.Join(err, rerr))
		}
	}
	if report != nil {
		reportFindings(p, report, reportFile)
	}
	var partial *migrate.PartialError
	if err != nil && !errors.As(err, &partial) {
		err = p.OpmMessage(err)
		var reference *render.ReferenceError
		if p.Opm && errors.As(err, &reference) {
			err = fmt.Errorf("render catalog image: %w", err)
		}
		return err
	}
	if err := m.CheckEmpty(p, src, report.Written()); err != nil {
		return err
	}
	if copied != nil {
		if err := copied.out.Report(ctx, copied.result); err != nil {
			return err
		}
	}
	switch {
	case partial != nil:
		return &cmdline.ExitStatus{Status: 4, Err: partial}
	case p.Opm:
		p.Log.Info(fmt.Sprintf("wrote rendered file-based catalog to %q\n", out))
		return nil
	}
	p.Log.Info(m.done(report, out))
	return nil
}

// done returns the sentence about a finished migration.
func (m *migration) done(report *migrate.Report, out string) string {
	text := fmt.Sprintf("wrote %s to %q", program.Count(report.Written(), "package"), out)
	switch {
	case m.DryRun:
		text = fmt.Sprintf("would write %s", program.Count(report.Written(), "package"))
	case out == "":
		text = fmt.Sprintf("wrote an image of %s", program.Count(report.Written(), "package"))
	}
	return text + sameText(report)
}

// sameText describes the result of a verification.
func sameText(report *migrate.Report) string {
	v := report.Verification
	switch {
	case v == nil || !v.Same:
		return ""
	case len(program.Findings(report.Findings, sqlite.Dropped)) > 0:
		return "; verified, except for dropped data"
	case report.Repairs() > 0:
		return "; verified, except for repairs"
	}
	return "; verified"
}
