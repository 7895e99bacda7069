package submission

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/operator-bindery/bindery/check/rules"
)

//go:embed ci.schema.json
var ciSchema []byte

//go:embed release.schema.json
var releaseSchema []byte

// schemas are compiled when they are used first.
var schemas = struct{ ci, release func() *jsonschema.Schema }{compiled(ciSchema), compiled(releaseSchema)}

func compiled(text []byte) func() *jsonschema.Schema {
	return sync.OnceValue(func() *jsonschema.Schema {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			panic(err) // a test compiles it
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("schema.json", doc); err != nil {
			panic(err)
		}
		return c.MustCompile("schema.json")
	})
}

// violations returns where a document differs from a schema, one for each demand that it breaks.
func violations(schema *jsonschema.Schema, d document) (out []rules.Finding) {
	text := d.json
	if text == nil {
		text = []byte("null")
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = schema.Validate(value)
	}
	invalid, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return nil
	}
	print := message.NewPrinter(language.English)
	var leaves func(e *jsonschema.ValidationError)
	leaves = func(e *jsonschema.ValidationError) {
		for _, c := range e.Causes {
			leaves(c)
		}
		if len(e.Causes) > 0 {
			return
		}
		texts := []string{e.ErrorKind.LocalizedString(print)}
		if missing, ok := e.ErrorKind.(*kind.Required); ok {
			texts = nil
			for _, name := range missing.Missing {
				texts = append(texts, fmt.Sprintf("%s is missing", name))
			}
		}
		for _, text := range texts {
			out = append(out, rules.Finding{File: d.file, Field: strings.Join(e.InstanceLocation, "."), Message: text})
		}
	}
	leaves(invalid)
	slices.SortFunc(out, func(a, b rules.Finding) int {
		return strings.Compare(a.Field+"\x00"+a.Message, b.Field+"\x00"+b.Message)
	})
	return out
}
