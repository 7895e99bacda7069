package graph

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// WriteDOT writes the upgrade graphs of a catalog in Graphviz's language: a cluster for each package with a cluster for
// each of its channels, and edges from the older bundle to the newer one; skipRanges are drawn for heads only. The
// catalog need not be valid. More edges than 1 << 20 are a [declcfg.ErrLimit].
func (o Options) WriteDOT(w io.Writer, c *declcfg.Catalog) error {
	sheets, err := o.sheets(c)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	d := dot{w: out}
	d.printf("digraph upgrades {\n  label=%s;\n  labelloc=t;\n  rankdir=BT;\n  compound=true;\n",
		dotText(title(sheets)))
	d.printf(
		"  graph [fontname=\"sans-serif\"];\n  node [shape=box, style=rounded, fontname=\"monospace\", " +
			"fontsize=11];\n  edge [fontname=\"sans-serif\", fontsize=9];\n")
	for i, s := range sheets {
		if err := d.writeSheet(i, s); err != nil {
			return err
		}
	}
	d.printf("}\n")
	return out.Flush()
}

type dot struct {
	w     *bufio.Writer
	edges int
}

func (d *dot) printf(format string, args ...any) { fmt.Fprintf(d.w, format, args...) }

func (d *dot) writeSheet(i int, s *sheet) error {
	label := visible(s.name)
	if s.deprecation != nil {
		label += " (deprecated)"
	}
	d.printf("  subgraph cluster_%d {\n    label=%s;\n", i, dotText(label))
	for _, l := range s.lanes {
		if err := d.lane(i, l); err != nil {
			return err
		}
	}
	for _, r := range s.rows {
		if len(r.nodes) == 0 {
			d.printf("    n%d_%d [label=%s, color=red];\n", i, r.index, dotText(visible(r.name)+" (in no channel)"))
		}
	}
	_, err := d.w.WriteString("  }\n")
	return err
}

func (d *dot) lane(i int, l *lane) error {
	label := visible(l.name)
	if l.isDefault {
		label += " (default)"
	}
	if l.deprecation != nil {
		label += " (deprecated)"
	}
	d.printf("    subgraph cluster_%d_%d {\n      label=%s;\n", i, l.index, dotText(label))
	id := func(n *node) string { return fmt.Sprintf("n%d_%d_%d", i, l.index, n.row.index) }
	for _, n := range l.nodes {
		label := visible(n.row.name)
		if n.entry != nil && n.entry.SkipRange != "" {
			label += "\nskipRange " + shown(n.entry.SkipRange, maxMessage)
		}
		d.printf("      %s [label=%s, tooltip=%s%s];\n", id(n), dotText(label), dotText(n.title()), n.dotLooks())
	}
	d.printf("    }\n")
	edge := func(from, to *node, attributes string) error {
		if d.edges++; d.edges > defaultMaxEdges {
			return fmt.Errorf("more than %d edges: %w", defaultMaxEdges, declcfg.ErrLimit)
		}
		_, err := fmt.Fprintf(d.w, "    %s -> %s [%s];\n", id(from), id(to), attributes)
		return err
	}
	for _, n := range l.nodes {
		if n.replaces != nil {
			if err := edge(n.replaces, n, "tooltip=replaces"); err != nil {
				return err
			}
		}
		for _, skipped := range n.skips {
			if err := edge(skipped, n, "style=dashed, constraint=false, tooltip=skips"); err != nil {
				return err
			}
		}
		// All ranges together would have an edge for nearly every pair of bundles, and layout programs would take
		// forever.
		if !n.head || n.entry.SkipRange == "" {
			continue
		}
		for _, older := range l.inRange(n) {
			if err := edge(older, n,
				"style=dotted, constraint=false, tooltip="+dotText("skipRange "+visible(n.entry.SkipRange))); err !=
				nil {
				return err
			}
		}
	}
	return nil
}

// dotLooks returns the attributes for the state of a node.
func (n *node) dotLooks() string {
	var styles []string
	looks := ""
	if n.head {
		looks += ", penwidth=3"
	}
	if n.entry == nil || n.skipped {
		styles = append(styles, "dashed")
	}
	if n.row.deprecation != nil {
		styles = append(styles, "filled")
		looks += `, fillcolor="#E8960F"`
	}
	if len(styles) > 0 {
		looks += fmt.Sprintf(", style=\"%s\"", strings.Join(append(styles, "rounded"), ","))
	}
	return looks
}

// dotText quotes a visible text. Backslashes are doubled: in labels they begin escapes.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
