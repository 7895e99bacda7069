package canon

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// Locator finds values in a document, for error messages: it parses the document again, a YAML document once for all.
type Locator struct {
	doc    []byte
	isJSON bool
	root   *yaml.Node
}

// NewLocator returns a Locator of doc, which must not change while it is in use.
func NewLocator(doc []byte, isJSON bool) *Locator {
	l := &Locator{doc: doc, isJSON: isJSON}
	if isJSON || punctuation(doc) > (Limits{}).withDefaults().MaxNodes {
		return l
	}
	if root, err := parseTree(doc); err == nil {
		l.root = root
	}
	return l
}

// Line returns the 1-based line of the value at a path of keys (string) and indices (int). ok is false if there is no
// such value. The last of equal keys is found; values from a merge key are found where they are written.
func (l *Locator) Line(path ...any) (line int, ok bool) {
	line, _, ok = l.Place(path...)
	return line, ok
}

// Place returns what [Locator.Line] returns, and the 1-based column in characters.
func (l *Locator) Place(path ...any) (line, column int, ok bool) {
	if l.isJSON {
		i := locateJSON(l.doc, path)
		if i < 0 {
			return 0, 0, false
		}
		return lineAt(l.doc, i), utf8.RuneCount(l.doc[bytes.LastIndexByte(l.doc[:i], '\n')+1:i]) + 1, true
	}
	n := l.root
	for _, step := range path {
		if n == nil {
			break
		}
		n = childOf(n, step, 0)
	}
	if n == nil {
		return 0, 0, false
	}
	return n.Line, n.Column, n.Line > 0
}

// childOf returns the value of a key or the item at an index, nil if there is none.
func childOf(n *yaml.Node, step any, depth int) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch step := step.(type) {
	case int:
		if n.Kind == yaml.SequenceNode && 0 <= step && step < len(n.Content) {
			return n.Content[step]
		}
	case string:
		if n.Kind != yaml.MappingNode || depth > 10 {
			return nil
		}
		var merged *yaml.Node
		for i := len(n.Content) - 2; i >= 0; i -= 2 {
			k, v := n.Content[i], n.Content[i+1]
			if k.Kind == yaml.ScalarNode && k.Tag == "!!merge" {
				merged = v
			} else if k.Kind == yaml.ScalarNode && nodeKey(k) == step {
				return v
			}
		}
		if merged != nil && merged.Kind != yaml.SequenceNode {
			return childOf(merged, step, depth+1)
		}
	}
	return nil
}

// locateJSON returns the offset of the value at a path, or -1.
func locateJSON(doc []byte, path []any) int {
	i := jsonscan.SkipSpace(doc, 0)
	for _, step := range path {
		if i = stepJSON(doc, i, step); i < 0 {
			return -1
		}
	}
	if i >= len(doc) {
		return -1
	}
	return i
}

// stepJSON returns the offset of the value of a key or of the item at an index of the collection at offset i, or -1.
func stepJSON(doc []byte, i int, step any) int {
	if i >= len(doc) {
		return -1
	}
	name, isKey := step.(string)
	index, isIndex := step.(int)
	if !(isKey && doc[i] == '{' || isIndex && doc[i] == '[') {
		return -1
	}
	found := -1
	for n := 0; ; n++ {
		if i = jsonscan.SkipSpace(doc, i+1); i >= len(doc) || doc[i] == '}' || doc[i] == ']' {
			return found
		}
		match := isIndex && n == index
		if isKey {
			end := valueEnd(doc, i)
			if end < i+2 || doc[i] != '"' {
				return found
			}
			match = string(decodeString(doc[i+1:end-1])) == name
			if i = jsonscan.SkipSpace(doc, end); i >= len(doc) || doc[i] != ':' {
				return found
			}
			i = jsonscan.SkipSpace(doc, i+1)
		}
		if match {
			found = i
			if isIndex {
				return found
			}
		}
		if i = jsonscan.SkipSpace(doc, valueEnd(doc, i)); i >= len(doc) || doc[i] != ',' {
			return found
		}
	}
}

// valueEnd returns the offset after the JSON value at i.
func valueEnd(doc []byte, i int) int {
	if end := jsonscan.ValueEnd(doc, i); end >= 0 {
		return end
	}
	return len(doc)
}

// PathName is how a message calls the value at a path: stable.bundles[2].image, metadata.annotations[a.b/c].
func PathName(path []any) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		case string:
			if strings.ContainsAny(step, "./") {
				fmt.Fprintf(&b, "[%s]", fault.Short(step))
				continue
			}
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(fault.Short(step))
		}
	}
	return b.String()
}
