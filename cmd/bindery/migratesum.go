package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/migrate/jobs"
	"github.com/operator-bindery/bindery/sqlite"
)

// report logs the result of a migration in one line.
func (l *migrationList) report(o *jobs.Outcome) {
	l.ended++
	l.progress.Set(cmdline.State{What: "migrating", Done: l.ended, All: len(l.lines), Units: "indexes"})
	text := fmt.Sprintf("[%d/%d] line %d, %s: ", l.ended, len(l.lines), o.Number, redact.Text(o.Source))
	switch o.State {
	case jobs.Failed:
		l.p.log.Error(text + redact.Text(o.Err.Error()))
		return
	case jobs.Incomplete:
		left := o.Quarantined()
		l.p.log.Warn(fmt.Sprintf("%s%s; skipped invalid packages (%d): %s", text, l.written(o), len(left),
			strings.Join(left, ", ")))
		return
	}
	l.p.log.Info(text + l.written(o))
}

// written describes the outputs of a line.
func (l *migrationList) written(o *jobs.Outcome) string {
	if o.Before {
		return "was done before"
	}
	text := fmt.Sprintf("wrote %s to %s in %s", count(o.Packages(), "package"), strings.Join(o.Outputs(), ", "),
		o.Took.Round(time.Millisecond))
	r := o.Written.Report
	text += sameText(r)
	for _, k := range []struct {
		kind sqlite.FindingKind
		what string
	}{{sqlite.Dropped, "dropped"}, {sqlite.Repaired, "repaired"}, {sqlite.Derived, "worked out"}} {
		if n := len(findings(r.Findings, k.kind)); n > 0 {
			text += fmt.Sprintf("; %s %d", k.what, n)
		}
	}
	return text
}

// lineResult is a line of --results. Its JSON form is stable: fields are added, and never renamed or removed.
type lineResult struct {
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

// sumUp prints the results of all lines. Its error is the result of the command.
func (l *migrationList) sumUp(ctx context.Context, outcomes []jobs.Outcome) error {
	var lines bytes.Buffer
	counts := map[string]int{}
	enc := json.NewEncoder(&lines)
	enc.SetEscapeHTML(false)
	for i := range outcomes {
		o := &outcomes[i]
		r := lineResult{
			Line: o.Number, Source: redact.Text(o.Source), Outputs: o.Outputs(), Status: o.State, Before: o.Before,
			Packages: o.Packages(), Quarantined: o.Quarantined(), Repairs: o.Repairs, Report: o.Record,
			Seconds: o.Took.Seconds(),
		}
		if o.Written != nil {
			r.Image = o.Written.Image
		}
		if o.Err != nil {
			r.Error = &jobs.Failure{Class: int(cmdline.Classify(withClass(o.Err))), Message: redact.Text(o.Err.Error())}
		}
		if err := enc.Encode(r); err != nil {
			return err
		}
		counts[statusText(o)]++
		if o.Repairs > 0 {
			counts[repairedText]++
		}
	}
	results := redact.JSON(lines.Bytes())
	if file := l.flags.results; file != "" && file != "-" {
		if err := atomicfs.WriteFile(file, results, 0o666); err != nil {
			return fmt.Errorf("--results: %w", err)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if l.flags.results == "-" {
		if _, err := l.p.stdout.Write(results); err != nil {
			return err
		}
	} else if err := l.printSummary(outcomes, counts); err != nil {
		return err
	}
	return l.verdict(counts, len(outcomes))
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

// printSummary prints the counts of results and the lines that are not done.
func (l *migrationList) printSummary(outcomes []jobs.Outcome, counts map[string]int) error {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "STATUS\tLINES\n")
	for _, s := range statuses {
		if counts[s] > 0 {
			fmt.Fprintf(w, "%s\t%d\n", s, counts[s])
		}
	}
	_ = w.Flush() // a write to memory
	head := false
	for i := range outcomes {
		o := &outcomes[i]
		if o.State == jobs.Done || o.State == jobs.NotBegun {
			continue
		}
		if !head {
			head = true
			fmt.Fprintf(w, "\nLINE\tSTATUS\tSOURCE\tREASON\tREPORT\n")
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", o.Number, o.State, printable.Cell(redact.Text(o.Source)),
			printable.Cell(redact.Text(reasonOf(o))), printable.Cell(o.Record))
	}
	_ = w.Flush() // a write to memory
	_, err := l.p.stdout.Write(b.Bytes())
	return err
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

// verdict returns nil if everything is done.
func (l *migrationList) verdict(counts map[string]int, all int) error {
	var parts []string
	if n := counts[string(jobs.Failed)]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s failed", n, count(all, "line")))
	}
	if n := counts[string(jobs.NotBegun)]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d were not started", n))
	}
	if n := counts[string(jobs.Incomplete)]; n > 0 {
		parts = append(parts, fmt.Sprintf("invalid packages were skipped in %d", n))
	}
	repaired := counts[repairedText]
	if len(parts) == 0 && repaired > 0 {
		return &cmdline.ExitStatus{Status: 4,
			Err: fmt.Errorf("repairs were made in %d of %s", repaired, count(all, "line"))}
	}
	if len(parts) == 0 {
		return nil
	}
	err := &cmdline.Error{Class: cmdline.ClassInput, Object: l.flags.file,
		Err:  fmt.Errorf("%s", strings.Join(parts, ", ")),
		Hint: "run the same command again to resume"}
	status := 1
	if l.flags.keepGoing {
		status = 4
	}
	return &cmdline.ExitStatus{Status: status, Err: err}
}

// printPlan prints what would be done.
func (l *migrationList) printPlan() error {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "LINE\tSOURCE\tOUTPUTS\n")
	for _, line := range l.lines {
		fmt.Fprintf(w, "%d\t%s\t%s\n", line.Number, printable.Cell(redact.Text(line.Source)),
			printable.Cell(strings.Join(line.Outputs(), " ")))
	}
	_ = w.Flush() // a write to memory
	_, err := l.p.stdout.Write(b.Bytes())
	return err
}
