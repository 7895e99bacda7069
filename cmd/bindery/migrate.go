package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

func (p *program) migrateCommand() *cli.Command {
	const many = "many migrations"
	flags := []cli.Flag{
		&cli.StringSliceFlag{Name: "output", Aliases: []string{"o"}, DefaultText: "json",
			Usage: "`FORMAT` of the catalog (json|yaml), or the destination TRANSPORT:PATH of an image: " +
				outputTransports()},
		migrateLevelFlag(""),
		&cli.StringFlag{Name: "report",
			Usage: "write a JSON report of source and output to `FILE`; \"-\" is standard output"},
		&cli.BoolFlag{Name: "verify",
			Usage: "verify that the output contains everything of the source; exit status 1 if not"},
		&cli.BoolFlag{Name: "keep-going",
			Usage: "skip invalid packages, or failing lines of a list, instead of failing"},
		&cli.BoolFlag{Name: "repair",
			Usage: "repair what has one unambiguous repair, such as related images that are no pull specs; " +
				"exit status 4 if something was"},
		compatFlag(),
		allowEmptyFlag(""),
		&cli.StringSliceFlag{Name: "platform",
			Usage:       "`OS/ARCH` to read of a multi-platform image, and to write; can be repeated for writing",
			DefaultText: "those of the source image, else linux and this machine's architecture",
			EnvVars:     env("platform"), Category: "content"},
		&cli.BoolFlag{Name: "dry-run", Usage: "run the migration without writing anything", EnvVars: env("dry-run"),
			Category: "execution"},
		inCategory(jobsFlag(), "work"),
		&cli.StringFlag{Name: "from-file",
			Usage:    "run the migrations in `LIST`, one per line: SOURCE [OUT] [-> IMAGE]; \"-\" is standard input",
			Category: many},
		&cli.StringFlag{Name: "out-dir",
			Usage:    "write all directories and local images below `DIR`, also for lines without an output",
			Category: many},
		&cli.StringFlag{Name: "report-dir", Usage: "write a report per line to `DIR`, and resume from existing ones",
			DefaultText: "LIST.reports", Category: many},
		&cli.StringFlag{Name: "results",
			Usage:    "write the result of each line to `FILE`, as one JSON object per line; \"-\" is standard output",
			Category: many},
		shardFlag(many, "run part `I/N` of the list only, or job/N in a pod of an indexed job"),
		&cli.BoolFlag{Name: "overwrite",
			Usage:    "replace outputs of earlier runs if the source, the settings or the release changed",
			Category: many},
	}
	for _, f := range destinationFlags() {
		if f.Names()[0] != "output" {
			flags = append(flags, f)
		}
	}
	flags = append(append(append(flags, binaryImageFlags("image")...), formFlags("image")...), layerFlags("image")...)
	flags = append(flags, resultFlags()...)
	return &cli.Command{
		Name:      "migrate",
		Usage:     "migrate index databases and catalogs to catalog directories and images",
		ArgsUsage: "SRC [OUT]",
		Description: `SRC is an index database, a catalog directory, or an image of either. OUT must be absent
or empty; it is written completely or not at all. --verify reads it back and compares it with the result of
plain SQL queries on the database. --keep-going skips invalid packages, with exit status 4. --repair makes
unambiguous repairs; the report has the values before and after.

With -t or with TRANSPORT:PATH for --output a catalog image is written, with or without OUT. It keeps the
labels, annotations and platforms of SRC if that is an image. Nothing is written before everything is built
and verified.

--from-file runs many migrations, and resumes an interrupted run. --shard divides a list among machines.` +
			examples("bindery migrate index.db migrated --verify",
				"bindery migrate index.db migrated -o yaml --report report.json",
				"bindery migrate catalog migrated --migrate-level bundle-object-to-csv-metadata",
				"bindery migrate registry.example.com/acme/catalog:v1 migrated --verify",
				"bindery migrate index.db -t registry.example.com/acme/catalog:v2 --output oci-archive:catalog.tar "+
					"--verify --server none",
				"bindery migrate --from-file indexes.txt --out-dir migrated --verify --keep-going",
				"bindery migrate --from-file indexes.txt --out-dir migrated --shard 2/8"),
		Flags:  append(flags, imageFlags()...),
		Action: p.migrate,
	}
}

// migration has the settings from the flags that all migrations of a command share.
type migration struct {
	o       migrate.Options
	outputs []string         // destinations of images
	spec    *indeximage.Spec // of images
}

// migrate runs one migration, or those of a list.
func (p *program) migrate(c *cli.Context) error {
	m := &migration{}
	format, outputs, err := migrateOutput(c)
	if err != nil {
		return err
	}
	m.o.Format, m.outputs = format, outputs
	m.o.Verify = c.Bool("verify")
	list := c.IsSet("from-file")
	imaged := c.IsSet("tag") || len(outputs) > 0 || c.Bool("push") || c.Bool("load")
	if err := p.migratePlatform(c, imaged || list); err != nil {
		return err
	}
	if m.o.Render, err = p.renderOptions(c); err != nil {
		return err
	}
	m.o.Render.Repair = c.Bool("repair")
	m.o.Render.KeepGoing, m.o.Render.Allow = c.Bool("keep-going"), catalogKinds()
	if m.o.AllowEmpty, err = p.allowsEmpty(c); err != nil {
		return err
	}
	if imaged || list {
		if m.spec, err = p.imageSpec(c); err != nil {
			return err
		}
	}
	switch {
	case list:
		return p.migrateList(c, m)
	case imaged && c.NArg() == 1:
	case c.NArg() != 2:
		err := cmdline.Usagef("accepts %d arg(s), received %d", 2, c.NArg())
		if c.NArg() == 1 && !p.opm {
			err.Hint = "name an output directory, or an image with -t NAME"
		}
		return err
	}
	for _, flag := range []string{"out-dir", "report-dir", "results", "shard", "overwrite"} {
		if c.IsSet(flag) {
			return cmdline.Usagef("--%s requires --from-file", flag)
		}
	}
	return p.migrateOne(c, m, imaged)
}

// migrateOutput reads --output: formats of the catalog, which have no colon, and destinations of images, which do. Of
// several formats the last counts, as in opm.
func migrateOutput(c *cli.Context) (format declcfg.Format, destinations []string, err error) {
	values, err := cmdline.List(c.StringSlice("output"))
	if err != nil {
		return "", nil, err
	}
	format = declcfg.FormatJSON
	for _, v := range values {
		if strings.Contains(v, ":") {
			destinations = append(destinations, v)
		} else if format, err = declcfg.ParseFormat(v); err != nil {
			return "", nil, cmdline.Usagef("invalid --output value %q, expected (json|yaml) or TRANSPORT:PATH", v)
		}
	}
	return format, destinations, nil
}

// migratePlatform determines which platform of an image is read. The catalog is the same for all of them, so any
// platform is accepted if an image is written or no platform was requested.
func (p *program) migratePlatform(c *cli.Context, imaged bool) error {
	if len(c.StringSlice("platform")) == 0 {
		return nil
	}
	of, err := platforms(c)
	if err != nil {
		return err
	}
	if len(of) > 1 && !imaged {
		return cmdline.Usagef("several --platform values require an image as output: name it with -t")
	}
	p.readPlatform, p.readAny = of[0], imaged
	return nil
}

// checkMigrateOutput refuses a directory that cannot be the output.
func checkMigrateOutput(src, out string) error {
	if out == "" || filepath.Clean(out) == "." {
		return cmdline.Usagef("the output %q is the working directory, which cannot be replaced: choose another", out)
	}
	return checkApart(src, out)
}

// migrateOne runs the migration in the arguments.
func (p *program) migrateOne(c *cli.Context, m *migration, imaged bool) (err error) {
	src, out, reportFile := c.Args().Get(0), c.Args().Get(1), c.String("report")
	if c.NArg() == 2 {
		if err := checkMigrateOutput(src, out); err != nil {
			return err
		}
	}
	if reportFile != "-" {
		if err := checkResult("report", reportFile, src, out); err != nil {
			return err
		}
	} else if imaged {
		return cmdline.Usagef("--report - conflicts with the image name on standard output: name a file")
	}
	if !imaged {
		if err := checkNoDocuments(c, "without an image as output: name it with -t"); err != nil {
			return err
		}
		if !c.Bool("dry-run") {
			of := flags(binaryImageFlags("image"), formFlags("image"), layerFlags("image"), resultFlags(),
				signFlags())
			if err := withoutImage(c, of, "name the image with -t NAME"); err != nil {
				return err
			}
		}
	}
	if p.opm {
		p.log.Info(fmt.Sprintf("rendering index %q as file-based catalog", src))
	}
	progress := p.progress()
	m.o.Report = reportFile != ""
	m.o.Progress = func(step migrate.Step, n, all int, pkg string) {
		progress.Set(cmdline.State{What: string(step), Done: n, All: all, Units: "packages", Now: pkg})
	}
	var report *migrate.Report
	var copied *copiedImage
	if imaged || c.Bool("dry-run") {
		report, copied, err = p.migrateImage(c, m, src, out, imaged)
	} else {
		report, err = m.o.Run(c.Context, src, out)
	}
	progress.Close()
	if report != nil && reportFile != "" {
		if rerr := p.writeAccount("report", reportFile, report); rerr != nil {
			return p.opmMessage(errors.Join(err, rerr))
		}
	}
	if report != nil {
		p.reportFindings(report, reportFile)
	}
	var partial *migrate.PartialError
	if err != nil && !errors.As(err, &partial) {
		err = p.opmMessage(err)
		var reference *render.ReferenceError
		if p.opm && errors.As(err, &reference) {
			err = fmt.Errorf("render catalog image: %w", err)
		}
		return err
	}
	if err := p.checkEmpty(c, src, report.Written()); err != nil {
		return err
	}
	if copied != nil {
		if err := p.report(c, copied.target, copied.image, copied.results); err != nil {
			return err
		}
	}
	switch {
	case partial != nil:
		return &cmdline.ExitStatus{Status: 4, Err: partial}
	case p.opm:
		p.log.Info(fmt.Sprintf("wrote rendered file-based catalog to %q\n", out))
		return nil
	}
	p.log.Info(p.migrated(c, report, out))
	return nil
}

// migrated returns the sentence about a finished migration.
func (p *program) migrated(c *cli.Context, report *migrate.Report, out string) string {
	text := fmt.Sprintf("wrote %s to %q", count(report.Written(), "package"), out)
	switch {
	case c.Bool("dry-run"):
		text = fmt.Sprintf("would write %s", count(report.Written(), "package"))
	case out == "":
		text = fmt.Sprintf("wrote an image of %s", count(report.Written(), "package"))
	}
	return text + sameText(report)
}

// sameText describes the result of a verification.
func sameText(report *migrate.Report) string {
	v := report.Verification
	switch {
	case v == nil || !v.Same:
		return ""
	case len(findings(report.Findings, sqlite.Dropped)) > 0:
		return "; verified, except for dropped data"
	case report.Repairs() > 0:
		return "; verified, except for repairs"
	}
	return "; verified"
}
