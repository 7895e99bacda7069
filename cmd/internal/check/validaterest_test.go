package check_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

// The error text has the first problems of each kind, the answer has all of them.
func TestAllProblemsAreInTheAnswer(t *testing.T) {
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "cat", "c.yaml"),
		"schema: olm.package\nname: a\ndefaultChannel: c\n---\nschema: olm.channel\nname: c\npackage: a\nentries:\n"+
			strings.Repeat("- name: a.v1\n", 301))
	got := clitest.RunProgram(t, dir, "bindery", "validate", "cat")
	if got.Status != 1 || strings.Count(got.Stderr, "duplicate entry") != 100 || !strings.Contains(got.Stderr,
		`... and 200 more problems of the kind "duplicate"`) {
		t.Errorf("%+v", got)
	}
	for format, unmarshal := range map[string]func([]byte, any) error{"json": json.Unmarshal,
		"yaml": func(b []byte, v any) error { return yaml.Unmarshal(b, v) }} {
		got := clitest.RunProgram(t, dir, "bindery", "validate", "cat", "-o", format)
		var v struct {
			Passed   bool
			Problems []struct{ Rule, Message, File string }
		}
		if err := unmarshal([]byte(got.Stdout), &v); err != nil {
			t.Fatalf("%s: %v\n%s", format, err, got.Stdout)
		}
		if n := len(v.Problems); got.Status != 1 || v.Passed || n != 301 || v.Problems[n-1].Rule != "duplicate" ||
			v.Problems[n-1].File != "c.yaml" {
			t.Errorf("%s: status %d, %d problems", format, got.Status, n)
		}
	}
}

// The number of warnings is limited.
func TestManyWarnings(t *testing.T) {
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "cat", "c.yaml"),
		strings.Repeat("---\nschema: custom\npackage: a\nx: 1\nx: 2\n", 1200))
	got := clitest.RunProgram(t, dir, "bindery", "validate", "cat")
	if n := strings.Count(got.Stderr, "duplicate key"); got.Status != 0 || n != program.MaxWarnings ||
		!strings.Contains(got.Stderr, "200 more warnings") {
		t.Errorf("%d warnings: %.300s", n, got.Stderr)
	}
}
