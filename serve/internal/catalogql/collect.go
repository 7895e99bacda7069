package catalogql

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/graphql-go/graphql"
	"github.com/graphql-go/graphql/language/ast"
)

// selection is a member of an object in the answer: all fields of the query that ask for it.
type selection struct {
	name       string
	fields     []*ast.Field
	definition *graphql.FieldDefinition
	arguments  map[string]any
	inside     map[*graphql.Object][]*selection
}

// selectBelow returns what is selected of the field's objects.
func (s *selection) selectBelow(x *execution, t *graphql.Object) []*selection {
	if all, ok := s.inside[t]; ok {
		return all
	}
	sets := make([]*ast.SelectionSet, len(s.fields))
	for i, f := range s.fields {
		sets[i] = f.SelectionSet
	}
	if s.inside == nil {
		s.inside = map[*graphql.Object][]*selection{}
	}
	s.inside[t] = x.collect(t, sets...)
	return s.inside[t]
}

// collect returns what selection sets ask of an object, sorted by name. Fields that the type does not have are omitted.
func (x *execution) collect(t *graphql.Object, sets ...*ast.SelectionSet) []*selection {
	c := collector{x: x, t: t, byName: map[string]*selection{}, visited: map[string]bool{}}
	for _, set := range sets {
		c.add(set)
	}
	all := slices.DeleteFunc(c.all, func(s *selection) bool {
		s.definition = x.definition(t, s.fields[0].Name.Value)
		if s.definition == nil {
			return true
		}
		s.arguments = x.arguments(s.definition.Args, s.fields[0].Arguments)
		return false
	})
	slices.SortFunc(all, func(a, b *selection) int { return cmp.Compare(a.name, b.name) })
	return all
}

// definition returns a field of a type, or one of those that describe types.
func (x *execution) definition(t *graphql.Object, name string) *graphql.FieldDefinition {
	query := t == x.service.schema.QueryType()
	switch {
	case name == graphql.SchemaMetaFieldDef.Name && query:
		return graphql.SchemaMetaFieldDef
	case name == graphql.TypeMetaFieldDef.Name && query:
		return graphql.TypeMetaFieldDef
	case name == graphql.TypeNameMetaFieldDef.Name:
		return graphql.TypeNameMetaFieldDef
	}
	return t.Fields()[name]
}

// collector groups the fields of selection sets by their names in the answer.
type collector struct {
	x       *execution
	t       *graphql.Object
	all     []*selection
	byName  map[string]*selection
	visited map[string]bool // fragments
}

func (c *collector) add(set *ast.SelectionSet) {
	if set == nil {
		return
	}
	for _, one := range set.Selections {
		switch one := one.(type) {
		case *ast.Field:
			if c.x.included(one.Directives) {
				c.field(one)
			}
		case *ast.InlineFragment:
			if c.x.included(one.Directives) && c.applies(one.TypeCondition) {
				c.add(one.SelectionSet)
			}
		case *ast.FragmentSpread:
			name := one.Name.Value
			f := c.x.fragments[name]
			if c.visited[name] || !c.x.included(one.Directives) {
				continue
			}
			c.visited[name] = true
			if f != nil && c.applies(f.TypeCondition) {
				c.add(f.SelectionSet)
			}
		}
	}
}

func (c *collector) field(f *ast.Field) {
	name := nameOf(f)
	s := c.byName[name]
	if s == nil {
		s = &selection{name: name}
		c.byName[name] = s
		c.all = append(c.all, s)
	}
	s.fields = append(s.fields, f)
}

// applies reports whether a fragment is for the type. There are no interfaces and unions.
func (c *collector) applies(condition *ast.Named) bool {
	return condition == nil || condition.Name.Value == c.t.Name()
}

// included evaluates @skip and @include.
func (x *execution) included(directives []*ast.Directive) bool {
	var skip, include *ast.Directive
	for _, d := range directives {
		switch d.Name.Value {
		case graphql.SkipDirective.Name:
			skip = d
		case graphql.IncludeDirective.Name:
			include = d
		}
	}
	if skip != nil {
		if yes, ok := x.arguments(graphql.SkipDirective.Args, skip.Arguments)["if"].(bool); ok && yes {
			return false
		}
	}
	if include != nil {
		if yes, ok := x.arguments(graphql.IncludeDirective.Args, include.Arguments)["if"].(bool); ok && !yes {
			return false
		}
	}
	return true
}

// arguments returns the values of arguments, with defaults. Those that are null are omitted.
func (x *execution) arguments(definitions []*graphql.Argument, given []*ast.Argument) map[string]any {
	values := map[string]any{}
	for _, d := range definitions {
		var value any
		for _, a := range given {
			if a.Name.Value == d.PrivateName {
				value = x.literal(a.Value, d.Type)
			}
		}
		if isNull(value) {
			value = d.DefaultValue
		}
		if !isNull(value) {
			values[d.PrivateName] = value
		}
	}
	return values
}

// literal returns the value of a literal or variable for a type. No argument is a list or an object.
func (x *execution) literal(value ast.Value, as graphql.Input) any {
	if v, ok := value.(*ast.Variable); ok {
		return x.variables[v.Name.Value]
	}
	if required, ok := as.(*graphql.NonNull); ok {
		return x.literal(value, required.OfType)
	}
	if scalar, ok := as.(*graphql.Scalar); ok && value != nil {
		return scalar.ParseLiteral(value)
	}
	return nil
}

// variablesOf returns the values of an operation's variables: as in catalogd they are never given, so that they have
// their defaults.
func (x *execution) variablesOf(operation *ast.OperationDefinition) (map[string]any, error) {
	values := map[string]any{}
	for _, d := range operation.VariableDefinitions {
		name := d.Variable.Name.Value
		if _, required := d.Type.(*ast.NonNull); required {
			return nil, x.located(fmt.Sprintf("Variable \"$%v\" of required type \"%v\" was not provided.", name,
				typeText(d.Type)), d.Loc.Start)
		}
		if named, ok := d.Type.(*ast.Named); ok && d.DefaultValue != nil {
			if scalar, ok := x.service.schema.Type(named.Name.Value).(*graphql.Scalar); ok {
				values[name] = scalar.ParseLiteral(d.DefaultValue)
			}
		}
	}
	return values, nil
}

// typeText returns a type as it is written in a query.
func typeText(t ast.Type) string {
	switch t := t.(type) {
	case *ast.NonNull:
		return typeText(t.Type) + "!"
	case *ast.List:
		return "[" + typeText(t.Type) + "]"
	case *ast.Named:
		return t.Name.Value
	}
	return ""
}
