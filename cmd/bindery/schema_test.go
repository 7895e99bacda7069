package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/docs/reference/schemas"
)

func TestSchemaCommand(t *testing.T) {
	listed := runProgram(t, t.TempDir(), "bindery", "schema")
	for _, name := range schemas.Names() {
		if !strings.Contains(listed.stdout, "\n"+name+" ") {
			t.Errorf("%s is not listed", name)
		}
	}
	text, _ := schemas.Text("selection")
	if r := runProgram(t, t.TempDir(), "bindery", "schema", "selection"); r.stdout != string(text) || r.status != 0 {
		t.Errorf("status %d: %s%s", r.status, r.stdout, r.stderr)
	}
	var answer schemaList
	r := runProgram(t, t.TempDir(), "bindery", "schema", "-o", "json")
	if err := json.Unmarshal([]byte(r.stdout), &answer); err != nil || len(answer.Schemas) != len(schemas.Names()) {
		t.Errorf("%v: %s", err, r.stdout)
	}
	for _, s := range answer.Schemas {
		if s.Title == "" || s.Description == "" || s.ID != schemaID+s.Name+".json" {
			t.Errorf("%+v", s)
		}
	}
	r = runProgram(t, t.TempDir(), "bindery", "schema", "selektion")
	if r.status != 1 || !strings.Contains(r.stderr, `did you mean "selection"`) || r.stdout != "" {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
	r = runProgram(t, t.TempDir(), "bindery", "__complete", "schema", "list-b")
	if !strings.HasPrefix(r.stdout, "list-bundles") {
		t.Errorf("completion: %q", r.stdout)
	}
}
