package catalogql

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// recordedField is a field in catalogd's stored type system.
type recordedField struct {
	Name, OriginalName, GraphQLTypeName string
	IsArray                             bool
	NestedFields                        map[string]recordedField
}

// The fields that are found in catalogd's stored catalogs are those that catalogd found.
func TestFieldsAreThoseOfCatalogd(t *testing.T) {
	for _, name := range []string{"alpha", "beta"} {
		t.Run(name, func(t *testing.T) {
			var want struct {
				Schemas map[string]struct {
					Fields       map[string]recordedField
					TotalObjects int
				}
			}
			if err := json.Unmarshal(recordedFile(t, name+".graphql-schema.json"), &want); err != nil {
				t.Fatal(err)
			}
			var d Discovery
			for line := range bytes.Lines(recordedFile(t, name+".catalog.jsonl")) {
				var b struct{ Schema string }
				if err := json.Unmarshal(line, &b); err != nil {
					t.Fatal(err)
				}
				if err := d.Add(b.Schema, bytes.TrimSuffix(line, []byte("\n"))); err != nil {
					t.Fatal(err)
				}
			}
			if got, want := slices.Sorted(maps.Keys(d.schemas)),
				slices.Sorted(maps.Keys(want.Schemas)); !slices.Equal(got, want) {
				t.Fatalf("schemas %v, not %v", got, want)
			}
			for schema, s := range d.schemas {
				if s.objects != want.Schemas[schema].TotalObjects {
					t.Errorf("%s: %d objects, not %d", schema, s.objects, want.Schemas[schema].TotalObjects)
				}
				same(t, schema, s.fields, want.Schemas[schema].Fields)
			}
		})
	}
}

func same(t *testing.T, of string, fields map[string]*field, want map[string]recordedField) {
	t.Helper()
	if got, want := slices.Sorted(maps.Keys(fields)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, want) {
		t.Errorf("%s: fields %v, not %v", of, got, want)
		return
	}
	for name, f := range fields {
		kind := [...]string{asString: "String", asBoolean: "Boolean", asInt: "Int", asFloat: "Float"}[f.kind]
		if w := want[name]; f.key != w.OriginalName || f.list != w.IsArray || kind != w.GraphQLTypeName ||
			name != w.Name {
			t.Errorf("%s.%s: %+v %s, not %+v", of, name, f, kind, w)
		}
		same(t, of+"."+name, f.nested, want[name].NestedFields)
	}
}

// recordedFile returns a file of testdata, decompressed.
func recordedFile(t *testing.T, name string) []byte {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("testdata", name+".zst"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	text, err := z.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
