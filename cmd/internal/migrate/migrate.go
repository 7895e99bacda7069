package migrate

import (
	"cmp"
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
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

func Command(p *option.Session) *cli.Command {
	const many = "many migrations"
	flags := []cli.Flag{
		&cli.StringSliceFlag{Name: "output", Aliases: []string{"o"}, DefaultText: "json",
			Usage: "`FORMAT` of the catalog (json|yaml)"},
		&cli.StringSliceFlag{Name: "to", Aliases: []string{"out-dir"}, Category: "destination",
			Usage: "write the image to `TRANSPORT:PATH`: " + program.OutputTransports() + "; or, with --from-file, all " +
				"directories and local images below the directory PATH, also for lines without an output"},
		program.MigrateLevelFlag(""),
		&cli.StringFlag{Name: "report",
			Usage: "write a JSON report of source and output to `FILE`; \"-\" is standard output"},
		&cli.BoolFlag{Name: "verify",
			Usage: "verify that the output contains everything of the source; exit status 1 if not"},
		&cli.BoolFlag{Name: "keep-going",
			Usage: "skip invalid packages, or failing lines of a list, instead of failing"},
		&cli.BoolFlag{Name: "repair",
			Usage: "repair what has one unambiguous repair, such as related images that are no pull specs; " +
				"exit status 4 if something was"},
		program.CompatFlag(),
		option.AllowEmptyFlag(""),
		&cli.StringSliceFlag{Name: "platform",
			Usage:       "`OS/ARCH` to read of a multi-platform image, and to write; can be repeated for writing",
			DefaultText: "those of the source image, else linux and this machine's architecture",
			EnvVars:     program.Env("platform"), Category: "content"},
		&cli.BoolFlag{Name: "dry-run", Usage: "run the migration without writing anything", EnvVars: program.Env("dry-run"),
			Category: "execution"},
		program.InCategory(program.JobsFlag(), "work"),
		&cli.StringFlag{Name: "from-file",
			Usage:    "run the migrations in `LIST`, one per line: SOURCE [OUT] [-> IMAGE]; \"-\" is standard input",
			Category: many},
		&cli.StringFlag{Name: "report-dir", Usage: "write a report per line to `DIR`, and resume from existing ones",
			DefaultText: "LIST.reports", Category: many},
		&cli.StringFlag{Name: "results",
			Usage:    "write the result of each line to `FILE`, as one JSON object per line; \"-\" is standard output",
			Category: many},
		option.ShardFlag(many, "run part `I/N` of the list only, or job/N in a pod of an indexed job"),
		&cli.BoolFlag{Name: "overwrite",
			Usage:    "replace outputs of earlier runs if the source, the settings or the release changed",
			Category: many},
	}
	for _, f := range option.DestinationFlags() {
		if f.Names()[0] != "to" {
			flags = append(flags, f)
		}
	}
	flags = append(append(append(flags, option.BinaryImageFlags("image")...), option.FormFlags("image")...), option.LayerFlags("image")...)
	flags = append(flags, option.ResultFlags()...)
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
		Flags:  append(flags, option.ImageFlags()...),
		Action: func(c *cli.Context) error { return runMigrate(p, c) },
	}
}

// migration has the settings from the flags that all migrations of a command share.
type migration struct {
	o       migrate.Options
	outputs []string         // destinations of images
	dir     string           // the directory of --to
	spec    *indeximage.Spec // of images
}

// runMigrate runs one migration, or those of a list.
func runMigrate(p *option.Session, c *cli.Context) error {
	m := &migration{}
	if err := m.readPlaces(c); err != nil {
		return err
	}
	var err error
	m.o.Verify = c.Bool("verify")
	list := c.IsSet("from-file")
	imaged := c.IsSet("tag") || len(m.outputs) > 0 || c.Bool("push") || c.Bool("load")
	if err := migratePlatform(p, c, imaged || list); err != nil {
		return err
	}
	if m.o.Render, err = p.RenderOptions(c); err != nil {
		return err
	}
	m.o.Render.Repair = c.Bool("repair")
	m.o.Render.KeepGoing, m.o.Render.Allow = c.Bool("keep-going"), option.CatalogKinds()
	if m.o.AllowEmpty, err = p.AllowsEmpty(c); err != nil {
		return err
	}
	if imaged || list {
		if m.spec, err = p.ImageSpec(c); err != nil {
			return err
		}
	}
	switch {
	case list:
		return migrateList(p, c, m)
	case m.dir != "" && c.NArg() == 2:
		return cmdline.Usagef("the output is given twice: %q and --to %q", c.Args().Get(1), m.dir)
	case (imaged || m.dir != "") && c.NArg() == 1:
	case c.NArg() != 2:
		err := cmdline.Usagef("accepts %d arg(s), received %d", 2, c.NArg())
		if c.NArg() == 1 && !p.Opm {
			err.Hint = "name an output directory, or an image with -t NAME"
		}
		return err
	}
	for _, flag := range []string{"report-dir", "results", "shard", "overwrite"} {
		if c.IsSet(flag) {
			return cmdline.Usagef("--%s requires --from-file", flag)
		}
	}
	return migrateOne(p, c, m, imaged)
}

// readPlaces reads the format of the catalog and where it and its images go: --output has formats, of which the last
// counts, as in opm, and was once the flag of destinations; --to has destinations of images and a directory.
func (m *migration) readPlaces(c *cli.Context) error {
	formats, err := cmdline.List(c.StringSlice("output"))
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
	places, err := cmdline.List(c.StringSlice("to"))
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

// migratePlatform determines which platform of an image is read. The catalog is the same for all of them, so any
// platform is accepted if an image is written or no platform was requested.
func migratePlatform(p *option.Session, c *cli.Context, imaged bool) error {
	if len(c.StringSlice("platform")) == 0 {
		return nil
	}
	of, err := option.Platforms(p, c)
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
	return option.CheckApart(src, out)
}

// migrateOne runs the migration in the arguments.
func migrateOne(p *option.Session, c *cli.Context, m *migration, imaged bool) (err error) {
	src, out, reportFile := c.Args().Get(0), cmp.Or(m.dir, c.Args().Get(1)), c.String("report")
	if c.NArg() == 2 || m.dir != "" {
		if err := checkMigrateOutput(src, out); err != nil {
			return err
		}
	}
	if reportFile != "-" {
		if err := option.CheckResult("report", reportFile, src, out); err != nil {
			return err
		}
	} else if imaged {
		return cmdline.Usagef("--report - conflicts with the image name on standard output: name a file")
	}
	if !imaged {
		if err := option.CheckNoDocuments(p, "without an image as output: name it with -t"); err != nil {
			return err
		}
		if !c.Bool("dry-run") {
			of := program.Flags(option.BinaryImageFlags("image"), option.FormFlags("image"), option.LayerFlags("image"), option.ResultFlags(),
				option.SignFlags())
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
	if imaged || c.Bool("dry-run") {
		report, copied, err = migrateImage(p, c, m, src, out, imaged)
	} else {
		report, err = migrate.Run(c.Context, src, out, m.o)
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
	if err := p.CheckEmpty(c, src, report.Written()); err != nil {
		return err
	}
	if copied != nil {
		if err := p.Report(c, copied.target, copied.image, copied.results); err != nil {
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
	p.Log.Info(migrated(p, c, report, out))
	return nil
}

// migrated returns the sentence about a finished migration.
func migrated(p *option.Session, c *cli.Context, report *migrate.Report, out string) string {
	text := fmt.Sprintf("wrote %s to %q", program.Count(report.Written(), "package"), out)
	switch {
	case c.Bool("dry-run"):
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
