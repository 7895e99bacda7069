package diff

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// TextOptions configure the text of a report.
type TextOptions struct {
	// Colour marks additions, removals and changes with terminal colours.
	Colour bool
	// Clean makes text from a catalog safe to print on one line. If it is nil, text is printed unchanged.
	Clean func(string) string
}

// WriteText writes a report as text: packages in turn, each line with "+" for additions, "-" for removals, "~" for
// changes. Nothing is written if there are no differences.
func (r *Report) WriteText(w io.Writer, o TextOptions) error {
	if o.Clean == nil {
		o.Clean = func(s string) string { return s }
	}
	t := &text{w: bufio.NewWriter(w), o: o}
	for i := range r.Packages {
		t.writePackage(&r.Packages[i])
	}
	for _, b := range r.Others {
		t.blob(0, b)
	}
	if n := len(r.Images.Added) + len(r.Images.Removed); n > 0 {
		t.line(0, Changed, "images: %d added, %d removed", len(r.Images.Added), len(r.Images.Removed))
		for _, image := range r.Images.Added {
			t.line(1, Added, "%s", t.name(image))
		}
		for _, image := range r.Images.Removed {
			t.line(1, Removed, "%s", t.name(image))
		}
	}
	return t.w.Flush()
}

// text writes lines and keeps the first write error.
type text struct {
	w *bufio.Writer
	o TextOptions
}

// maxShown is how many bytes of a value are printed.
const maxShown = 160

func (t *text) name(s string) string {
	if s == "" {
		return "(none)"
	}
	if s = t.o.Clean(s); len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}

func (t *text) line(depth int, c Change, format string, args ...any) {
	sign, colour := "~", "\x1b[33m"
	switch c {
	case Added:
		sign, colour = "+", "\x1b[32m"
	case Removed:
		sign, colour = "-", "\x1b[31m"
	}
	if !t.o.Colour {
		colour = ""
	}
	t.w.WriteString(strings.Repeat("  ", depth) + colour + sign + " ")
	fmt.Fprintf(t.w, format, args...)
	if colour != "" {
		t.w.WriteString("\x1b[0m")
	}
	t.w.WriteString("\n")
}

// label returns the printed name of a field.
func label(field string) string {
	if field == "defaultChannel" {
		return "default channel"
	}
	return field
}

func (t *text) writePackage(p *packageDiff) {
	t.line(0, p.Change, "package %s%s", t.name(p.Name), p.summary())
	if p.Change == Changed {
		t.writeFields(1, p.Fields)
		t.properties(1, p.Properties)
	} else if d := p.field("defaultChannel"); d != "" {
		t.line(1, p.Change, "default channel %s", t.name(d))
	}
	for i := range p.Channels {
		t.writeChannel(&p.Channels[i])
	}
	for i := range p.Bundles {
		t.writeBundle(&p.Bundles[i])
	}
	for _, d := range p.Deprecations {
		t.deprecation(d)
	}
	for _, b := range p.Others {
		t.blob(1, b)
	}
}

// summary counts the content of a package that was added or removed.
func (p *packageDiff) summary() string {
	if p.Change == Changed || len(p.Channels)+len(p.Bundles) == 0 {
		return ""
	}
	return ": " + count(len(p.Channels), "channel", "channels") + ", " + count(len(p.Bundles), "bundle", "bundles")
}

func (p *packageDiff) field(name string) string {
	for _, f := range p.Fields {
		if f.Field == name {
			return f.Old + f.New
		}
	}
	return ""
}

func (t *text) writeFields(depth int, fields []fieldDiff) {
	for _, f := range fields {
		switch {
		case f.Old == "":
			t.line(depth, Added, "%s %s", label(f.Field), t.name(f.New))
		case f.New == "":
			t.line(depth, Removed, "%s %s", label(f.Field), t.name(f.Old))
		default:
			t.line(depth, Changed, "%s %s -> %s", label(f.Field), t.name(f.Old), t.name(f.New))
		}
	}
}

func (t *text) properties(depth int, properties []propertyDiff) {
	for i := 0; i < len(properties); i++ {
		p := properties[i]
		if large(p.Old) || large(p.New) {
			// Counts are easier to compare than digests.
			n := 1
			for i+1 < len(properties) && properties[i+1].Type == p.Type && properties[i+1].Change == p.Change {
				i, n = i+1, n+1
			}
			what := "property " + t.name(p.Type)
			if n > 1 {
				what = fmt.Sprintf("%d properties %s", n, t.name(p.Type))
			}
			t.line(depth, p.Change, "%s", what)
			continue
		}
		switch p.Change {
		case Added:
			t.line(depth, Added, "property %s %s", t.name(p.Type), t.name(string(p.New)))
		case Removed:
			t.line(depth, Removed, "property %s %s", t.name(p.Type), t.name(string(p.Old)))
		default:
			t.line(depth, Changed, "property %s %s -> %s", t.name(p.Type), t.name(string(p.Old)), t.name(string(p.New)))
		}
	}
}

// large reports whether only the digest of a value is known.
func large(v json.RawMessage) bool { return strings.HasPrefix(string(v), `{"digest":"sha256:`) }

// count formats a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (t *text) writeChannel(c *channelDiff) {
	if c.Change != Changed {
		var facts []string
		if len(c.Entries) > 0 {
			facts = append(facts, count(len(c.Entries), "entry", "entries"))
		}
		for _, f := range c.Fields {
			facts = append(facts, "head "+t.name(f.Old+f.New))
		}
		colon := ""
		if len(facts) > 0 {
			colon = ": "
		}
		t.line(1, c.Change, "channel %s%s%s", t.name(c.Name), colon, strings.Join(facts, ", "))
		return
	}
	t.line(1, Changed, "channel %s", t.name(c.Name))
	t.writeFields(2, c.Fields)
	t.properties(2, c.Properties)
	for _, e := range c.Entries {
		switch e.Change {
		case Added:
			t.line(2, Added, "%s%s", t.name(e.Name), t.edge(e.New))
		case Removed:
			t.line(2, Removed, "%s%s", t.name(e.Name), t.edge(e.Old))
		default:
			t.line(2, Changed, "%s", t.name(e.Name))
			t.edges(e.Old, e.New)
		}
	}
}

// edge prints the upgrade edges of an entry.
func (t *text) edge(e *edge) string {
	var parts []string
	if e.Replaces != "" {
		parts = append(parts, "replaces "+t.name(e.Replaces))
	}
	if len(e.Skips) > 0 {
		parts = append(parts, "skips "+t.list(e.Skips))
	}
	if e.SkipRange != "" {
		parts = append(parts, "skipRange "+t.name(e.SkipRange))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// list joins names, the first few of many.
func (t *text) list(names []string) string {
	const most = 8
	shown := make([]string, 0, most)
	for _, n := range names[:min(len(names), most)] {
		shown = append(shown, t.name(n))
	}
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(shown, " "), more)
	}
	return strings.Join(shown, " ")
}

// edges prints the changed edges of an entry.
func (t *text) edges(old, current *edge) {
	t.writeFields(3,
		slices.DeleteFunc([]fieldDiff{{"replaces", old.Replaces, current.Replaces},
			{"skipRange", old.SkipRange, current.SkipRange}},
			func(f fieldDiff) bool { return f.Old == f.New }))
	missing := func(names, from []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool {
			_, there := slices.BinarySearch(from, n)
			return there
		})
	}
	if more := missing(current.Skips, old.Skips); len(more) > 0 {
		t.line(3, Added, "skips %s", t.list(more))
	}
	if fewer := missing(old.Skips, current.Skips); len(fewer) > 0 {
		t.line(3, Removed, "skips %s", t.list(fewer))
	}
}

func (t *text) writeBundle(b *bundleDiff) {
	version := ""
	if b.Version != "" {
		version = " (" + t.name(b.Version) + ")"
	}
	if b.Change != Changed {
		image := ""
		for _, f := range b.Fields {
			image = " " + t.name(f.Old+f.New)
		}
		t.line(1, b.Change, "bundle %s%s%s", t.name(b.Name), version, image)
		return
	}
	t.line(1, Changed, "bundle %s%s", t.name(b.Name), version)
	t.writeFields(2, b.Fields)
	t.properties(2, b.Properties)
	for _, r := range b.RelatedImages {
		name := ""
		if r.Name != "" {
			name = t.name(r.Name) + " "
		}
		t.line(2, r.Change, "related image %s%s", name, t.name(r.Image))
	}
}

func (t *text) deprecation(d deprecationDiff) {
	what := strings.TrimPrefix(t.name(d.Schema), "olm.")
	if d.Name != "" {
		what += " " + t.name(d.Name)
	}
	if d.Change == Changed {
		t.line(1, Changed, "deprecation of %s: %s -> %s", what, t.name(d.Old), t.name(d.New))
		return
	}
	t.line(1, d.Change, "deprecation of %s: %s", what, t.name(d.Old+d.New))
}

func (t *text) blob(depth int, b blobDiff) {
	what := "blob " + t.name(b.Schema)
	if b.Name != "" {
		what += " " + t.name(b.Name)
	}
	if b.Field != "" {
		what = "field " + t.name(b.Field) + " of " + strings.TrimPrefix(what, "blob ")
	}
	t.line(depth, b.Change, "%s", what)
}
