package catalogql

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/graphql-go/graphql"
	"github.com/graphql-go/graphql/gqlerrors"
	"github.com/graphql-go/graphql/language/ast"
)

// ErrTooLarge is what a writer of answers returns if an answer becomes larger than it takes.
var ErrTooLarge = errors.New("the answer is too large: ask for less with limit and offset")

// Answer writes the answer to a query, a JSON object and a newline. If it returns a failure, that is the whole answer
// and what was written is not: a query that cannot be read, is invalid or too complex, takes longer than ctx allows, or
// has an answer for which the writer returned [ErrTooLarge]. Errors are those of the writer, of reading blobs, and of a
// cancelled ctx.
//
// Members of objects are sorted by name, as in catalogd. Errors of fields are in the order of the answer.
func (s *Service) Answer(ctx context.Context, query string, w io.Writer) (failure []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			failure, err = nil, fmt.Errorf("a query cannot be answered: %v", p)
		}
	}()
	doc, lines, failed := s.read(query)
	if failed != nil {
		return fail(failed...), nil
	}
	x := &execution{ctx: ctx, service: s, lines: lines, fragments: fragmentsOf(doc),
		out: bufio.NewWriterSize(w, 32<<10)}
	switch err := x.run(doc); {
	case errors.As(err, new(*gqlerrors.Error)), errors.As(err, new(gqlerrors.FormattedError)):
		return fail(gqlerrors.FormatError(err)), nil
	case errors.Is(err, ErrTooLarge), errors.Is(err, context.DeadlineExceeded):
		return fail(gqlerrors.NewFormattedError(root(err).Error())), nil
	case err != nil:
		return nil, err
	}
	return nil, x.out.Flush()
}

// root returns the innermost error.
func root(err error) error {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
}

// fail returns an answer without data.
func fail(failed ...gqlerrors.FormattedError) []byte {
	text, err := json.Marshal(graphql.Result{Errors: failed})
	if err != nil { // names and texts of a query can be marshalled
		text = []byte(`{"data":null,"errors":[{"message":"the errors cannot be written","locations":[]}]}`)
	}
	return append(text, '\n')
}

// read parses and validates a query.
func (s *Service) read(query string) (*ast.Document, lines, []gqlerrors.FormattedError) {
	one := func(err error) []gqlerrors.FormattedError {
		return []gqlerrors.FormattedError{gqlerrors.FormatError(err)}
	}
	doc, err := parse(query)
	if err != nil {
		return nil, nil, one(err)
	}
	lines := linesOf(query)
	fragments := fragmentsOf(doc)
	if err := checkComplexity(doc, fragments); err != nil {
		return nil, nil, one(err)
	}
	rules := graphql.SpecifiedRules
	switch err := checkSize(doc, fragments, s.names); {
	case errors.Is(err, errCycle):
		rules = withoutOverlaps()
	case err != nil:
		return nil, nil, one(err)
	}
	result := graphql.ValidateDocument(&s.schema, doc, rules)
	for i := range result.Errors {
		lines.fix(result.Errors[i].Locations)
	}
	return doc, lines, result.Errors
}

// withoutOverlaps returns the rules without the one that does not end for fragments that contain each other. Another
// rule finds these.
func withoutOverlaps() (rules []graphql.ValidationRuleFn) {
	overlaps := reflect.ValueOf(graphql.OverlappingFieldsCanBeMergedRule).Pointer()
	for _, rule := range graphql.SpecifiedRules {
		if reflect.ValueOf(rule).Pointer() != overlaps {
			rules = append(rules, rule)
		}
	}
	return rules
}

// fragmentsOf returns the fragments of a document; of several with one name the last, as in catalogd.
func fragmentsOf(doc *ast.Document) map[string]*ast.FragmentDefinition {
	all := map[string]*ast.FragmentDefinition{}
	for _, d := range doc.Definitions {
		if f, ok := d.(*ast.FragmentDefinition); ok {
			all[f.Name.Value] = f
		}
	}
	return all
}
