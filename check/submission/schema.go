package submission

import (
	_ "embed"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	openapi "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/operator-bindery/bindery/check/rules"
)

//go:embed ci.schema.json
var ciSchema []byte

//go:embed release.schema.json
var releaseSchema []byte

// schemas are read when they are used first.
var schemas = struct{ ci, release func() *spec.Schema }{parsed(ciSchema), parsed(releaseSchema)}

func parsed(text []byte) func() *spec.Schema {
	return sync.OnceValue(func() *spec.Schema {
		s := &spec.Schema{}
		if err := json.Unmarshal(text, s); err != nil {
			panic(err) // a test reads it
		}
		return s
	})
}

// violations returns where a document differs from a schema, one for each demand that it breaks.
func violations(schema *spec.Schema, d document) (out []rules.Finding) {
	var value any
	if d.json != nil && json.Unmarshal(d.json, &value) != nil {
		return nil // it was read as JSON before
	}
	for _, err := range validate.NewSchemaValidator(schema, nil, "", strfmt.Default).Validate(value).Errors {
		f := rules.Finding{File: d.file, Message: strings.TrimLeft(strings.Replace(err.Error(), " in body ", " ", 1), ". ")}
		var invalid *openapi.Validation
		if errors.As(err, &invalid) {
			f.Field = strings.Trim(invalid.Name, ".")
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b rules.Finding) int {
		return strings.Compare(a.Field+"\x00"+a.Message, b.Field+"\x00"+b.Message)
	})
	return out
}
