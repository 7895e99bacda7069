package helmtemplate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v3/pkg/chart"

	"github.com/operator-bindery/bindery/internal/fault"
)

// What the check of values by schemas may take. A schema that has itself twice, level below level, makes much of little.
const (
	maxSchemaSteps = 1_000_000 // values and schemas that are compared
	maxSchemaNodes = 30_000    // objects in the schemas of all subcharts: the library takes the square of their number
	maxSchemaError = 2000      // bytes of the error of one chart
	maxSchemaCause = 100       // causes that it is written from
	maxSchemaFails = 5         // charts with errors, after which no more are checked
)

// checkSchemas checks the values of a chart and of its subcharts by their values.schema.json.
func checkSchemas(ctx context.Context, c *chart.Chart, values map[string]any) error {
	s := &schemaCheck{ctx: ctx}
	if err := s.chart(c, values); err != nil {
		return err
	}
	return errors.Join(s.failed...)
}

// schemaCheck checks the values of one chart and of its subcharts.
type schemaCheck struct {
	ctx          context.Context
	steps, nodes int
	failed       []error
}

// chart checks a chart. The error is one that ends the check.
func (s *schemaCheck) chart(c *chart.Chart, values map[string]any) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	if c.Schema != nil {
		if err := s.check(c.Schema, values); errors.Is(err, fault.ErrLimit) || s.ctx.Err() != nil {
			return fmt.Errorf("values.schema.json of %s: %w", c.Name(), err)
		} else if err != nil {
			s.failed = append(s.failed, fmt.Errorf("%w: the values of %s do not meet its values.schema.json: %w", errInvalid,
				c.Name(), err))
		}
	}
	for _, sub := range c.Dependencies() {
		if len(s.failed) >= maxSchemaFails {
			return nil
		}
		if v := values[sub.Name()]; v != nil {
			table, ok := v.(map[string]any)
			if !ok {
				s.failed = append(s.failed, fmt.Errorf("%w: the values of subchart %s are not a table", errInvalid, sub.Name()))
			} else if err := s.chart(sub, table); err != nil {
				return err
			}
		}
	}
	return nil
}

// elsewhere answers references to schemas outside of the chart: they accept everything, as nothing is fetched.
type elsewhere struct{}

func (elsewhere) Load(string) (any, error) { return true, nil }

func (s *schemaCheck) check(text []byte, values map[string]any) error {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	if err := s.count(schema); err != nil {
		return err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(elsewhere{})
	const name = "file:///values.schema.json"
	if err := compiler.AddResource(name, schema); err != nil {
		return err
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return shortened(err, name)
	}
	s.guard(compiled)
	if values == nil {
		values = map[string]any{}
	}
	return validate(compiled, values, name)
}

// ended is what the end of a validation panics with: the library goes on after errors.
type ended struct{ err error }

// validate returns what the library does, or what the validation has ended with.
func validate(schema *jsonschema.Schema, values map[string]any, name string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(ended)
			if !ok {
				panic(r)
			}
			err = e.err
		}
	}()
	if err := schema.Validate(values); err != nil {
		return shortened(err, name)
	}
	return nil
}

// guard makes each use of a schema count. The format of a schema is what the library asks first for a value of its type.
func (s *schemaCheck) guard(root *jsonschema.Schema) {
	seen := map[*jsonschema.Schema]bool{}
	todo := []*jsonschema.Schema{root}
	for len(todo) > 0 {
		one := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[one] {
			continue
		}
		seen[one] = true
		format := one.Format
		if format == nil {
			format = &jsonschema.Format{Validate: func(any) error { return nil }}
		}
		inside, keys := below(one), 1+len(one.PatternProperties)
		todo = append(todo, inside...)
		one.Format = &jsonschema.Format{Name: format.Name, Validate: func(v any) error {
			// What has another type fails before its format is asked, so it counts with what it is in.
			n := 1 + len(inside)
			switch v := v.(type) {
			case map[string]any:
				n += len(v) * keys
			case []any:
				n += len(v)
			}
			if s.steps += n; s.steps > maxSchemaSteps {
				panic(ended{tooMuch("checking values by it takes more steps", maxSchemaSteps)})
			}
			if s.ctx.Err() != nil {
				panic(ended{context.Cause(s.ctx)})
			}
			return format.Validate(v)
		}}
	}
}

// count counts what can be schemas before they are compiled.
func (s *schemaCheck) count(v any) error {
	switch v := v.(type) {
	case bool:
		s.nodes++
	case map[string]any:
		s.nodes++
		for _, inside := range v {
			if err := s.count(inside); err != nil {
				return err
			}
		}
	case []any:
		for _, inside := range v {
			if err := s.count(inside); err != nil {
				return err
			}
		}
	}
	if s.nodes > maxSchemaNodes {
		return tooMuch("it has more objects", maxSchemaNodes)
	}
	return nil
}

// below returns the schemas that a schema has or refers to.
func below(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems, slices.Collect(maps.Values(s.Properties)),
		slices.Collect(maps.Values(s.PatternProperties)), slices.Collect(maps.Values(s.DependentSchemas)),
		[]*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties,
			s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema})
	if s.DynamicRef != nil {
		out = append(out, s.DynamicRef.Ref)
	}
	for _, v := range slices.Concat([]any{s.AdditionalProperties, s.Items, s.AdditionalItems}, slices.Collect(maps.Values(s.Dependencies))) {
		switch v := v.(type) {
		case *jsonschema.Schema:
			out = append(out, v)
		case []*jsonschema.Schema:
			out = append(out, v...)
		}
	}
	return slices.DeleteFunc(out, func(s *jsonschema.Schema) bool { return s == nil })
}

// shortened returns the error of the library, written from its first causes: it has one for each way that fails.
func shortened(err error, name string) error {
	if e, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		left := maxSchemaCause
		err = first(e, &left)
	}
	return errors.New(fault.Clip(strings.TrimPrefix(err.Error(), "jsonschema validation failed with '"+name+"#'\n"), maxSchemaError))
}

// first returns an error with its first causes.
func first(e *jsonschema.ValidationError, left *int) *jsonschema.ValidationError {
	out := *e
	out.Causes = nil
	for _, cause := range e.Causes {
		if *left--; *left < 0 {
			break
		}
		out.Causes = append(out.Causes, first(cause, left))
	}
	return &out
}
