package catalogql

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/graphql-go/graphql"
)

// blobsInMemory are blobs by schema, as canonical JSON.
type blobsInMemory map[string][][]byte

func (b blobsInMemory) Count(schema string) int { return len(b[schema]) }

func (b blobsInMemory) Size(schema string, i int) (offset, length int64) {
	return int64(i), int64(len(b[schema][i]) + 1)
}

func (b blobsInMemory) Read(schema string, i int) ([]byte, error) { return b[schema][i], nil }

// serviceOf returns a service for blobs that are given as any JSON objects.
func serviceOf(t testing.TB, texts ...string) (*Service, error) {
	t.Helper()
	var d Discovery
	blobs := blobsInMemory{}
	for _, text := range texts {
		line, schema := canonical(text)
		if line == nil {
			t.Fatalf("no object: %s", text)
		}
		if err := d.Add(schema, line); err != nil {
			return nil, err
		}
		blobs[schema] = append(blobs[schema], line)
	}
	return d.Service(blobs)
}

// canonical returns an object as canonical JSON with its schema; nil for another text.
func canonical(text string) (line []byte, schema string) {
	var v map[string]any
	if json.Unmarshal([]byte(text), &v) != nil || v == nil {
		return nil, ""
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return nil, ""
	}
	schema, _ = v["schema"].(string)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), schema
}

// elementOf returns the objects of a list; nil if there are none.
func elementOf(t graphql.Output) *graphql.Object {
	if list, ok := t.(*graphql.List); ok {
		object, _ := list.OfType.(*graphql.Object)
		return object
	}
	return nil
}

var sampleBlobs = []string{
	`{"schema":"olm.package","name":"p1","defaultChannel":"stable","description":"<b>"}`,
	`{"schema":"olm.bundle","name":"p1.v1","package":"p1","properties":[{"type":"a",` +
		`"value":{"b":[1,2.50]}},{"type":"c","value":3},null,4]}`,
	`{"schema":"olm.bundle","name":"p1.v2","package":"p1","properties":null}`,
	`{"schema":"olm.bundle","name":"p1.v3","properties":"none","image":7}`,
	`{"schema":"custom.thing","9digit":"d","UPPER_CASE":"u","_lead":"l","flag":true,"float":1.5,"list":[1,2],` +
		`"mixed":[1,"a"],"name":"p1","nested":{"a":{"b":1}},"nothing":null,"number":1,` +
		`"objs":[{"Some-Key":"v","x":1},{"true":[1]}]}`,
	`{"schema":"custom.thing","flag":"no","float":"1e3","number":3000000000,"name":{"<":1},"list":3,` +
		`"nothing":[],"objs":{"x":1}}`,
}

func sampleService(t testing.TB) *Service {
	t.Helper()
	s, err := serviceOf(t, sampleBlobs...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// answered returns the answer to a query.
func answered(t testing.TB, ctx context.Context, s *Service, query string) string {
	t.Helper()
	var b bytes.Buffer
	failure, err := s.Answer(ctx, query, &b)
	if err != nil {
		t.Fatal(err)
	}
	text := b.Bytes()
	if failure != nil {
		text = failure
	}
	if !json.Valid(text) || text[len(text)-1] != '\n' {
		t.Fatalf("no JSON: %.500s", text)
	}
	return string(text)
}
