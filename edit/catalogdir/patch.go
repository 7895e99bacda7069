package catalogdir

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// patch changes the text of a YAML mapping from the value before to the value now, both JSON objects. Unchanged parts
// keep their text, position and comments. fresh is the text of the value now as declcfg writes it. ok is false if the
// text is not in block style. The caller must parse the result and compare: patch works on lines and does not
// understand all of YAML.
//
// All line ends are one byte.
func patch(text, fresh string, before, now []byte, depth int) (patched string, ok bool) {
	was, okWas := parseObject(before)
	is, okIs := parseObject(now)
	if !okWas || !okIs || depth > maxPatchDepth {
		return "", false
	}
	old, ok := entriesOf(text)
	if !ok {
		return "", false
	}
	anew, ok := entriesOf(fresh)
	if !ok {
		return "", false
	}
	written := make([]string, len(old))
	for i, e := range old {
		written[i] = e.key
	}
	// Keys with empty values, such as an empty list, are not in the JSON values; they stay too.
	keys := inOrder(written, union(written, anew, is))
	var out strings.Builder
	for _, key := range keys {
		i := slices.IndexFunc(old, func(e entry) bool { return e.key == key })
		j := slices.IndexFunc(anew, func(e entry) bool { return e.key == key })
		switch {
		case j < 0 && i < 0:
			return "", false
		case j < 0 && was.values[key] != nil: // the key is removed
		case j < 0 || i >= 0 && was.values[key] != nil && canonical(was.values[key]) == canonical(is.values[key]):
			out.WriteString(old[i].text)
		case i < 0:
			out.WriteString(anew[j].text)
		default:
			body, blank := cutBlank(old[i].text)
			list, ok := patchList(body, anew[j].text, was.values[key], is.values[key], depth)
			if !ok {
				lead := old[i].lead()
				list = lead + remarked(body[len(lead):], anew[j].text)
			}
			out.WriteString(list + blank)
		}
	}
	return out.String(), true
}

// cutBlank splits off the blank lines at the end of a text.
func cutBlank(text string) (body, blank string) {
	end := min(len(strings.TrimRight(text, "\n"))+1, len(text))
	return text[:end], text[end:]
}

// remarked returns a key with its new value and the trailing comment of the old line, if both are one line.
func remarked(old, anew string) string {
	value, remark, ok := strings.Cut(old, " #")
	if !ok || strings.Count(old, "\n") != 1 || strings.Count(anew, "\n") != 1 || strings.ContainsAny(value, "\"'") {
		return anew
	}
	spaces := value[len(strings.TrimRight(value, " ")):]
	return strings.TrimSuffix(anew, "\n") + spaces + " #" + remark
}

// union returns the keys of the new text in their order. Keys of the old text with empty values are inserted after
// their old predecessor.
func union(old []string, anew []entry, is object) []string {
	var keys []string
	for _, e := range anew {
		keys = append(keys, e.key)
	}
	for n, key := range old {
		if is.values[key] == nil && !slices.Contains(keys, key) {
			at := 0
			if n > 0 {
				at = slices.Index(keys, old[n-1]) + 1
			}
			keys = slices.Insert(keys, at, key)
		}
	}
	return keys
}

// entry is a key of a block mapping with its value, or an item of a list, including the comments above it.
type entry struct {
	key, text string
}

// lead returns the comments above it.
func (e entry) lead() string {
	at := 0
	for at < len(e.text) && e.text[at] == '#' {
		at += len(nextLine([]byte(e.text[at:])))
	}
	return e.text[:at]
}

// entriesOf splits a mapping whose keys are not indented.
func entriesOf(text string) ([]entry, bool) {
	var entries []entry
	var lead string
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			line += "\n"
		}
		switch c := line[0]; {
		case c == '#':
			lead += line
		case c == ' ', c == '-', c == '\n':
			if len(entries) == 0 {
				return nil, false
			}
			entries[len(entries)-1].text += lead + line
			lead = ""
		default:
			key, ok := plainKey(line)
			if !ok || slices.ContainsFunc(entries, func(e entry) bool { return e.key == key }) {
				return nil, false
			}
			entries = append(entries, entry{key, lead + line})
			lead = ""
		}
	}
	if len(entries) == 0 {
		return nil, false
	}
	entries[len(entries)-1].text += lead
	return entries, true
}

func plainKey(line string) (string, bool) {
	for i := range len(line) {
		switch c := line[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_',
			i > 0 && (c >= '0' && c <= '9' || c == '-' || c == '.'):
		case c == ':' && i > 0 && (line[i+1] == ' ' || line[i+1] == '\n'):
			return line[:i], true
		default:
			return "", false
		}
	}
	return "", false
}

// patchList is like patch, for a key with a list.
func patchList(text, fresh string, before, now []byte, depth int) (string, bool) {
	was, okWas := array(before)
	is, okIs := array(now)
	head, indent, old, ok := itemsOf(text)
	_, _, anew, okNew := itemsOf(fresh)
	if !okWas || !okIs || !ok || !okNew || len(old) != len(was) || len(anew) != len(is) {
		return "", false
	}
	var out strings.Builder
	out.WriteString(head)
	for n, p := range pair(was, is) {
		if p.same {
			out.WriteString(old[p.old])
			continue
		}
		item := shifted(anew[n], indent)
		if p.old >= 0 {
			if patched, ok := patchItem(old[p.old], anew[n], indent, was[p.old], is[n], depth+1); ok {
				item = patched
			}
		}
		out.WriteString(item)
	}
	return out.String(), true
}

// itemsOf splits the list of a key into the line of the key with everything up to the first item, the column of the
// dashes, and the items.
func itemsOf(text string) (head string, indent int, items []string, ok bool) {
	lead, indent, began := "", -1, false
	for line := range strings.Lines(text) {
		content := strings.TrimLeft(line, " ")
		at := len(line) - len(content)
		switch {
		case !began: // the line of the key, and comments above it
			began = line[0] != '#'
			head += line
		case indent < 0 && (content == "\n" || content[0] == '#'):
			head += line
		case (indent < 0 || at == indent) && (strings.HasPrefix(content, "- ") || content == "-\n"):
			indent = at
			items, lead = append(items, lead+line), ""
		case indent < 0:
			return "", 0, nil, false
		case at == indent && content[0] == '#':
			lead += line
		default:
			items[len(items)-1] += lead + line
			lead = ""
		}
	}
	if len(items) == 0 {
		return "", 0, nil, false
	}
	items[len(items)-1] += lead
	return head, indent, items, true
}

// patchItem is patch for a list item that is a mapping.
func patchItem(text, fresh string, indent int, before, now []byte, depth int) (string, bool) {
	lead, at := "", 0
	for strings.HasPrefix(text[at:], strings.Repeat(" ", indent)+"#") {
		at += len(nextLine([]byte(text[at:])))
	}
	lead, text = text[:at], text[at:]
	content := strings.TrimLeft(text[indent+1:], " ")
	width := len(text) - len(content) - indent // of the dash and the spaces after it
	if content == "" || content[0] == '\n' || !strings.HasPrefix(fresh, "- ") {
		return "", false
	}
	text, ok := outdented(text, indent+width)
	if !ok {
		return "", false
	}
	if fresh, ok = outdented(fresh, 2); !ok {
		return "", false
	}
	patched, ok := patch(text, fresh, before, now, depth)
	if !ok || patched == "" || patched[0] == '#' {
		return "", false
	}
	patched = shifted(patched, indent+width)
	return lead + strings.Repeat(" ", indent) + "-" + strings.Repeat(" ", width-1) + patched[indent+width:], true
}

// shifted indents lines.
func shifted(text string, by int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			out.WriteString(strings.Repeat(" ", by))
		}
		out.WriteString(line)
	}
	return out.String()
}

// outdented removes indentation from lines, the first of which begins with a dash.
func outdented(text string, by int) (string, bool) {
	var out strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case out.Len() == 0:
			line = line[by:]
		case strings.TrimRight(line, " ") == "\n":
			line = "\n"
		case strings.HasPrefix(line, strings.Repeat(" ", by)):
			line = line[by:]
		default:
			return "", false
		}
		out.WriteString(line)
	}
	return out.String(), true
}

// arranged formats a JSON text in the form f with the keys in the order of the old text.
func (f form) arranged(before, compact []byte) ([]byte, bool) {
	text := withKeyOrder(before, compact, 0)
	if f.indent != "" {
		var buf bytes.Buffer
		if json.Indent(&buf, text, "", f.indent) != nil {
			return nil, false
		}
		text = buf.Bytes()
	} else if f.spaces {
		text = spaced(text)
	}
	if f.crlf {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	return text, true
}

// ordered returns the text of a new document with its keys in the order of another document's text.
func (f form) ordered(text, like []byte, b declcfg.Blob) ([]byte, bool) {
	if f.json {
		return f.arranged(like, declcfg.AppendJSON(nil, b, false))
	}
	plain := func(text []byte) string { return strings.ReplaceAll(string(text), "\r\n", "\n") }
	_, content, _ := comments(like)
	there, ok := entriesOf(plain(content))
	anew, okNew := entriesOf(plain(text))
	if !ok || !okNew {
		return nil, false
	}
	var keys, before []string
	for _, e := range anew {
		keys = append(keys, e.key)
	}
	for _, e := range there {
		before = append(before, e.key)
	}
	var out strings.Builder
	for _, key := range inOrder(before, keys) {
		out.WriteString(anew[slices.Index(keys, key)].text)
	}
	if f.crlf {
		return []byte(strings.ReplaceAll(out.String(), "\n", "\r\n")), true
	}
	return []byte(out.String()), true
}
