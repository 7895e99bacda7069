package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/sqlite"
)

// reportFindings logs one line for each kind of difference between the catalog and the database. It also does so if no
// report was requested. opm prints nothing.
func (p *program) reportFindings(r *migrate.Report, reportFile string) {
	if p.opm {
		return
	}
	where := whereListed("report", reportFile)
	p.logFound(p.log.Warn, "dropped data that a catalog cannot represent", findings(r.Findings, sqlite.Dropped), where)
	p.logFound(p.log.Warn, "repaired missing or damaged data of the source", findings(r.Findings, sqlite.Repaired),
		where)
	p.logFound(p.log.Info, "derived data that the database does not store", findings(r.Findings, sqlite.Derived), where)
}

// logFound logs a line about findings of one kind, if there are any.
func (p *program) logFound(log func(string, ...any), text string, in found, where string) {
	if len(in) > 0 {
		log(fmt.Sprintf("%s%s; %s", text, in.text(), where))
	}
}

// whereListed says where all findings are, of which the log has only the number: in the file of the flag.
func whereListed(flag, file string) string {
	switch file {
	case "":
		return fmt.Sprintf("--%s FILE lists it", flag)
	case "-":
		return fmt.Sprintf("the %s lists it", flag)
	}
	return fmt.Sprintf("%q lists it", file)
}

// found are the findings of one kind.
type found []sqlite.Finding

func findings(all []sqlite.Finding, kind sqlite.FindingKind) (in found) {
	for _, f := range all {
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

// writeAccount writes a value as JSON, without credentials, to the file that a flag names; "-" is standard output.
func (p *program) writeAccount(flag, path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	text = append(redact.JSON(text), '\n')
	if path == "-" {
		_, err := p.stdout.Write(text)
		return err
	}
	if err := atomicfs.WriteFile(path, text, 0o666); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}
