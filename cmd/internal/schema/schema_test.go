package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	schemacmd "github.com/operator-bindery/bindery/cmd/internal/schema"
	"github.com/operator-bindery/bindery/docs/reference/schemas"
)

func TestSchemaCommand(t *testing.T) {
	listed := clitest.RunProgram(t, t.TempDir(), "bindery", "schema")
	for _, name := range schemas.Names() {
		if !strings.Contains(listed.Stdout, "\n"+name+" ") {
			t.Errorf("%s is not listed", name)
		}
	}
	text, _ := schemas.Text("selection")
	if r := clitest.RunProgram(t, t.TempDir(), "bindery", "schema", "selection"); r.Stdout != string(text) || r.Status != 0 {
		t.Errorf("status %d: %s%s", r.Status, r.Stdout, r.Stderr)
	}
	var answer schemacmd.List
	r := clitest.RunProgram(t, t.TempDir(), "bindery", "schema", "-o", "json")
	if err := json.Unmarshal([]byte(r.Stdout), &answer); err != nil || len(answer.Schemas) != len(schemas.Names()) {
		t.Errorf("%v: %s", err, r.Stdout)
	}
	for _, s := range answer.Schemas {
		if s.Title == "" || s.Description == "" || s.ID != schemaID+s.Name+".json" {
			t.Errorf("%+v", s)
		}
	}
	r = clitest.RunProgram(t, t.TempDir(), "bindery", "schema", "selektion")
	if r.Status != 1 || !strings.Contains(r.Stderr, `did you mean "selection"`) || r.Stdout != "" {
		t.Errorf("status %d: %s", r.Status, r.Stderr)
	}
	r = clitest.RunProgram(t, t.TempDir(), "bindery", "__complete", "schema", "list-b")
	if !strings.HasPrefix(r.Stdout, "list-bundles") {
		t.Errorf("completion: %q", r.Stdout)
	}
}
