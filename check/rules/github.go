package rules

import (
	"fmt"
	"io"
	"strings"

	"github.com/operator-bindery/bindery/internal/printable"
)

// WriteGitHub writes the findings that are not waived as commands of a workflow of GitHub Actions, which shows them at the
// lines of a pull request. The files are named from the root of the checkout, as the report has them (see [Report.Below]).
func (r *Report) WriteGitHub(w io.Writer) error {
	property := strings.NewReplacer("%", "%25", ":", "%3A", ",", "%2C")
	var b strings.Builder
	for _, f := range r.Findings {
		if f.Waived != "" {
			continue
		}
		level, at, text := string(f.Severity), "title="+property.Replace(printable.Cell(f.Rule)), f.Text()
		if f.Severity == Note {
			level = "notice"
		}
		if f.File != "" && !f.InImage {
			at += ",file=" + property.Replace(printable.Cell(f.File))
			if f.Line > 0 {
				at += fmt.Sprintf(",line=%d", f.Line)
			}
			if f.Column > 0 {
				at += fmt.Sprintf(",col=%d", f.Column)
			}
		}
		if fix := f.Remedy(); fix != "" {
			text += "\nfix: " + fix
		}
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			lines[i] = strings.ReplaceAll(printable.Cell(line), "%", "%25")
		}
		fmt.Fprintf(&b, "::%s %s::%s\n", level, at, strings.Join(lines, "%0A"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
