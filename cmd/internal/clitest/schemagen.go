package clitest

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/operator-bindery/bindery/docs/reference/schemas"
)

// Compiled returns a schema as it is embedded.
func Compiled(t testing.TB, name string) *jsonschema.Schema {
	t.Helper()
	text, ok := schemas.Text(name)
	if !ok {
		t.Fatalf("there is no schema %q", name)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
