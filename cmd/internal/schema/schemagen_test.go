package schema_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/operator-bindery/bindery/docs/reference/schemas"
)

var updateSchemas = flag.Bool("update-schemas", false, "write docs/reference/schemas")

// The schemas in docs are those that the types give: go test ./cmd/internal/schema -run TestSchemas -update-schemas writes
// them.
func TestSchemasAreCurrent(t *testing.T) {
	const dir = "../../../docs/reference/schemas"
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
