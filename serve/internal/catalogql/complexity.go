package catalogql

import (
	"fmt"

	"github.com/graphql-go/graphql/language/ast"
)

// Limits of a query, as in catalogd.
const (
	maxDepth   = 10
	maxAliases = 50
	maxSelects = 500 // fields
)

// complexity checks catalogd's limits. Each fragment counts once, where it is first spread, as in catalogd.
type complexity struct {
	aliases, fields int
	fragments       map[string]*ast.FragmentDefinition
	visited         map[string]bool
}

// checkComplexity returns catalogd's error for a query that exceeds its limits.
func checkComplexity(doc *ast.Document, fragments map[string]*ast.FragmentDefinition) error {
	c := complexity{fragments: fragments, visited: map[string]bool{}}
	for _, d := range doc.Definitions {
		if op, ok := d.(*ast.OperationDefinition); ok {
			if err := c.walk(op.SelectionSet, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *complexity) walk(set *ast.SelectionSet, depth int) error {
	if set == nil {
		return nil
	}
	if depth > maxDepth {
		return fmt.Errorf("query exceeds maximum depth of %d", maxDepth)
	}
	for _, selection := range set.Selections {
		below := (*ast.SelectionSet)(nil)
		switch s := selection.(type) {
		case *ast.Field:
			if c.fields++; c.fields > maxSelects {
				return fmt.Errorf("query exceeds maximum field count of %d", maxSelects)
			}
			if s.Alias != nil && s.Alias.Value != "" {
				if c.aliases++; c.aliases > maxAliases {
					return fmt.Errorf("query exceeds maximum alias count of %d", maxAliases)
				}
			}
			below = s.SelectionSet
		case *ast.InlineFragment:
			below = s.SelectionSet
		case *ast.FragmentSpread:
			if c.visited[s.Name.Value] {
				continue
			}
			c.visited[s.Name.Value] = true
			if f := c.fragments[s.Name.Value]; f != nil {
				below = f.SelectionSet
			}
		}
		if err := c.walk(below, depth+1); err != nil {
			return err
		}
	}
	return nil
}
