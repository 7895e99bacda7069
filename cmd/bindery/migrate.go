package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/cliutil"
	"github.com/operator-bindery/bindery/migrate"
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
		Flags: []cli.Flag{
			catalogFormatFlag(),
			migrateLevelFlag(""),
			&cli.StringFlag{Name: "report", Usage: "write a JSON account of both sides to `FILE`"},
			&cli.BoolFlag{Name: "verify", Usage: "prove that nothing was lost; exit status 1 if something was"},
			&cli.BoolFlag{Name: "keep-going", Usage: "migrate the healthy packages and leave out the broken ones"},
			compatFlag(),
			jobsFlag(),
		},
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
	ro.KeepGoing = c.Bool("keep-going")
	src, out, reportFile := c.Args().Get(0), c.Args().Get(1), c.String("report")
	if reportFile != "" {
		if err := atomicfs.CheckFile(reportFile); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	if p.opm {
		p.log.Info(fmt.Sprintf("rendering index %q as file-based catalog", src))
	}
	report, err := migrate.Run(c.Context, src, out, migrate.Options{Render: ro, Format: format, Report: reportFile != "", Verify: c.Bool("verify")})
	if report != nil && reportFile != "" {
		if rerr := writeReport(reportFile, report); rerr != nil {
			return p.opmMessage(errors.Join(err, rerr))
		}
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
	text := fmt.Sprintf("wrote %d packages to %q", report.Written(), out)
	if v := report.Verification; v != nil && v.Same {
		text += "; both sides hold the same"
	}
	p.log.Info(text)
	return nil
}

func writeReport(path string, report *migrate.Report) error {
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := atomicfs.WriteFile(path, append(text, '\n'), 0o666); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
