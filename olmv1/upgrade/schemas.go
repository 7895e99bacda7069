package upgrade

import (
	"bytes"
	"encoding/json"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// schemaText is the schema of a version as canonical JSON: little of it differs between two bundles, and only that is
// decoded.
type schemaText []byte

// decode decodes an object, but for the schemas of a definition.
func decode(o Manifest) (content map[string]any, err error) {
	text, schemas := o.JSON, []schemaText(nil)
	if isDefinition(o.Object) {
		text, schemas = cutSchemas(text)
	}
	if err := json.Unmarshal(text, &content); err != nil || len(schemas) == 0 {
		return content, err
	}
	for _, v := range content["spec"].(map[string]any)["versions"].([]any) {
		schema, _ := v.(map[string]any)["schema"].(map[string]any)
		if _, ok := schema["openAPIV3Schema"]; ok {
			schema["openAPIV3Schema"], schemas = schemas[0], schemas[1:]
		}
	}
	return content, nil
}

// cutSchemas returns a definition with null in place of the schemas of versions, and these; a text with an oddity as it is.
func cutSchemas(text []byte) (outer []byte, schemas []schemaText) {
	canonical, err := canon.AppendJSON(make([]byte, 0, len(text)), text, canon.Limits{}, nil)
	if err != nil {
		return text, nil
	}
	s, done := jsonscan.NewScanner(canonical), 0
	s.At(func() {
		outer = append(append(outer, canonical[done:s.Offset()]...), "null"...)
		schemas = append(schemas, s.Value())
		done = s.Offset()
	}, "spec", "versions", "[]", "schema", "openAPIV3Schema")
	if !s.Done() {
		return text, nil
	}
	return append(outer, canonical[done:]...), schemas
}

// schemasOf returns the schemas of two versions for their comparison.
func schemasOf(from, to map[string]any) (x, y map[string]any, err error) {
	of := func(version map[string]any) (any, schemaText) {
		schema, _ := version["schema"].(map[string]any)
		text, _ := schema["openAPIV3Schema"].(schemaText)
		return schema["openAPIV3Schema"], text
	}
	before, a := of(from)
	after, b := of(to)
	if isObject(a) && isObject(b) {
		a, b = differing(a, b, false)
	}
	if a != nil {
		err = json.Unmarshal(a, &before)
	}
	if b != nil && err == nil {
		err = json.Unmarshal(b, &after)
	}
	x, _ = before.(map[string]any)
	y, _ = after.(map[string]any)
	return x, y, err
}

func isObject(text []byte) bool { return len(text) > 0 && text[0] == '{' }

// differing returns two schemas, or two maps of properties, without the attributes that are equal in both, and with empty
// schemas for fields that are equal. What is required stays, as it is compared with what the fields are.
func differing(a, b []byte, properties bool) (x, y []byte) {
	x, y = []byte{'{'}, []byte{'{'}
	old := map[string][]byte{}
	jsonscan.Members(a, func(key, value []byte) bool {
		old[string(key)] = value
		return true
	})
	jsonscan.Members(b, func(key, after []byte) bool {
		name := string(key)
		before, both := old[name]
		delete(old, name)
		isSchema := properties || name == "items" || name == "additionalProperties"
		switch equal := bytes.Equal(before, after); {
		case !both:
			y = appendMember(y, name, after)
			return true
		case equal && isSchema:
			before, after = []byte("{}"), []byte("{}")
		case isObject(before) && isObject(after) && (isSchema || name == "properties"):
			before, after = differing(before, after, !isSchema)
		case equal && name != "required":
			return true
		}
		x, y = appendMember(x, name, before), appendMember(y, name, after)
		return true
	})
	for name, value := range old {
		x = appendMember(x, name, value)
	}
	return append(bytes.TrimSuffix(x, []byte(",")), '}'), append(bytes.TrimSuffix(y, []byte(",")), '}')
}

// appendMember appends a member of an object with the comma after it.
func appendMember(out []byte, name string, value []byte) []byte {
	out = append(append(append(out, '"'), name...), `":`...)
	return append(append(out, value...), ',')
}
