package schema_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/docs/reference/schemas"
	"github.com/operator-bindery/bindery/internal/testing/schemagen"
)

// sampleTexts are documents in place of samples of the type, where the type is not that of the document.
var sampleTexts = map[string]string{
	"delete-list": `{"apiVersion":"mirror.openshift.io/v2alpha1","kind":"DeleteImageList","items":[{"imageName":"a",
		"imageReference":"b","type":"generic"}],"keptItems":[{"imageName":"a","imageReference":"b","reason":"c"}]}`,
	"mirror-inventory": `{"inventory":"registry","version":1,"registry":"r","path":"p","repositories":[{"name":"n",
		"tags":{"v1":"sha256:1"},"manifests":["sha256:1"],"blobs":[["sha256:2",7]]}]}`,
	"catalog":        `{"schema":"olm.channel","name":"stable","package":"acme","entries":[{"name":"acme.v1"}]}`,
	"template-basic": `{"schema":"olm.template.basic","entries":[{"schema":"olm.bundle","image":"quay.io/acme/b:v1"}]}`,
	"template-substitutes": `{"schema":"olm.template.substitutes","entries":[{"schema":"olm.package","name":"acme"}],
		"substitutions":[{"name":"quay.io/acme/b:v2","base":"acme.v1"}]}`,
}

// acceptsUnknown are the schemas of files in which other members are allowed.
var acceptsUnknown = []string{"snapshot", "catalog"}

// What the program encodes is valid, with all members set and with none, and is not valid any more after any change
// that a schema can notice.
func TestSchemasRefuseMutations(t *testing.T) {
	g := schemaGenerator()
	for _, d := range describedSchemas {
		t.Run(d.name, func(t *testing.T) {
			s := clitest.Compiled(t, d.name)
			documents := [][]byte{[]byte(sampleTexts[d.name])}
			if sampleTexts[d.name] == "" {
				documents = [][]byte{encoded(t, d, g.Sample(d.of))}
				if !d.read && !d.upstream && d.name != "mirror-inventory" && d.name != "validate" {
					documents = append(documents, encoded(t, d, emptySample(d)))
				}
			}
			for _, text := range documents {
				if err := s.Validate(parsed(t, text)); err != nil {
					t.Fatalf("%s\n%v", text, err)
				}
			}
			refuseMutations(t, d.name, s, parsed(t, documents[0]))
		})
	}
}

// refuseMutations changes a valid document.
func refuseMutations(t *testing.T, name string, s *jsonschema.Schema, document any) {
	t.Helper()
	text, _ := schemas.Text(name)
	kinds := map[string]int{}
	for _, m := range schemagen.Mutate(parsed(t, text).(map[string]any), document) {
		kinds[m.Kind]++
		if s.Validate(m.Document) == nil {
			changed, _ := json.Marshal(m.Document)
			t.Errorf("%s at %s is accepted: %s", m.Kind, m.Place, changed)
		}
	}
	wanted := []string{schemagen.WrongType, schemagen.Missing}
	if !contains(acceptsUnknown, name) {
		wanted = append(wanted, schemagen.Unknown)
	}
	if bytes.Contains(text, []byte(`"enum":`)) && !contains(acceptsUnknown, name) && name != "rule-data" {
		wanted = append(wanted, schemagen.WrongValue)
	}
	for _, kind := range wanted {
		if kinds[kind] == 0 {
			t.Errorf("no mutation: %s", kind)
		}
	}
}

func contains(list []string, name string) bool {
	for _, l := range list {
		if l == name {
			return true
		}
	}
	return false
}

// encoded encodes a value as the program does.
func encoded(t *testing.T, d schemaRow, v any) []byte {
	t.Helper()
	if d.tag == "yaml" {
		text, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return yamlAsJSON(t, text)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// yamlAsJSON converts a document.
func yamlAsJSON(t *testing.T, text []byte) []byte {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// parsed returns the value of a document as the library of schemas takes it.
func parsed(t *testing.T, text []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// emptySample returns the value of a type in which nothing is set but the values of enumerations.
func emptySample(d schemaRow) any { return schemaGenerator().Empty(d.of) }
