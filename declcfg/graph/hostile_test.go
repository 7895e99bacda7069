package graph

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/cputime"
)

// hostileNames would break a format that did not escape them.
var hostileNames = []string{
	"plain", "", " ", "a\nb", "a\r\n\"b", `q"uote`, `back\slash`, `\`, `\"`, "'", "`x`", "<script>alert(1)</script>",
	"</title></svg>", "]]>", "-->",
	"a & b", "&amp;", "#35;", "%s%d%!", "a--b", "-", "end", "[x]", `["x"]`, "x;y", "x|y", "{}", "ünïcode-名前",
	"\u202edesrever", "\x00\x1b[2J", "\xff\xfe",
	"\ufffe\uffff", "a\tb", strings.Repeat("long", 1024), "../../etc", "${x}", "\\N\\G\\l", "*/", "%%",
	"javascript:alert(1)", "\U0001F600",
}

// hostile returns a catalog in which every name, version range and message is hostile.
func hostile() *declcfg.Catalog {
	c := &declcfg.Catalog{}
	for i, name := range hostileNames {
		other := hostileNames[(i+1)%len(hostileNames)]
		c.Packages = append(c.Packages, declcfg.Package{Name: name, DefaultChannel: name, Description: name})
		c.Channels = append(c.Channels, declcfg.Channel{Name: name, Package: name, Entries: []declcfg.ChannelEntry{
			{Name: name, Replaces: other, Skips: []string{other, "gone" + name}, SkipRange: name},
			{Name: other, SkipRange: "<2.0.0"}, {Name: name + "2", Replaces: name + "2"},
		}})
		for j, n := range []string{name, other} {
			c.Bundles = append(c.Bundles,
				declcfg.Bundle{Name: n, Package: name, Image: n, Properties: []declcfg.Property{
					{Type: declcfg.PropertyPackage,
						Value: fmt.Appendf(nil, `{"packageName":"x","version":"1.%d.0"}`, j)}}})
		}
		c.Deprecations = append(c.Deprecations, declcfg.Deprecations{Package: name, Entries: []declcfg.DeprecationEntry{
			{Reference: declcfg.Reference{Schema: declcfg.SchemaPackage}, Message: name},
			{Reference: declcfg.Reference{Schema: declcfg.SchemaChannel, Name: name}, Message: name},
			{Reference: declcfg.Reference{Schema: declcfg.SchemaBundle, Name: name}, Message: name},
		}})
	}
	return c
}

// ranged returns a channel of n entries with skipRanges of 4 KB each, in which no version of it is.
func ranged(n int) *declcfg.Catalog {
	c := &declcfg.Catalog{Packages: []declcfg.Package{{Name: "p", DefaultChannel: "c"}}}
	ch := declcfg.Channel{Name: "c", Package: "p"}
	for i := range n {
		var text strings.Builder
		for k := 0; text.Len() < 4000; k++ {
			fmt.Fprintf(&text, ">=2.%d.%d <2.%d.%d || ", i, 2*k, i, 2*k+1)
		}
		e := declcfg.ChannelEntry{Name: fmt.Sprintf("p.v1.%d.0", i), SkipRange: text.String() + "<1.0.0"}
		if i > 0 {
			e.Replaces = ch.Entries[i-1].Name
		}
		ch.Entries = append(ch.Entries, e)
		c.Bundles = append(c.Bundles, declcfg.Bundle{Name: e.Name, Package: "p", Image: "r/p@sha256:" + strings.Repeat("0", 64),
			Properties: []declcfg.Property{{Type: declcfg.PropertyPackage,
				Value: fmt.Appendf(nil, `{"packageName":"p","version":"1.%d.0"}`, i)}}})
	}
	c.Channels = append(c.Channels, ch)
	return c
}

// The cost of ranges does not grow with the square of the number of entries.
func TestCostOfRanges(t *testing.T) {
	for format, write := range drawings {
		cost := func(n int) func() {
			c := ranged(n)
			return func() {
				if err := write(Options{}, io.Discard, c); err != nil {
					t.Fatal(err)
				}
			}
		}
		if ratio := cputime.Ratio(cost(50), cost(400)); ratio > 24 {
			t.Errorf("%s: eight times the entries take %.1f times as long", format, ratio)
		}
	}
}

// drawings are all formats.
var drawings = map[string]func(Options, io.Writer, *declcfg.Catalog) error{
	"svg": Options.WriteSVG, "html": Options.WriteHTML, "dot": Options.WriteDOT,
	"mermaid": func(o Options, w io.Writer, c *declcfg.Catalog) error {
		chosen, err := o.Select(c)
		if err != nil {
			return err
		}
		return MermaidOptions{Repair: true, V0Semantics: true}.Write(w, chosen)
	},
}

func draw(t testing.TB, format string, c *declcfg.Catalog, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := drawings[format](o, &b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// elements parses XML, counts the elements by name, and returns their text.
func elements(t testing.TB, doc string, html bool) (map[string]int, string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(doc))
	if html {
		d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	}
	count := map[string]int{}
	var text strings.Builder
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count, text.String()
		}
		if err != nil {
			t.Fatalf("%v near %q", err, doc[max(0, int(d.InputOffset())-80):d.InputOffset()])
		}
		switch e := token.(type) {
		case xml.StartElement:
			count[e.Name.Local]++
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" ||
					a.Name.Local == "href" && !strings.HasPrefix(a.Value, "#") {
					t.Errorf("attribute %s=%q", a.Name.Local, a.Value)
				}
			}
		case xml.CharData:
			text.Write(e)
		}
	}
}

// A hostile name is text in every format and never syntax.
func TestHostileNames(t *testing.T) {
	c := hostile()
	for format := range drawings {
		t.Run(format, func(t *testing.T) {
			doc := draw(t, format, c, Options{})
			for _, bad := range []string{"\x00", "\x1b", "\r", "\u202e", "\ufffe", "\xff", "%!("} {
				if i := strings.Index(doc, bad); i >= 0 {
					t.Errorf("%q is in it: %q", bad, doc[max(0, i-60):i+10])
				}
			}
			switch format {
			case "svg":
				count, text := elements(t, doc, false)
				if count["script"] != 0 || count["svg"] != 1 {
					t.Errorf("elements %v", count)
				}
				if !strings.Contains(text, "<script>alert(1)</script>") {
					t.Error("the name is not shown")
				}
			case "html":
				if n := strings.Count(doc, "<script>"); n != 1 {
					t.Errorf("%d scripts", n)
				}
				if n := strings.Count(doc, "</svg>"); n != len(hostileNames)+1 {
					t.Errorf("%d pictures", n)
				}
			case "dot":
				checkDOT(t, doc)
			case "mermaid":
				checkMermaid(t, doc)
			}
		})
	}
}

// checkDOT checks that DOT has only quoted strings and plain words in lines of a few forms.
func checkDOT(t *testing.T, doc string) {
	t.Helper()
	quoted := `"(?:[^"\\\n]|\\.)*"`
	value := `(?:` + quoted + `|[a-zA-Z0-9]+)`
	attributes := `\[[a-z]+=` + value + `(?:, [a-z]+=` + value + `)*\]`
	line := regexp.MustCompile(
		`^ *(?:digraph upgrades \{|subgraph cluster_[0-9_]+ \{|\}|[a-z]+=` + value + `;|(?:graph|node|edge) ` +
			attributes + `;|n[0-9_]+(?: -> n[0-9_]+)? ` + attributes + `;)$`)
	depth := 0
	for _, l := range strings.Split(strings.TrimSuffix(doc, "\n"), "\n") {
		if !line.MatchString(l) {
			t.Errorf("no statement: %.200q", l)
		}
		switch {
		case strings.HasSuffix(l, "{"):
			depth++
		case strings.TrimSpace(l) == "}":
			depth--
		}
	}
	if depth != 0 {
		t.Errorf("%d blocks are open", depth)
	}
}

// checkMermaid checks that the lines of a drawing have only the expected forms.
func checkMermaid(t *testing.T, doc string) {
	t.Helper()
	const id = `[\p{L}\p{Nd}._+/:*'!$?_-]+`
	const label = "\"(?:[^\"\n`]|#[0-9]+;)*\""
	node := id + `\[` + label + `\]`
	nodes := regexp.MustCompile(node)
	line := regexp.MustCompile(`^(?:graph LR|  classDef .*|  %% package .*|    %% channel .*|  subgraph ` + label +
		`|    subgraph ` + node + `|  +end|      ` + node +
		`(?:-- (?:skip|replace|` + label + `) --> ` + node + `)?|style ` + id +
		` .*|class [^ ]+ [a-z]+|linkStyle [0-9,]+ .*)$`)
	for _, l := range strings.Split(strings.TrimSuffix(doc, "\n"), "\n") {
		if !line.MatchString(l) {
			t.Errorf("no line of mermaid: %.200q", l)
		}
		for _, n := range nodes.FindAllString(l, -1) {
			if name, _, _ := strings.Cut(n, "["); strings.Contains(strings.TrimPrefix(name, "-->"), "--") ||
				strings.Contains(name, "-.") {
				t.Errorf("an edge within the identifier %q: %.200q", name, l)
			}
		}
	}
}

// A failing writer ends every drawing with its error.
func TestFailingWriter(t *testing.T) {
	for format, write := range drawings {
		if err := write(Options{}, failing{}, hostile()); !errors.Is(err, io.ErrShortBuffer) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortBuffer }
