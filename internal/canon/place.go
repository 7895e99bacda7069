package canon

import "go.yaml.in/yaml/v3"

// Place is a value in a document, with its position. The zero Place has none.
type Place struct{ node *yaml.Node }

// Root returns the place of the document's value. Places are found in documents that can be read as YAML, which
// practically all JSON can; in others no place has a position.
func (l *Locator) Root() Place {
	if l.root == nil && l.isJSON && punctuation(l.doc) <= (Limits{}).withDefaults().MaxNodes {
		if root, err := parseTree(l.doc); err == nil {
			l.root = root
		}
	}
	return Place{l.root}
}

// In returns the place of the value of a key (string) or of the item at an index (int). Without such a value the place
// has no position.
func (p Place) In(step any) Place {
	if p.node == nil {
		return Place{}
	}
	return Place{childOf(p.node, step, 0)}
}

// Key returns the place of a key itself.
func (p Place) Key(name string) Place {
	n := p.node
	if n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == nil || n.Kind != yaml.MappingNode {
		return Place{}
	}
	for i := len(n.Content) - 2; i >= 0; i -= 2 {
		if k := n.Content[i]; k.Kind == yaml.ScalarNode && nodeKey(k) == name {
			return Place{k}
		}
	}
	return Place{}
}

// Position returns the line and the column, both counted from 1; 0 if they are unknown. Columns count characters.
func (p Place) Position() (line, column int) {
	if p.node == nil {
		return 0, 0
	}
	return p.node.Line, p.node.Column
}

// Written returns the text of a scalar as it is written, without quotes; empty for other values.
func (p Place) Written() string {
	if p.node == nil || p.node.Kind != yaml.ScalarNode {
		return ""
	}
	return p.node.Value
}

// Tag returns the tag of a value as YAML resolves it, such as !!timestamp for a date without quotes; empty if there is none.
func (p Place) Tag() string {
	if p.node == nil {
		return ""
	}
	return p.node.ShortTag()
}
