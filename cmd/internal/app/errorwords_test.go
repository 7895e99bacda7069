package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// An error says what is wrong once, at one place, and what to do about it.
func TestErrorsSayWhatToDo(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"syntax/catalog.yaml": "schema: olm.package\nname: a\n---\nschema: olm.channel\npackage: a\nentries: [\n",
		"full/file":           "",
		"bad/catalog.yaml": "schema: olm.package\nname: a\ndefaultChannel: c\n---\nschema: olm.channel\npackage: a\nname: c\n" +
			"entries: [{name: a.v1}]\n---\nschema: olm.bundle\npackage: a\nname: a.v1\nimage: example.com/a:v1\nproperties:\n" +
			"- type: olm.package\n  value: {packageName: a, version: one}\n",
		"ok/catalog.yaml": "schema: olm.package\nname: a\ndefaultChannel: c\n---\nschema: olm.channel\npackage: a\nname: c\n" +
			"entries: [{name: a.v1}]\n---\nschema: olm.bundle\npackage: a\nname: a.v1\nimage: example.com/a:v1\nproperties:\n" +
			"- type: olm.package\n  value: {packageName: a, version: 1.0.0}\n",
		"compose.yaml": "name: a\nrepo: [\n",
		"set.yaml": "kind: ImageSetConfiguration\nmirror:\n  operators:\n  - catalog: example.com/c:v1\n" +
			"    packages: [{name: a, channels: [stable]}]\n  additionalImages: [x]\n",
		"junk.tar": strings.Repeat("no tar archive, but text\n", 100),
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "cut.db"), append([]byte("SQLite format 3\x00\x10\x00"), make([]byte, 9000)...),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, want string
		not        []string
	}{
		{"validate syntax", "[syntax/catalog.yaml:6]", []string{"line 4", "line 3"}},
		{"check syntax", "syntax/catalog.yaml:6: ", []string{"line 4", "line 3", "olmv1.unreadable"}},
		{"build compose compose.yaml --plan", "compose.yaml:2: ", []string{"line"}},
		{"check bad", "with a version such as 1.2.3", []string{"error   olmv1.version", "mend"}},
		{"list packages cut.db", "hint: copy the database again", []string{"cache prune", "prints every problem"}},
		{"migrate cut.db out", "hint: copy the database again", []string{"cache prune", "prints every problem"}},
		{"mirror plan -c set.yaml", "packages[0].channels[0]: a string, expected an object", []string{"without a name"}},
		{"mirror plan -c set.yaml", "additionalImages[0]: a string, expected an object", []string{"is empty"}},
		{"list packages oci-archive:junk.tar", "this is no tar archive, or a damaged one: copy it again", []string{"archive/tar"}},
		{"migrate ok full", "hint: name a directory that does not exist, or remove what is in this one", nil},
	} {
		got := clitest.RunProgram(t, dir, "bindery", strings.Fields(c.args)...)
		out := got.Stdout + got.Stderr
		if got.Status == 0 || strings.Count(out, c.want) != 1 {
			t.Errorf("%s: exit status %d, not once %q in\n%s", c.args, got.Status, c.want, out)
		}
		for _, not := range c.not {
			if strings.Contains(out, not) {
				t.Errorf("%s: %q in\n%s", c.args, not, out)
			}
		}
	}
}
