package helmtemplate

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v3/pkg/chart"
)

// checkSchemas checks the values of a chart and of its subcharts by their values.schema.json.
func checkSchemas(c *chart.Chart, values map[string]any) error {
	var errs []error
	if c.Schema != nil {
		if err := checkSchema(c.Schema, values); err != nil {
			errs = append(errs, fmt.Errorf("%w: the values of %s do not meet its values.schema.json: %w", errInvalid,
				c.Name(), err))
		}
	}
	for _, sub := range c.Dependencies() {
		if v := values[sub.Name()]; v != nil {
			if table, ok := v.(map[string]any); ok {
				errs = append(errs, checkSchemas(sub, table))
			} else {
				errs = append(errs, fmt.Errorf("%w: the values of subchart %s are not a table", errInvalid, sub.Name()))
			}
		}
	}
	return errors.Join(errs...)
}

// elsewhere answers references to schemas outside of the chart: they accept everything, as nothing is fetched.
type elsewhere struct{}

func (elsewhere) Load(string) (any, error) { return true, nil }

func checkSchema(text []byte, values map[string]any) error {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
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
		return err
	}
	if values == nil {
		values = map[string]any{}
	}
	if err := compiled.Validate(values); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "jsonschema validation failed with '"+name+"#'\n"))
	}
	return nil
}
