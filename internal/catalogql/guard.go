package catalogql

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/graphql-go/graphql/language/ast"
	"github.com/graphql-go/graphql/language/visitor"
)

// Limits of a query, as in catalogd.
const (
	maxDepth   = 10
	maxAliases = 50
	maxSelects = 500 // fields
)

// Limits that catalogd does not have. Its validation recurses without bound on fragments that contain each other, and
// takes time that is exponential in fragments that contain others twice, and quadratic in fields that nothing asks for.
const (
	maxBrackets = 3000 // parentheses, brackets and braces that open, which bounds the depth of the parser
	maxNodes    = 10000
	maxExpanded = 1000 // fields, fragments and spreads of a document after its fragments are put in their places
)

// tooNested returns an error for a query that would nest too deeply to be parsed.
func tooNested(query string) error {
	if strings.Count(query, "{")+strings.Count(query, "[")+strings.Count(query, "(") > maxBrackets {
		return fmt.Errorf("query has more than %d brackets", maxBrackets)
	}
	return nil
}

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

// errCycle is returned for fragments that contain themselves.
var errCycle = errors.New("fragments contain each other")

// expansion counts the selections of a document after its fragments are put in their places.
type expansion struct {
	fragments map[string]*ast.FragmentDefinition
	sizes     map[string]int // of fragments; -1 while one is being counted
	cycle     bool
}

// checkSize returns an error for a document that would take too long to be validated or answered, and [errCycle].
func checkSize(doc *ast.Document, fragments map[string]*ast.FragmentDefinition) error {
	nodes := 0
	visitor.Visit(doc, &visitor.VisitorOptions{Enter: func(visitor.VisitFuncParams) (string, any) {
		if nodes++; nodes > maxNodes {
			return visitor.ActionBreak, nil
		}
		return visitor.ActionNoChange, nil
	}}, nil)
	if nodes > maxNodes {
		return fmt.Errorf("query has more than %d elements", maxNodes)
	}
	e := expansion{fragments: fragments, sizes: map[string]int{}}
	all := 0
	for _, d := range doc.Definitions {
		switch d := d.(type) {
		case *ast.OperationDefinition:
			all = plus(all, e.size(d.SelectionSet))
		case *ast.FragmentDefinition:
			all = plus(all, plus(1, e.size(d.SelectionSet)))
		}
	}
	switch {
	case all > maxExpanded:
		return fmt.Errorf("query has more than %d fields after its fragments are put in their places", maxExpanded)
	case e.cycle:
		return errCycle
	}
	return nil
}

// size returns the number of selections of a set, those of fragments included.
func (e *expansion) size(set *ast.SelectionSet) int {
	if set == nil {
		return 0
	}
	all := 0
	for _, selection := range set.Selections {
		all = plus(all, 1)
		switch s := selection.(type) {
		case *ast.Field:
			all = plus(all, e.size(s.SelectionSet))
		case *ast.InlineFragment:
			all = plus(all, e.size(s.SelectionSet))
		case *ast.FragmentSpread:
			all = plus(all, e.fragment(s.Name.Value))
		}
	}
	return all
}

func (e *expansion) fragment(name string) int {
	f := e.fragments[name]
	if f == nil {
		return 0
	}
	size, known := e.sizes[name]
	switch {
	case !known:
		e.sizes[name] = -1
		size = e.size(f.SelectionSet)
		e.sizes[name] = size
	case size < 0:
		e.cycle = true
		return 0
	}
	return size
}

// plus adds without overflow.
func plus(a, b int) int {
	if a > math.MaxInt32-b {
		return math.MaxInt32
	}
	return a + b
}
