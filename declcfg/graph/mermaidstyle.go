package graph

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// styles writes the styles of deprecated and skipped elements.
func (m *mermaid) styles(w *bufio.Writer) error {
	for _, ch := range m.channels {
		if m.marked.packages[[2]string{"", ch.Package}] {
			if !m.Repair {
				m.packages = m.packages[:0] // opm keeps the last one only
			}
			if !slices.Contains(m.packages, ch.Package) {
				m.packages = append(m.packages, ch.Package)
			}
		}
		if m.marked.channels[[2]string{m.scope(ch.Package), ch.Name}] {
			m.channelIDs = append(m.channelIDs, m.id(ch.Package)+"-"+m.id(ch.Name))
		}
	}
	for _, p := range m.packages {
		fmt.Fprintf(w, "style %s %s\n", m.id(p), deprecatedPackageStyle)
	}
	for _, id := range m.channelIDs {
		fmt.Fprintf(w, "style %s %s\n", id, deprecatedChannelStyle)
	}
	for _, class := range []string{"deprecated", "skipped", "deprecatedskipped"} {
		if ids := m.nodes[class]; len(ids) > 0 {
			slices.Sort(ids)
			fmt.Fprintf(w, "class %s %s\n", strings.Join(ids, ","), class)
		}
	}
	var numbers []string
	for _, ch := range m.channels {
		for _, n := range ch.skippedLinks {
			numbers = append(numbers, strconv.Itoa(n))
		}
	}
	if len(numbers) > 0 {
		_, err := fmt.Fprintf(w, "linkStyle %s %s\n", strings.Join(numbers, ","), skippedLinkStyle)
		return err
	}
	return nil
}

// id is like [mermaidID] with a replacement for an empty name: two consecutive dashes would be an edge. opm does not
// replace it.
func (m *mermaid) id(name string) string {
	if name == "" && m.Repair {
		return "_"
	}
	return mermaidID(name)
}

// mermaidID makes a name usable in an identifier. Characters that would end the identifier become their number;
// ordinary names do not change.
func mermaidID(name string) string {
	for i, r := range name {
		if !plainInID(name, i, r) {
			return escapeID(name)
		}
	}
	return name
}

// plainInID reports whether a character may be in an identifier. A dash followed by another one or a dot would be read
// as an edge; the parts of an identifier are joined by dashes.
func plainInID(name string, i int, r rune) bool {
	switch {
	case r == '-':
		return i > 0 && i+1 < len(name) && !strings.ContainsRune("->.", rune(name[i+1]))
	case r == '.' && i == 0:
		return false
	case r == unicode.ReplacementChar:
		return false
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._+/:*'!$?", r)
}

func escapeID(name string) string {
	var b strings.Builder
	for i, r := range name {
		if plainInID(name, i, r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "_%x_", r)
		}
	}
	return b.String()
}

// mermaidLabel quotes a name. Characters with a meaning inside the quotes become mermaid's entities.
func mermaidLabel(name string) string {
	name = visible(name)
	if !strings.ContainsAny(name, "\"#&`<") {
		return `"` + name + `"`
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case strings.IndexByte("\"#&`", c) >= 0, c == '<' && i+1 < len(name) && opensTag(name[i+1]):
			fmt.Fprintf(&b, "#%d;", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// opensTag reports whether a "<" before the character would begin a tag. That of a version range does not.
func opensTag(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("/!?", c) >= 0
}
