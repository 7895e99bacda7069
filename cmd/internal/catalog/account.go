package catalog

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/sqlite"
)

// Account is the content of --account. Its lists are never null.
type Account struct {
	Catalog   string           `json:"catalog"`
	Kind      change.Kind      `json:"kind"`
	DryRun    bool             `json:"dryRun"`
	Unchanged bool             `json:"unchanged"`
	Changes   []edit.Change    `json:"changes"`
	Facts     []edit.Fact      `json:"facts"`
	Problems  []edit.Problem   `json:"problems"`
	Notes     []edit.Problem   `json:"notes"`
	Findings  []sqlite.Finding `json:"findings"`
	// Files are the files of a directory that were written or removed.
	Files []string `json:"files"`
}

// CheckAccount refuses, before any work, a file of --account that cannot be written or is inside one of the catalogs.
func (o *EditOptions) CheckAccount(catalogs ...string) error {
	if o.account != "-" {
		return atomicfs.CheckResult("Account", o.account, catalogs...)
	}
	if o.MetadataFile == "-" {
		return cmdline.Usagef(
			"--account - and --metadata-file - both write to standard output: name a file for one of them")
	}
	return nil
}

// report prints the result of an edit in place and writes its account.
func (o *EditOptions) report(p *option.Session, path string, r *change.Result) error {
	if err := o.ReportAccount(p, path, r); err != nil {
		return err
	}
	switch {
	case p.Opm, o.DryRun:
	case r.Unchanged:
		p.Log.Info(fmt.Sprintf("%q is unchanged", path))
	case r.Kind == change.Directory:
		p.Log.Info(fmt.Sprintf("wrote %q: %s", path, filesText(r)))
	default:
		p.Log.Info(fmt.Sprintf("wrote %q", path))
	}
	if text := o.undoText(p, path, r); text != "" && !o.DryRun && !r.Unchanged {
		p.Log.Info("undo: " + text)
	}
	return nil
}

// filesText describes the number of files that were written and removed.
func filesText(r *change.Result) string {
	written, removed := len(r.Files)-len(r.Removed), program.Count(len(r.Removed), "file")+" removed"
	switch {
	case len(r.Removed) == 0:
		return program.Count(written, "file")
	case written == 0:
		return removed
	}
	return program.Count(written, "file") + ", " + removed
}

// ReportAccount reports an edit of the catalog with the given name: problems and lost data as warnings, changes as
// information, and the output of --dry-run, --explain and --account on standard output. The lock file is written first,
// so that nothing is printed if that fails.
func (o *EditOptions) ReportAccount(p *option.Session, name string, r *change.Result) error {
	for _, problem := range r.Account.Problems {
		p.Log.Warn(lineText(problem.Message))
	}
	for _, note := range r.Account.Notes {
		p.Log.Info(note.Message)
	}
	logFindings(p, findingsOf(r), o.account)
	if !o.DryRun {
		printChanges(p, r.Account)
	}
	if err := p.SaveLock(); err != nil {
		return err
	}
	if o.account != "" {
		if err := p.WriteAccount("account", o.account, o.newAccount(name, r)); err != nil {
			return err
		}
	}
	if o.account == "-" || o.MetadataFile == "-" {
		return nil // what reads standard output expects JSON and nothing else
	}
	b := bufio.NewWriter(p.Stdout)
	if o.DryRun {
		for _, change := range r.Account.Changes {
			fmt.Fprintln(b, printable.Cell(change.String()))
		}
		if len(r.Account.Changes) == 0 && !p.Opm {
			p.Log.Info("no changes")
		}
	}
	if o.explain {
		news, same := r.Account.News()
		for _, f := range news {
			fmt.Fprintln(b, printable.Cell(factText(f)))
		}
		if same > 0 {
			fmt.Fprintf(b, "%s as before\n", program.Count(same, "edge"))
		}
	}
	return b.Flush()
}

func (o *EditOptions) newAccount(name string, r *change.Result) Account {
	problems := listed(r.Account.Problems)
	for i := range problems {
		// the reference given by the user, if no bundle has the image
		problems[i].Image = redact.Text(problems[i].Image)
	}
	return Account{
		Catalog: redact.Text(name), Kind: r.Kind, DryRun: o.DryRun, Unchanged: r.Unchanged,
		Changes: listed(r.Account.Changes), Facts: listed(r.Account.Facts), Problems: problems,
		Notes:    listed(r.Account.Notes),
		Findings: listed(findingsOf(r)), Files: listed(r.Files),
	}
}

// listed returns a non-nil copy of a list.
func listed[T any](list []T) []T { return append([]T{}, list...) }

// lineText returns a message as one line of the log.
func lineText(message string) string { return strings.ReplaceAll(message, "\n", "; ") }

// factText returns a fact as a sentence.
func factText(f edit.Fact) string {
	in := f.Package
	if f.Channel != "" {
		in += "/" + f.Channel
	}
	text := ""
	switch f.Kind {
	case edit.KindDefaultChannel:
		text = fmt.Sprintf("%s: the default channel is %s", in, f.Value)
	case edit.KindHead:
		text = fmt.Sprintf("%s: the head is %s", in, f.Value)
	case edit.KindReplaces:
		text = fmt.Sprintf("%s: %s replaces %s", in, f.Bundle, f.Value)
	case edit.KindSkip:
		text = fmt.Sprintf("%s: %s skips %s", in, f.Bundle, f.Value)
	case edit.KindSkipRange:
		text = fmt.Sprintf("%s: %s skips the range %s", in, f.Bundle, f.Value)
	default:
		text = fmt.Sprintf("%s: %s %s", in, f.Kind, f.Value)
	}
	return text + " (" + f.Why + ")"
}

// printChanges prints a line of changes per package, and a line for each bundle that was removed as a side effect. The
// account has the details.
func printChanges(p *option.Session, a *edit.Account) {
	if p.Opm {
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
		// Users may miss a bundle that was removed because others were added.
		if c.Kind == edit.KindBundle && c.Action == edit.Removed && of[c.Package].came() {
			p.Log.Warn(c.String())
		} else if p.Log.Enabled(context.Background(), slog.LevelDebug) {
			p.Log.Debug(c.String())
		}
	}
	for _, name := range order {
		p.Log.Info(fmt.Sprintf("package %s: %s", name, of[name].text()))
	}
}

// tally counts the changes of a package.
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

// maxHeads is the number of heads and default channels shown per package.
const maxHeads = 20

// tallied are the kinds in a line, in their order.
var tallied = []edit.Kind{edit.KindBundle, edit.KindChannel, edit.KindDeprecation}

func (t *tally) text() string {
	if t.gone {
		text := "removed"
		if n := t.counts["bundle removed"]; n > 0 {
			text += " with " + program.Count(n, "bundle")
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
				parts = append(parts, fmt.Sprintf("%s %s", program.Count(n, string(kind)), action))
			}
		}
	}
	if n := t.counts["entry removed"]; n > 0 && t.counts["bundle removed"] == 0 && t.counts["channel removed"] == 0 {
		parts = append(parts, program.Count(n, "bundle")+" taken out of channels")
	}
	parts = append(parts, t.heads[:min(len(t.heads), maxHeads)]...)
	if n := len(t.heads) - maxHeads; n > 0 {
		parts = append(parts, fmt.Sprintf("and %d heads more", n))
	}
	edges := t.counts["replace added"] + t.counts["replace changed"] + t.counts["replace removed"] +
		t.counts["skip added"] + t.counts["skip removed"]
	if edges > 0 {
		parts = append(parts, program.Count(edges, "edge")+" changed")
	}
	if len(parts) == 0 {
		return "changed"
	}
	return strings.Join(parts, ", ")
}

// findingsOf returns the findings of reading the catalog from a database and of writing it to one, without those about
// invalid packages that the edit removed.
func findingsOf(r *change.Result) []sqlite.Finding {
	gone := map[string]bool{}
	for _, c := range r.Account.Changes {
		gone[c.Package] = gone[c.Package] || c.Kind == edit.KindPackage && c.Action == edit.Removed
	}
	list := slices.DeleteFunc(slices.Clone(r.Findings),
		func(f sqlite.Finding) bool { return f.Kind == sqlite.Quarantined && gone[f.Package] })
	if r.Written != nil {
		list = append(list, r.Written.Findings...)
	}
	return list
}

// logFindings logs one line per kind of finding: data of the database that differs from the catalog or was lost.
func logFindings(p *option.Session, list []sqlite.Finding, accountFile string) {
	if p.Opm {
		return
	}
	where := program.WhereListed("account", accountFile)
	for _, of := range []struct {
		kind sqlite.FindingKind
		text string
		log  func(string, ...any)
	}{
		{sqlite.Lost, "dropped data that a database cannot store", p.Log.Warn},
		{sqlite.Dropped, "dropped data that a catalog cannot represent", p.Log.Warn},
		{sqlite.Quarantined, "skipped invalid packages", p.Log.Warn},
		{sqlite.Repaired, "repaired missing or damaged data of the database", p.Log.Warn},
		{sqlite.Derived, "derived data that the database does not store", p.Log.Info},
		{sqlite.Changed, "converted data to the form of the database", p.Log.Debug},
	} {
		p.LogFound(of.log, of.text, program.Findings(list, of.kind), where)
	}
}
