package catalogql

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/graphql-go/graphql/language/ast"
	"github.com/graphql-go/graphql/language/printer"
)

// Limits that catalogd does not have. Its parser and validation recurse without bound on fragments that contain each
// other, and take time or memory that grows exponentially with fragments that contain others twice, and with the square
// of nested values, of fields that nothing asks for, and of fields that cannot be merged.
const (
	maxBrackets  = 3000 // parentheses, brackets and braces that open, which bounds the depth of the parser
	maxElements  = 10000
	maxNesting   = 60   // of elements: a field, its fields and a value nest by one each
	maxExpanded  = 1000 // fields, fragments and spreads of a document after its fragments are put in their places
	maxConflicts = 1000 // pairs of fields with one name in the answer that cannot be merged
	maxValues    = 100  // values in lists and objects, which no argument takes
	// maxCompared is how many arguments are compared for fields with one name, each with all others.
	maxCompared = 500_000
	// maxDistances is how many pairs of characters are compared to find out which names could be meant.
	maxDistances = 300_000_000
)

// errCycle is returned for fragments that contain themselves.
var errCycle = errors.New("fragments contain each other")

// tooNested returns an error for a query that could nest too deeply to be parsed.
func tooNested(query string) error {
	if strings.Count(query, "{")+strings.Count(query, "[")+strings.Count(query, "(") > maxBrackets {
		return fmt.Errorf("query has more than %d brackets", maxBrackets)
	}
	return nil
}

// checkSize returns an error for a document that would take too long to be validated or answered, and [errCycle] for
// one that is small enough without its cycles. known is the size of the names in the catalog.
func checkSize(doc *ast.Document, fragments map[string]*ast.FragmentDefinition, known int) error {
	if err := countElements(doc, known); err != nil {
		return err
	}
	e := expansion{fragments: fragments, sizes: map[string]int{}}
	all := 0
	var sets []*ast.SelectionSet
	for _, d := range doc.Definitions {
		switch d := d.(type) {
		case *ast.OperationDefinition:
			all = plus(all, e.size(d.SelectionSet))
			sets = append(sets, d.SelectionSet)
		case *ast.FragmentDefinition:
			all = plus(all, plus(1, e.size(d.SelectionSet)))
			sets = append(sets, d.SelectionSet)
		}
	}
	if all > maxExpanded {
		return fmt.Errorf("query has more than %d fields after its fragments are put in their places", maxExpanded)
	}
	if e.cycle {
		return errCycle
	}
	conflicts := 0
	for _, set := range sets {
		if conflicts = plus(conflicts, e.conflicts(set)); conflicts > maxConflicts {
			return fmt.Errorf("query has more than %d pairs of fields of one name that differ", maxConflicts)
		}
		if e.compared > maxCompared {
			return errors.New("query has too many arguments in fields of one name")
		}
	}
	return nil
}

// expansion counts the selections of a document after its fragments are put in their places.
type expansion struct {
	fragments map[string]*ast.FragmentDefinition
	sizes     map[string]int // of fragments; -1 while one is being counted
	cycle     bool
	compared  int // arguments of fields with one name
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

// conflicts returns how many pairs of fields have one name in the answer and are different fields, or have different
// arguments. Sets whose fields are merged are one. There are no cycles.
func (e *expansion) conflicts(sets ...*ast.SelectionSet) int {
	byName := map[string][]*ast.Field{}
	for _, set := range sets {
		e.collectFields(set, byName)
	}
	all := 0
	for _, fields := range byName {
		arguments := len(fields)
		for _, f := range fields {
			arguments += len(f.Arguments)
		}
		e.compared = plus(e.compared, (len(fields)-1)*arguments)
		if e.compared > maxCompared {
			return all
		}
		if len(fields) > 1 {
			same := map[string]int{}
			for _, f := range fields {
				same[signature(f)]++
			}
			pairs := len(fields) * len(fields)
			for _, n := range same {
				pairs -= n * n
			}
			all = plus(all, pairs/2)
		}
		var below []*ast.SelectionSet
		for _, f := range fields {
			if f.SelectionSet != nil {
				below = append(below, f.SelectionSet)
			}
		}
		if len(below) > 0 {
			all = plus(all, e.conflicts(below...))
		}
	}
	return all
}

// collectFields collects the fields of a set and of its fragments by their names in the answer.
func (e *expansion) collectFields(set *ast.SelectionSet, byName map[string][]*ast.Field) {
	if set == nil {
		return
	}
	for _, selection := range set.Selections {
		switch s := selection.(type) {
		case *ast.Field:
			byName[nameOf(s)] = append(byName[nameOf(s)], s)
		case *ast.InlineFragment:
			e.collectFields(s.SelectionSet, byName)
		case *ast.FragmentSpread:
			if f := e.fragments[s.Name.Value]; f != nil {
				e.collectFields(f.SelectionSet, byName)
			}
		}
	}
}

func signature(f *ast.Field) string {
	text := f.Name.Value
	for _, a := range f.Arguments {
		text += fmt.Sprint(" ", printer.Print(a))
	}
	return text
}

// nameOf returns the name of a field in the answer.
func nameOf(f *ast.Field) string {
	if f.Alias != nil && f.Alias.Value != "" {
		return f.Alias.Value
	}
	return f.Name.Value
}

// plus adds without overflow.
func plus(a, b int) int {
	if a > math.MaxInt32-b {
		return math.MaxInt32
	}
	return a + b
}
