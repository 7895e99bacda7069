package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg/edit"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/change"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/sqlite"
)

// account is the content of --account. Its lists are never null.
type account struct {
	Catalog   string           `json:"catalog"`
	Kind      change.Kind      `json:"kind"`
	DryRun    bool             `json:"dryRun"`
	Unchanged bool             `json:"unchanged"`
	Changes   []edit.Change    `json:"changes"`
	Facts     []edit.Fact      `json:"facts"`
	Problems  []edit.Problem   `json:"problems"`
	Notes     []edit.Problem   `json:"notes"`
	Findings  []sqlite.Finding `json:"findings"`
	// Files are those of a directory that were written or removed.
	Files []string `json:"files"`
}

// checkAccount refuses, before any work is done, a file of --account that cannot be written, or that is or lies in one
// of the catalogs.
func (p *program) checkAccount(c *cli.Context, catalogs ...string) error {
	if path := c.String("account"); path != "-" {
		return checkResult("account", path, catalogs...)
	}
	if c.String("metadata-file") == "-" {
		return cmdline.Usagef("--account - and --metadata-file - are both for standard output: one of them needs a file")
	}
	return nil
}

// reportEdit says what was done to a catalog in place, and the account of it.
func (p *program) reportEdit(c *cli.Context, path string, r *change.Result) error {
	if err := p.reportAccount(c, path, r); err != nil {
		return err
	}
	switch {
	case p.opm, c.Bool("dry-run"):
	case r.Unchanged:
		p.log.Info(fmt.Sprintf("%q is as it was: there is nothing to change", path))
	case r.Kind == change.Directory:
		p.log.Info(fmt.Sprintf("wrote %q: %s", path, filesText(r)))
	default:
		p.log.Info(fmt.Sprintf("wrote %q", path))
	}
	return nil
}

// filesText is how many files of a directory were written and removed.
func filesText(r *change.Result) string {
	written, removed := len(r.Files)-len(r.Removed), count(len(r.Removed), "file")+" removed"
	switch {
	case len(r.Removed) == 0:
		return count(written, "file")
	case written == 0:
		return removed
	}
	return count(written, "file") + ", " + removed
}

// reportAccount says what an edit did to the catalog that is called so: problems and what a database does not hold as
// warnings, changes as information, and on standard output what --dry-run, --explain and --account ask for. The lock of
// image names is written first, so that there is no answer where it cannot be.
func (p *program) reportAccount(c *cli.Context, name string, r *change.Result) error {
	for _, problem := range r.Account.Problems {
		p.log.Warn(lineText(problem.Message))
	}
	for _, note := range r.Account.Notes {
		p.log.Info(note.Message)
	}
	p.tellFindingsOf(findingsOf(r), c.String("account"))
	if !c.Bool("dry-run") {
		p.printChanges(r.Account)
	}
	if err := p.saveLock(); err != nil {
		return err
	}
	path := c.String("account")
	if path != "" {
		text, err := json.MarshalIndent(newAccount(c, name, r), "", "  ")
		if err != nil {
			return err
		}
		text = append(text, '\n')
		if path == "-" {
			_, err := p.stdout.Write(text)
			return err
		}
		if err := atomicfs.WriteFile(path, text, 0o666); err != nil {
			return fmt.Errorf("--account: %w", err)
		}
	}
	if c.String("metadata-file") == "-" {
		return nil // what reads standard output expects JSON and nothing else
	}
	b := bufio.NewWriter(p.stdout)
	if c.Bool("dry-run") {
		for _, change := range r.Account.Changes {
			fmt.Fprintln(b, printable.Cell(change.String()))
		}
		if len(r.Account.Changes) == 0 && !p.opm {
			p.log.Info("there is nothing to change")
		}
	}
	if c.Bool("explain") {
		for _, f := range r.Account.Facts {
			fmt.Fprintln(b, printable.Cell(factText(f)))
		}
	}
	return b.Flush()
}

func newAccount(c *cli.Context, name string, r *change.Result) account {
	problems := listed(r.Account.Problems)
	for i := range problems {
		problems[i].Image = redact.Text(problems[i].Image) // as the user named it, if it is that of no bundle
	}
	return account{
		Catalog: redact.Text(name), Kind: r.Kind, DryRun: c.Bool("dry-run"), Unchanged: r.Unchanged,
		Changes: listed(r.Account.Changes), Facts: listed(r.Account.Facts), Problems: problems, Notes: listed(r.Account.Notes),
		Findings: listed(findingsOf(r)), Files: listed(r.Files),
	}
}

// listed is a list that is not nil.
func listed[T any](list []T) []T { return append([]T{}, list...) }

// lineText is a message as one line of the log.
func lineText(message string) string { return strings.ReplaceAll(message, "\n", "; ") }

// factText is a fact as a sentence.
func factText(f edit.Fact) string {
	in := f.Package
	if f.Channel != "" {
		in += "/" + f.Channel
	}
	said := ""
	switch f.Kind {
	case edit.KindDefaultChannel:
		said = fmt.Sprintf("%s: the default channel is %s", in, f.Value)
	case edit.KindHead:
		said = fmt.Sprintf("%s: the head is %s", in, f.Value)
	case edit.KindReplaces:
		said = fmt.Sprintf("%s: %s replaces %s", in, f.Bundle, f.Value)
	case edit.KindSkip:
		said = fmt.Sprintf("%s: %s skips %s", in, f.Bundle, f.Value)
	case edit.KindSkipRange:
		said = fmt.Sprintf("%s: %s skips the range %s", in, f.Bundle, f.Value)
	default:
		said = fmt.Sprintf("%s: %s %s", in, f.Kind, f.Value)
	}
	return said + " (" + f.Why + ")"
}

// printChanges prints, a line for each package, what an edit did, and a line for each bundle that went without being
// asked for. Everything else is in the account.
func (p *program) printChanges(a *edit.Account) {
	if p.opm {
		return
	}
	var order []string
	of := map[string]*tally{}
	for _, c := range a.Changes {
		t := of[c.Package]
		if t == nil {
			t = &tally{}
			of[c.Package], order = t, append(order, c.Package)
		}
		t.add(c)
	}
	for _, c := range a.Changes {
		// A bundle that went because others came may be missed.
		if c.Kind == edit.KindBundle && c.Action == edit.Removed && of[c.Package].came() {
			p.log.Warn(c.String())
		} else if p.log.Enabled(context.Background(), slog.LevelDebug) {
			p.log.Debug(c.String())
		}
	}
	for _, name := range order {
		p.log.Info(fmt.Sprintf("package %s: %s", name, of[name].text()))
	}
}

// tally are the changes of a package, counted.
type tally struct {
	gone, fresh bool
	counts      map[string]int
	heads       []string
}

func (t *tally) add(c edit.Change) {
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	switch {
	case c.Kind == edit.KindPackage:
		t.gone, t.fresh = c.Action == edit.Removed, c.Action == edit.Added
	case c.Kind == edit.KindHead && c.Action != edit.Removed:
		t.heads = append(t.heads, fmt.Sprintf("head of %s is %s", c.Channel, c.To))
	case c.Kind == edit.KindDefaultChannel && c.Action != edit.Removed:
		t.heads = append(t.heads, "default channel is "+c.To)
	default:
		t.counts[fmt.Sprintf("%s %s", c.Kind, c.Action)]++
	}
}

// came reports whether bundles were added.
func (t *tally) came() bool { return t.counts["bundle added"]+t.counts["bundle changed"] > 0 }

// maxHeads is how many heads and default channels of a package a line reports.
const maxHeads = 20

// tallied are the kinds that a line reports, in its order.
var tallied = []edit.Kind{edit.KindBundle, edit.KindChannel, edit.KindDeprecation}

func (t *tally) text() string {
	if t.gone {
		text := "removed"
		if n := t.counts["bundle removed"]; n > 0 {
			text += " with " + count(n, "bundle")
		}
		return text
	}
	var parts []string
	if t.fresh {
		parts = append(parts, "new")
	}
	for _, kind := range tallied {
		for _, action := range []edit.Action{edit.Added, edit.Changed, edit.Removed} {
			if n := t.counts[fmt.Sprintf("%s %s", kind, action)]; n > 0 {
				parts = append(parts, fmt.Sprintf("%s %s", count(n, string(kind)), action))
			}
		}
	}
	parts = append(parts, t.heads[:min(len(t.heads), maxHeads)]...)
	if n := len(t.heads) - maxHeads; n > 0 {
		parts = append(parts, fmt.Sprintf("and %d heads more", n))
	}
	edges := t.counts["replace added"] + t.counts["replace changed"] + t.counts["replace removed"] + t.counts["skip added"] + t.counts["skip removed"]
	if edges > 0 {
		parts = append(parts, count(edges, "edge")+" changed")
	}
	if len(parts) == 0 {
		return "changed"
	}
	return strings.Join(parts, ", ")
}

// findingsOf are what is to be known of how the catalog came out of a database and went into one. A broken package that
// the edit has removed is no finding any more.
func findingsOf(r *change.Result) []sqlite.Finding {
	gone := map[string]bool{}
	for _, c := range r.Account.Changes {
		gone[c.Package] = gone[c.Package] || c.Kind == edit.KindPackage && c.Action == edit.Removed
	}
	list := slices.DeleteFunc(slices.Clone(r.Findings), func(f sqlite.Finding) bool { return f.Kind == sqlite.Quarantined && gone[f.Package] })
	if r.Written != nil {
		list = append(list, r.Written.Findings...)
	}
	return list
}

// tellFindingsOf says in a line for each kind what is in a database otherwise than in the catalog, or was not in the
// catalog that is written again.
func (p *program) tellFindingsOf(list []sqlite.Finding, accountFile string) {
	if p.opm {
		return
	}
	where := "--account FILE lists it"
	switch accountFile {
	case "":
	case "-":
		where = "the account lists it"
	default:
		where = fmt.Sprintf("%q lists it", accountFile)
	}
	for _, of := range []struct {
		kind sqlite.FindingKind
		text string
		tell func(string, ...any)
	}{
		{sqlite.Lost, "left out what a database cannot hold", p.log.Warn},
		{sqlite.Dropped, "dropped what the database had and no catalog has a place for", p.log.Warn},
		{sqlite.Quarantined, "left out broken packages", p.log.Warn},
		{sqlite.Repaired, "repaired what was missing or damaged in the database", p.log.Warn},
		{sqlite.Derived, "worked out what the database does not store", p.log.Info},
		{sqlite.Changed, "wrote in the database's form what is said otherwise in a catalog", p.log.Debug},
	} {
		var in found
		for _, f := range list {
			if f.Kind == of.kind {
				in = append(in, f)
			}
		}
		if len(in) > 0 {
			of.tell(fmt.Sprintf("%s%s; %s", of.text, in.text(), where))
		}
	}
}
