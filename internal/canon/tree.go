package canon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"go.yaml.in/yaml/v3"
)

// parseTree returns the root of the first YAML document in doc; nil if there is none. Aliases are not expanded.
func parseTree(doc []byte) (root *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			root, err = nil, fmt.Errorf("yaml: %v", p)
		}
	}()
	var n yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(doc)).Decode(&n); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	if len(n.Content) == 0 {
		return nil, nil
	}
	return n.Content[0], nil
}

// restLine returns the line at which the second YAML document in doc starts, or the last line if that is unknown.
func restLine(doc []byte) (line int) {
	line = lineAt(doc, len(doc)-1)
	defer func() { _ = recover() }()
	d := yaml.NewDecoder(bytes.NewReader(doc))
	var n yaml.Node
	for range 2 {
		if d.Decode(&n) != nil {
			return line
		}
	}
	if n.Line > 0 {
		return n.Line
	}
	return line
}

type warning struct {
	line int
	msg  string
}

// inspector checks a tree against the limits without expanding it and finds duplicate keys.
type inspector struct {
	max      int
	sizes    map[*yaml.Node]extent // of anchored nodes
	keys     bool
	warnings []warning
}

// extent is the approximate size in JSON, in bytes, and the depth of a node.
type extent struct {
	size, depth int
	open        bool // the node is being measured: an alias to it is a cycle
}

// inspect returns the duplicate keys of a tree, or a LimitError if it is too deep or would expand too much.
func inspect(root *yaml.Node, most int, l Limits, keys bool) ([]warning, error) {
	in := inspector{max: l.MaxDepth, sizes: map[*yaml.Node]extent{}, keys: keys}
	e, err := in.measure(root, 0)
	if err != nil {
		return nil, err
	}
	if e.size > most {
		return nil, &LimitError{What: "alias expansion", Limit: int64(most)}
	}
	return in.warnings, nil
}

func (in *inspector) measure(n *yaml.Node, depth int) (extent, error) {
	var e extent
	if n.Kind == yaml.AliasNode {
		e, known := in.sizes[n.Alias]
		if known && e.open {
			return e, &LimitError{What: "alias expansion", Line: n.Line}
		}
		if known && depth+e.depth > in.max {
			return e, &LimitError{What: "depth", Line: n.Line, Limit: int64(in.max)}
		}
		return e, nil
	}
	if n.Anchor != "" {
		in.sizes[n] = extent{open: true}
	}
	e.size = len(n.Value) + 4
	if n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode {
		if e.depth = 1; depth+1 > in.max {
			return e, &LimitError{What: "depth", Line: n.Line, Limit: int64(in.max)}
		}
		for _, child := range n.Content {
			c, err := in.measure(child, depth+1)
			if err != nil {
				return c, err
			}
			e.size = min(e.size+c.size, math.MaxInt/2)
			e.depth = max(e.depth, c.depth+1)
		}
	}
	if n.Kind == yaml.MappingNode && in.keys {
		in.findDuplicates(n)
	}
	if n.Anchor != "" {
		in.sizes[n] = e
	}
	return e, nil
}

func (in *inspector) findDuplicates(n *yaml.Node) {
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" {
			continue
		}
		name := nodeKey(k)
		if seen[name] && len(in.warnings) < mostWarnings {
			in.warnings = append(in.warnings, warning{n.Content[i].Line, duplicateKey(name)})
		}
		seen[name] = true
	}
}

// nodeKey returns the text of a scalar node as a JSON key.
func nodeKey(n *yaml.Node) string {
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle |
		yaml.TaggedStyle
	if n.Style&quoted != 0 {
		return n.Value
	}
	text, err := keyText(resolveScalar(n.Value))
	if err != nil {
		return n.Value
	}
	return text
}
