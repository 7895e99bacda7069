package catalogql

import (
	"errors"
	"fmt"

	"github.com/graphql-go/graphql/language/ast"
)

// elements counts what a document consists of. It stops counting when there is too much.
type elements struct {
	n      int
	values int // in lists and objects
	names  int // bytes of names of fields and types
	err    error
}

// countElements returns an error for a document of too many elements, or of elements that nest too deeply.
//
// For an unknown name the library computes its distance to all names that could be meant, which takes time that grows
// with the product of their sizes: known is that of the names in the catalog.
func countElements(doc *ast.Document, known int) error {
	var e elements
	for _, d := range doc.Definitions {
		switch d := d.(type) {
		case *ast.OperationDefinition:
			e.definition(d.VariableDefinitions, d.Directives, d.SelectionSet)
		case *ast.FragmentDefinition:
			e.names += len(d.TypeCondition.Name.Value)
			e.definition(d.VariableDefinitions, d.Directives, d.SelectionSet)
		default:
			e.n += maxElements / 100 // definitions of types, which end in an error
		}
	}
	if e.err == nil && e.n > maxElements {
		e.enter(0)
	}
	if e.err == nil && known > 0 && e.names > maxDistances/known {
		return errors.New("query has too long names for a catalog with so many")
	}
	return e.err
}

// enter counts an element and reports whether to go on.
func (e *elements) enter(depth int) bool {
	switch e.n++; {
	case e.err != nil:
	case e.n > maxElements:
		e.err = fmt.Errorf("query has more than %d elements", maxElements)
	case e.values > maxValues:
		e.err = fmt.Errorf("query has more than %d values in lists and objects", maxValues)
	case depth > maxNesting:
		e.err = fmt.Errorf("query nests more than %d levels deep", maxNesting)
	}
	return e.err == nil
}

func (e *elements) definition(variables []*ast.VariableDefinition, directives []*ast.Directive, set *ast.SelectionSet) {
	if !e.enter(0) {
		return
	}
	for _, v := range variables {
		if !e.enter(1) {
			return
		}
		e.typ(v.Type, 1)
		e.value(v.DefaultValue, 1)
	}
	e.directives(directives, 1)
	e.selections(set, 1)
}

func (e *elements) selections(set *ast.SelectionSet, depth int) {
	if set == nil {
		return
	}
	for _, selection := range set.Selections {
		if !e.enter(depth) {
			return
		}
		switch s := selection.(type) {
		case *ast.Field:
			e.names += len(s.Name.Value)
			e.arguments(s.Arguments, depth+1)
			e.directives(s.Directives, depth+1)
			e.selections(s.SelectionSet, depth+1)
		case *ast.InlineFragment:
			if s.TypeCondition != nil {
				e.names += len(s.TypeCondition.Name.Value)
			}
			e.directives(s.Directives, depth+1)
			e.selections(s.SelectionSet, depth+1)
		case *ast.FragmentSpread:
			e.directives(s.Directives, depth+1)
		}
	}
}

func (e *elements) directives(all []*ast.Directive, depth int) {
	for _, d := range all {
		if !e.enter(depth) {
			return
		}
		e.arguments(d.Arguments, depth+1)
	}
}

func (e *elements) arguments(all []*ast.Argument, depth int) {
	for _, a := range all {
		if !e.enter(depth) {
			return
		}
		e.value(a.Value, depth+1)
	}
}

func (e *elements) value(v ast.Value, depth int) {
	if v == nil || !e.enter(depth) {
		return
	}
	switch v := v.(type) {
	case *ast.ListValue:
		for _, one := range v.Values {
			e.values++
			e.value(one, depth+1)
		}
	case *ast.ObjectValue:
		for _, f := range v.Fields {
			e.values++
			e.value(f.Value, depth+1)
		}
	}
}

func (e *elements) typ(t ast.Type, depth int) {
	if !e.enter(depth) {
		return
	}
	switch t := t.(type) {
	case *ast.NonNull:
		e.typ(t.Type, depth+1)
	case *ast.List:
		e.typ(t.Type, depth+1)
	case *ast.Named:
		e.names += len(t.Name.Value)
	}
}
