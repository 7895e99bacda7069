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
			p.printLine("      %s", f)
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

func (p *printer) permissions(accounts []Account) {
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

func (p *printer) definitions(all []DefinitionChange) {
	if len(all) > 0 {
		p.section("definitions")
	}
	for _, d := range all {
		p.printLine("  %s", d.Name)
		for _, l := range d.Lines() {
			p.printLine("%s%s%s", strings.Repeat("    ", l.Depth), l.Text, mark(l.Refused))
		}
		if len(d.Refusals) > 0 {
			p.printLine("    OLM v1 refuses the upgrade:")
		}
		for _, c := range d.Refusals {
			p.printLine("        %s", c.Sentence())
		}
		if d.NotJudged != "" {
			p.printLine("    not known whether OLM v1 refuses the upgrade: %s", d.NotJudged)
		}
	}
}

// Line says what changes in a definition or, at the depth 2, in a version of it. Refused is set if OLM v1 refuses the
// upgrade for it.
type Line struct {
	Depth   int
	Text    string
	Refused bool
}

// Lines says what changes in a definition. All but notes about a version begin with a sign: "+" for what is new, "-" for
// what is gone, "~" for another value, and "!" for what is required now.
func (d *DefinitionChange) Lines() []Line {
	out := d.lines(nil, 1, "", part{"+ version ", d.Added, "", nil}, part{"- version ", d.Removed, "", nil})
	for _, v := range d.Versions {
		out = d.lines(out, 1, "", part{"~ version ", []string{v.Name}, "", nil})
		out = d.lines(out, 2, v.Name, part{"", v.Notes, "", nil}, part{"- field ", v.Removed, "", removes},
			part{"~ field ", v.Retyped, " has another type", retypes}, part{"! field ", v.Required, " is required", demands},
			part{"+ field ", v.Added, "", nil})
		for _, c := range v.Details {
			what := c.Attribute
			switch c.Field {
			case "":
			case "^":
				what = "schema: " + what
			default:
				what = "field " + c.Field + ": " + what
			}
			out = append(out, Line{2, fmt.Sprintf("~ %s: %s -> %s", what, short(c.Old), short(c.New)), c.Refused})
		}
	}
	return out
}

// part are lines with a name each. refused, unless nil, reports whether OLM v1 refuses one for a field of a version.
type part struct {
	before  string
	names   []string
	after   string
	refused func(all []RefusedChange, version, field string) bool
}

func (d *DefinitionChange) lines(out []Line, depth int, version string, parts ...part) []Line {
	for _, p := range parts {
		for _, name := range p.names {
			out = append(out, Line{depth, p.before + name + p.after, p.refused != nil && p.refused(d.Refusals, version, name)})
		}
	}
	return out
}

func mark(refused bool) string {
	if refused {
		return " (refused)"
	}
	return ""
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
