package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/sqlite"
)

// reportFindings logs one line for each kind of difference between the catalog and the database. It also does so if no
// report was requested. opm prints nothing.
func (p *program) reportFindings(r *migrate.Report, reportFile string) {
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
		p.log.Warn(fmt.Sprintf("dropped data that a catalog cannot represent%s; %s", in.text(), where))
	}
	if in := findings(r, sqlite.Repaired); len(in) > 0 {
		p.log.Warn(fmt.Sprintf("repaired missing or damaged data of the source%s; %s", in.text(), where))
	}
	if in := findings(r, sqlite.Derived); len(in) > 0 {
		p.log.Info(fmt.Sprintf("derived data that the database does not store%s; %s", in.text(), where))
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

// text describes the number of findings and the packages, or else the fields, that they are about.
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

// count formats a number with its noun.
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
