package catalogql

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/graphql-go/graphql"
	"github.com/graphql-go/graphql/gqlerrors"
	"github.com/graphql-go/graphql/language/ast"
	"github.com/graphql-go/graphql/language/location"
)

// maxErrors is how many bytes of errors an answer has at most.
const maxErrors = 4 << 20

// execution is the execution of one query. Its methods write the answer and return only errors that end it.
type execution struct {
	ctx       context.Context
	service   *Service
	lines     lines
	fragments map[string]*ast.FragmentDefinition
	variables map[string]any
	out       *bufio.Writer
	errors    bytes.Buffer // of fields, with commas
}

// run writes the answer to a valid document. An error of the library's types is the whole answer.
func (x *execution) run(doc *ast.Document) error {
	operation, err := operationOf(doc)
	if err != nil {
		return err
	}
	if x.variables, err = x.variablesOf(operation); err != nil {
		return err
	}
	if operation.Operation != ast.OperationTypeQuery {
		return x.located(fmt.Sprintf("Schema is not configured for %ss", operation.Operation), operation.Loc.Start)
	}
	fmt.Fprint(x.out, `{"data":`)
	query := x.service.schema.QueryType()
	if err := x.object(query, x.collect(query, operation.SelectionSet), map[string]any{}, nil); err != nil {
		return err
	}
	if x.errors.Len() > 0 {
		fmt.Fprint(x.out, `,"errors":[`)
		if _, err := x.errors.WriteTo(x.out); err != nil {
			return err
		}
		fmt.Fprint(x.out, "]")
	}
	_, err = fmt.Fprint(x.out, "}\n")
	return err
}

func operationOf(doc *ast.Document) (*ast.OperationDefinition, error) {
	var only *ast.OperationDefinition
	for _, d := range doc.Definitions {
		switch d := d.(type) {
		case *ast.OperationDefinition:
			if only != nil {
				return nil, gqlerrors.NewFormattedError(
					"Must provide operation name if query contains multiple operations.")
			}
			only = d
		case *ast.FragmentDefinition:
		default:
			return nil, gqlerrors.NewFormattedError(
				fmt.Sprintf("GraphQL cannot execute a request containing a %v", d.GetKind()))
		}
	}
	if only == nil {
		return nil, gqlerrors.NewFormattedError("Must provide an operation.")
	}
	return only, nil
}

// located returns an error at a position of the query.
func (x *execution) located(message string, position int) error {
	return gqlerrors.FormattedError{Message: message, Locations: []location.SourceLocation{x.lines.at(position)}}
}

// path is the place of a value in the answer: names and indexes. Nil is the whole.
type path struct {
	before *path
	key    any
}

func (p *path) list() []any {
	if p == nil {
		return nil
	}
	return append(p.before.list(), p.key)
}

// failed records the error of a field, whose value is null.
func (x *execution) failed(s *selection, at *path, message string) error {
	e := gqlerrors.FormattedError{Message: message, Path: at.list()}
	for _, f := range s.fields {
		e.Locations = append(e.Locations, x.lines.at(f.Loc.Start))
	}
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if x.errors.Len()+len(text) > maxErrors {
		return ErrTooLarge
	}
	if x.errors.Len() > 0 {
		x.errors.WriteByte(',')
	}
	x.errors.Write(text)
	return x.null()
}

func (x *execution) null() error {
	_, err := x.out.WriteString("null")
	return err
}

// object writes an object with the selected fields of a source.
func (x *execution) object(t *graphql.Object, selections []*selection, source any, at *path) error {
	x.out.WriteByte('{')
	for i, s := range selections {
		if i > 0 {
			x.out.WriteByte(',')
		}
		if err := x.marshal(s.name); err != nil {
			return err
		}
		x.out.WriteByte(':')
		if err := x.field(t, s, source, &path{at, s.name}); err != nil {
			return err
		}
	}
	return x.out.WriteByte('}')
}

func (x *execution) field(t *graphql.Object, s *selection, source any, at *path) error {
	if err := x.ctx.Err(); err != nil {
		return err
	}
	value, err := x.resolve(t, s, source)
	if err != nil {
		return x.failed(s, at, err.Error())
	}
	return x.value(s.definition.Type, t, s, value, at)
}

// resolve asks for the value of a field. A panic, as on a source of another type, is the error that the library makes
// of it.
func (x *execution) resolve(t *graphql.Object, s *selection, source any) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			if err, _ = p.(error); err == nil {
				err = fmt.Errorf("%v", p)
			}
		}
	}()
	resolve := s.definition.Resolve
	if resolve == nil {
		resolve = graphql.DefaultResolveFn
	}
	return resolve(graphql.ResolveParams{Source: source, Args: s.arguments, Context: x.ctx, Info: graphql.ResolveInfo{
		FieldName: s.definition.Name, ParentType: t, ReturnType: s.definition.Type, Schema: x.service.schema}})
}

// marshal writes a value as JSON.
func (x *execution) marshal(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = x.out.Write(text)
	return err
}
