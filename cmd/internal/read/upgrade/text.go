package upgrade

import (
	"fmt"
	"io"
	"strings"
)

const maxValue = 100 // runes of a value in the text

// WriteText writes the report for people, permissions first; clean makes text from outside safe to show.
func (r *Report) WriteText(w io.Writer, clean func(string) string) error {
	p := &printer{w: w, clean: clean}
	if r.Same {
		p.printLine("no differences")
		return p.err
	}
	p.permissions(r.Permissions)
	p.definitions(r.Definitions)
	if len(r.Added)+len(r.Removed)+len(r.Changed) > 0 {
		p.section("objects")
	}
	for _, o := range r.Added {
		p.printLine("  + %s", o)
	}
	for _, o := range r.Removed {
		p.printLine("  - %s", o)
	}
	for _, c := range r.Changed {
		p.printLine("  ~ %s", c.Object)
		for _, f := range c.Fields {
			p.printLine("      %s: %s -> %s", f.Path, short(f.Old), short(f.New))
		}
	}
	if n := len(r.Renamed); n > 0 {
		p.printLine("\n%d roles and bindings have other names, for the same accounts", n)
	}
	return p.err
}

// printer writes lines until the first error.
type printer struct {
	w       io.Writer
	clean   func(string) string
	started bool
	err     error
}

func (p *printer) printLine(format string, a ...any) {
	if p.err == nil {
		text := fmt.Sprintf(format, a...)
		blank := strings.HasPrefix(text, "\n")
		if text = p.clean(strings.TrimPrefix(text, "\n")); blank {
			text = "\n" + text
		}
		_, p.err = fmt.Fprintln(p.w, text)
	}
}

func (p *printer) section(title string) {
	if p.started {
		title = "\n" + title
	}
	p.started = true
	p.printLine("%s", title)
}

func (p *printer) permissions(accounts []account) {
	if len(accounts) > 0 {
		p.section("permissions")
	}
	for _, a := range accounts {
		where := "in the cluster"
		if a.Namespace != "" {
			where = "in namespace " + a.Namespace
		}
		p.printLine("  %s, %s", a.Subject, where)
		for _, g := range a.Gained {
			p.printLine("    + %s", g)
		}
		for _, l := range a.Lost {
			p.printLine("    - %s", l)
		}
	}
}

func (p *printer) definitions(all []definitionChange) {
	if len(all) > 0 {
		p.section("definitions")
	}
	for _, d := range all {
		p.printLine("  %s", d.Name)
		p.printEach("    + version %s", d.Added)
		p.printEach("    - version %s", d.Removed)
		for _, v := range d.Versions {
			p.version(d, v)
		}
		if len(d.Refusals) > 0 {
			p.printLine("    OLM v1 refuses the upgrade:")
		}
		for _, c := range d.Refusals {
			p.printLine("        %s", c)
		}
		if d.NotJudged != "" {
			p.printLine("    not known whether OLM v1 refuses the upgrade: %s", d.NotJudged)
		}
	}
}

// version writes what changes in a version; a line about what OLM v1 refuses says so.
func (p *printer) version(d definitionChange, v versionChange) {
	p.printLine("    ~ version %s", v.Name)
	p.printEach("        %s", v.Notes)
	fields := func(format string, names []string, refused func(name string) bool) {
		for _, name := range names {
			p.printLine(format+"%s", name, mark(refused(name)))
		}
	}
	fields("        - field %s", v.Removed, func(name string) bool { return removes(d.Refusals, v.Name, name) })
	fields("        ~ field %s has another type", v.Retyped,
		func(name string) bool { return isRefused(d.Refusals, v.Name, name, "type") })
	fields("        ! field %s is required", v.Required,
		func(name string) bool { return demands(d.Refusals, v.Name, name) })
	p.printEach("        + field %s", v.Added)
	for _, c := range v.Details {
		what := c.Attribute
		switch c.Field {
		case "":
		case "^":
			what = "schema: " + what
		default:
			what = "field " + c.Field + ": " + what
		}
		p.printLine("        ~ %s: %s -> %s%s", what, short(c.Old), short(c.New), mark(c.Refused))
	}
}

func mark(refused bool) string {
	if refused {
		return " (refused)"
	}
	return ""
}

func (p *printer) printEach(format string, names []string) {
	for _, n := range names {
		p.printLine(format, n)
	}
}

// short returns a value for a line; an absent one is a dash.
func short(value []byte) string {
	if value == nil {
		return "-"
	}
	if text := []rune(string(value)); len(text) > maxValue {
		return string(text[:maxValue]) + "…"
	}
	return string(value)
}
