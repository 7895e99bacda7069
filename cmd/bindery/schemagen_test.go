package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/operator-bindery/bindery/docs/reference/schemas"
	"github.com/operator-bindery/bindery/internal/testing/schemagen"
)

var updateSchemas = flag.Bool("update-schemas", false, "write docs/reference/schemas")

// The schemas in docs are those that the types give: go test ./cmd/bindery -run TestSchemas -update-schemas writes
// them.
func TestSchemasAreCurrent(t *testing.T) {
	const dir = "../../docs/reference/schemas"
	g := schemaGenerator()
	all := 0
	want := map[string]bool{}
	for _, d := range describedSchemas {
		want[d.name] = true
		text := d.text(t, g)
		all += len(text)
		file := filepath.Join(dir, d.name+".json")
		if *updateSchemas {
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		committed, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(committed, text) {
			t.Errorf("%s is not what its type gives (%v): run this test with -update-schemas", file, err)
		}
	}
	if *updateSchemas {
		return
	}
	for _, name := range schemas.Names() {
		if !want[name] {
			t.Errorf("%s/%s.json describes nothing", dir, name)
		}
	}
	if all > 300<<10 {
		t.Errorf("the schemas have %d bytes", all)
	}
}

// text returns the text of a schema.
func (d schemaRow) text(t *testing.T, g *schemagen.Generator) []byte {
	t.Helper()
	if d.tag == "" {
		d.tag = "json"
	}
	o, err := g.Schema(schemagen.Root{ID: schemaID + d.name + ".json", Title: d.title, Description: d.description,
		Type: d.of, Tag: d.tag, Read: d.read, Upstream: d.upstream})
	if err != nil {
		t.Fatal(err)
	}
	if d.adjust != nil {
		d.adjust(o)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// compiled returns a schema as it is embedded.
func compiled(t *testing.T, name string) *jsonschema.Schema {
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
