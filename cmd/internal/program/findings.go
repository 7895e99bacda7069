package program

import (
	"fmt"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/sqlite"
)

// LogFound logs a line about findings of one kind, if there are any.
func (p *Program) LogFound(log func(string, ...any), text string, in found, where string) {
	if len(in) > 0 {
		log(fmt.Sprintf("%s%s; %s", text, in.text(), where))
	}
}

// found are the findings of one kind.
type found []sqlite.Finding

func Findings(all []sqlite.Finding, kind sqlite.FindingKind) (in found) {
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
