package migrate

import (
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/migrate/jobs"
)

// LineResult is a line of --results. Its JSON form is stable: fields are added, and never renamed or removed.
type LineResult struct {
	Line        int           `json:"line"`
	Source      string        `json:"source"`
	Outputs     []string      `json:"outputs"`
	Status      jobs.State    `json:"status"`
	Before      bool          `json:"before,omitempty"`
	Packages    int           `json:"packages"`
	Quarantined []string      `json:"quarantined,omitempty"`
	Repairs     int           `json:"repairs,omitempty"`
	Image       string        `json:"image,omitempty"`
	Report      string        `json:"report,omitempty"`
	Error       *jobs.Failure `json:"error,omitempty"`
	Seconds     float64       `json:"seconds"`
}

// The order of the counts in the summary.
var statuses = []string{string(jobs.Done), beforeText, string(jobs.Incomplete), string(jobs.Failed),
	string(jobs.NotBegun)}

const beforeText = "done before"

// repairedText counts the lines with repairs, whatever their result.
const repairedText = "repaired"

// statusText returns the word for the result of a line.
func statusText(o *jobs.Outcome) string {
	if o.State == jobs.Done && o.Before {
		return beforeText
	}
	return string(o.State)
}

// maxReason is how much of a reason the summary shows, in bytes; the report has all of it.
const maxReason = 100

// reasonOf says in one line why a line of the list failed, or why packages were skipped.
func reasonOf(o *jobs.Outcome) string {
	reason := ""
	switch {
	case o.Err != nil:
		reason = o.Err.Error()
	case o.Written != nil && o.Written.Report != nil:
		more := len(o.Quarantined()) - 1
		for _, p := range o.Written.Report.Packages {
			if p.Quarantined != "" {
				reason = p.Name + ": " + p.Quarantined
				break
			}
		}
		if more > 0 {
			return fmt.Sprintf("%s; and %d more", oneLine(reason), more)
		}
	}
	return oneLine(reason)
}

// oneLine returns the start of the first line of a text.
func oneLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return fault.Clip(first, maxReason)
}
