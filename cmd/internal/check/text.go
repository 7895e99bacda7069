package check

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/check/checkup"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg/list"
	"github.com/operator-bindery/bindery/internal/printable"
)

// listRules answers --list and --explain.
func (o *checkOptions) listRules(ctx context.Context, p *option.Session, args []string, format program.Format,
	profiles []rules.Profile) error {
	if len(args) > 0 {
		return cmdline.Usagef("--list and --explain check nothing: leave %q out", args[0])
	}
	if format != program.Text && !format.IsDocument() {
		return cmdline.Usagef("--list and --explain answer as text, json or yaml")
	}
	all := checkup.Rules()
	if id := o.explain; id != "" {
		if err := rules.CheckID(id, all); err != nil {
			return cmdline.Usagef("--explain: %v", err)
		}
		rule := all[slices.IndexFunc(all, func(r rules.Rule) bool { return r.ID == id })]
		if format.IsDocument() {
			return p.PrintValue(format, rule)
		}
		return p.Spooled(ctx, func(w io.Writer) error { return explain(w, rule) })
	}
	if len(profiles) > 0 {
		all = slices.DeleteFunc(all, func(r rules.Rule) bool { return !slices.ContainsFunc(profiles, r.In) })
	}
	if format.IsDocument() {
		return p.PrintValue(format, all)
	}
	var rows [][]string
	for _, r := range all {
		rows = append(rows, []string{r.ID, string(r.Severity), joined(r.Profiles), joined(r.Scopes), r.Title})
	}
	return p.PrintTable([]string{"RULE", "SEVERITY", "PROFILES", "ON", "DEMANDS"}, rows...)
}

func explain(w io.Writer, r rules.Rule) error {
	text := fmt.Sprintf("%s (%s)\n\n%s\n\nTo mend it: %s.\n\nProfiles: %s\nChecked on: %s\n", r.ID, r.Severity, r.Title,
		r.Fix, joined(r.Profiles), joined(r.Scopes))
	if r.Data != "" {
		text += "Rule data: " + r.Data + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

func joined[T ~string](all []T) string { return strings.Join(asStrings(all), ", ") }

// writeCheck writes a report: what is broken, then whether OLM v1 installs the bundles, then the sums.
// pulled is set if the images were asked for.
func writeCheck(w io.Writer, r *rules.Report, pulled bool) error {
	var b strings.Builder
	for _, f := range r.Findings {
		f.File = filepath.FromSlash(f.File)
		label := string(f.Severity)
		if f.Waived != "" {
			label = "waived"
		}
		fmt.Fprintf(&b, "%-7s %s\n", label, f.Rule)
		lines := []string{f.Text()}
		if f.Rule == rules.RuleUpgrade.ID { // a line for each change
			lines = strings.Split(lines[0], "\n")
		}
		for _, line := range lines {
			fmt.Fprintf(&b, "        %s\n", printable.Cell(line))
		}
		if fix := f.Remedy(); f.Waived == "" && fix != "" {
			fmt.Fprintf(&b, "        fix: %s\n", printable.Cell(fix))
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(r.More)) {
		fmt.Fprintf(&b, "        and %d more of %s\n", r.More[rule], rule)
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if r.Kind == rules.OnCatalog && len(r.Bundles) > 0 {
		if err := writeMatrix(w, r); err != nil {
			return err
		}
	}
	return writeSums(w, r, pulled)
}

// writeMatrix writes how many bundles of each channel OLM v1 installs.
func writeMatrix(w io.Writer, r *rules.Report) error {
	t := list.Table{Header: []string{"PACKAGE", "CHANNEL", "HEAD", "OLM V1", "INSTALLABLE", "REFUSED", "UNKNOWN",
		"REASONS"}}
	for _, row := range r.Channels() {
		t.Rows = append(t.Rows, []string{row.Package, row.Channel, row.Head, string(row.HeadState),
			fmt.Sprint(row.Installable), fmt.Sprint(row.Refused), fmt.Sprint(row.Unknown),
			strings.Join(row.Reasons, ",")})
	}
	if err := t.Write(w, printable.Cell); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func writeSums(w io.Writer, r *rules.Report, pulled bool) error {
	var title string
	if r.Title != "" {
		title = "title of the pull request: " + printable.Cell(r.Title) + "\n"
	}
	verdict := "passed"
	if !r.Passed {
		verdict = "failed"
	}
	sums := program.Count(r.Errors, "error") + ", " + program.Count(r.Warnings, "warning")
	if r.Notes > 0 {
		sums += ", " + program.Count(r.Notes, "note")
	}
	text := fmt.Sprintf("%s: %s; %s checked", verdict, sums, program.Count(len(r.Rules), "rule"))
	if r.Waived > 0 {
		text += fmt.Sprintf(", %d waived", r.Waived)
	}
	text += "\n" + title
	switch n := r.Unknown(); {
	case n > 0 && pulled:
		text += fmt.Sprintf("not known: whether OLM v1 installs %s, as images could not be asked for\n", program.Count(n, "bundle"))
	case n > 0:
		text += fmt.Sprintf("not known: whether OLM v1 installs %s whose manifests the catalog lacks; --pull reads "+
			"their images\n", program.Count(n, "bundle"))
	}
	if n := r.Unread(); n > 0 {
		text += fmt.Sprintf("images not read: the manifests in the catalog alone say that OLM v1 installs %s; what it "+
			"installs are their images, which --pull reads\n", program.Count(n, "bundle"))
	}
	text += upgradeSums(r, pulled)
	if len(r.NotRun) > 0 {
		text += fmt.Sprintf("not checked: %s\n", program.Count(len(r.NotRun), "rule"))
		for _, n := range r.NotRun {
			text += fmt.Sprintf("  %s: %s\n", n.Rule, n.Reason)
		}
	}
	for _, s := range r.OpenShift {
		if r.Kind == rules.OnRepository && r.Title == "" {
			break // there are hundreds, which the JSON has
		}
		text += fmt.Sprintf("OpenShift for %s: %s\n", printable.Cell(cmp.Or(s.Bundle, s.Package)), printable.Cell(s.Text))
	}
	_, err := io.WriteString(w, text)
	return err
}

// upgradeSums says how many upgrades were judged.
func upgradeSums(r *rules.Report, pulled bool) string {
	u := r.Upgrades
	if u == nil {
		return ""
	}
	text := fmt.Sprintf("upgrades: %d judged, %d refused", u.Judged, u.Refused)
	if u.LeftOut > 0 {
		text += fmt.Sprintf(", %d left out: OLM v1 does not install a bundle of them", u.LeftOut)
	}
	text += "\n"
	if u.Unknown > 0 {
		text += "not known: whether OLM v1 takes " + program.Count(u.Unknown, "upgrade")
		switch n := len(u.Missing); {
		case n == 1:
			text += fmt.Sprintf("; the manifests of %s are not known", printable.Cell(u.Missing[0].Bundle))
			if !pulled {
				text += ", --pull reads its image"
			}
		case n > 1:
			text += fmt.Sprintf("; the manifests of %d bundles are not known", n)
			if !pulled {
				text += ", --pull reads their images"
			}
		}
		text += "\n"
	}
	return text
}
