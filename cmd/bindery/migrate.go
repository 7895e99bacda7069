package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/cliutil"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/sqlite"
)

func (p *program) migrateCommand() *cli.Command {
	return &cli.Command{
		Name:      "migrate",
		Usage:     "turn an index database or a catalog into a catalog directory",
		ArgsUsage: "SRC OUT",
		Description: "OUT must be absent or empty; it is there whole or not at all. --verify reads it again and compares it with what\n" +
			"plain SQL finds in the database. With --keep-going broken packages are left out, and the exit status is 4." +
			examples("bindery migrate index.db migrated --verify", "bindery migrate index.db migrated -o yaml --report report.json",
				"bindery migrate catalog migrated --migrate-level bundle-object-to-csv-metadata"),
		Flags: append([]cli.Flag{
			catalogFormatFlag(),
			migrateLevelFlag(""),
			&cli.StringFlag{Name: "report", Usage: "write a JSON account of both sides to `FILE`; \"-\" is standard output"},
			&cli.BoolFlag{Name: "verify", Usage: "prove that nothing was lost; exit status 1 if something was"},
			&cli.BoolFlag{Name: "keep-going", Usage: "migrate the healthy packages and leave out the broken ones"},
			compatFlag(),
		}, readFlags()...),
		Action: exactly(2, p.migrate),
	}
}

func (p *program) migrate(c *cli.Context) error {
	format, err := catalogFormat(c)
	if err != nil {
		return err
	}
	ro, err := p.renderOptions(c)
	if err != nil {
		return err
	}
	ro.KeepGoing, ro.Allow = c.Bool("keep-going"), catalogKinds()
	src, out, reportFile := c.Args().Get(0), c.Args().Get(1), c.String("report")
	if out == "" || filepath.Clean(out) == "." {
		return cliutil.Usagef("the output %q is the working directory, which cannot be replaced: name another", out)
	}
	if err := checkApart(src, out); err != nil {
		return err
	}
	if reportFile != "-" {
		if err := checkResult("report", reportFile); err != nil {
			return err
		}
	}
	if p.opm {
		p.log.Info(fmt.Sprintf("rendering index %q as file-based catalog", src))
	}
	status := cliutil.NewStatus(p.stderr, p.bars)
	report, err := migrate.Run(c.Context, src, out, migrate.Options{
		Render: ro, Format: format, Report: reportFile != "", Verify: c.Bool("verify"),
		Progress: func(step migrate.Step, n int, pkg string) { status.Set(fmt.Sprintf("%s package %d, %s", step, n, pkg)) },
	})
	status.Close()
	if report != nil && reportFile != "" {
		if rerr := p.writeReport(reportFile, report); rerr != nil {
			return p.opmMessage(errors.Join(err, rerr))
		}
	}
	if report != nil {
		p.tellFindings(report, reportFile)
	}
	var quarantine *migrate.QuarantineError
	if errors.As(err, &quarantine) {
		return &cliutil.ExitStatus{Status: 4, Err: err}
	}
	if err != nil {
		return p.opmMessage(err)
	}
	if p.opm {
		p.log.Info(fmt.Sprintf("wrote rendered file-based catalog to %q\n", out))
		return nil
	}
	text := fmt.Sprintf("wrote %s to %q", count(report.Written(), "package"), out)
	if v := report.Verification; v != nil && v.Same {
		text += "; both sides hold the same"
		if len(findings(report, sqlite.Dropped)) > 0 {
			text += ", but for what was dropped"
		}
	}
	p.log.Info(text)
	return nil
}

// tellFindings says in a line each what is not in the catalog as it was in the database. Who asks for no report must
// learn of it too. opm is silent.
func (p *program) tellFindings(r *migrate.Report, reportFile string) {
	if p.opm {
		return
	}
	where := "--report FILE lists it"
	switch reportFile {
	case "":
	case "-":
		where = "the report lists it"
	default:
		where = fmt.Sprintf("%q lists it", reportFile)
	}
	if in := findings(r, sqlite.Dropped); len(in) > 0 {
		p.log.Warn(fmt.Sprintf("dropped what has no place in a catalog%s; %s", in.text(), where))
	}
	if in := findings(r, sqlite.Repaired); len(in) > 0 {
		p.log.Warn(fmt.Sprintf("repaired what was missing or damaged in the database%s; %s", in.text(), where))
	}
	if in := findings(r, sqlite.Derived); len(in) > 0 {
		p.log.Info(fmt.Sprintf("worked out what the database does not store%s; %s", in.text(), where))
	}
}

// found are the findings of one kind.
type found []sqlite.Finding

func findings(r *migrate.Report, kind sqlite.FindingKind) (in found) {
	for _, f := range r.Findings {
		if f.Kind == kind {
			in = append(in, f)
		}
	}
	return in
}

// text is the number of findings and the packages, or else the fields, that they are about.
func (in found) text() string {
	names := map[string]bool{}
	for _, f := range in {
		if f.Package != "" {
			names[f.Package] = true
		} else if f.Field != "" {
			names[f.Field] = true
		}
	}
	text := fmt.Sprintf(" (%d", len(in))
	const most = 5
	for i, name := range slices.Sorted(maps.Keys(names)) {
		switch {
		case i == 0:
			text += ": " + name
		case i == most:
			return text + ", ...)"
		default:
			text += ", " + name
		}
	}
	return text + ")"
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (p *program) writeReport(path string, report *migrate.Report) error {
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if path == "-" {
		_, err := p.stdout.Write(append(text, '\n'))
		return err
	}
	if err := atomicfs.WriteFile(path, append(text, '\n'), 0o666); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
