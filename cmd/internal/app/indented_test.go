package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
)

// blownUp are documents of a catalog that are short, and whose text with indentation would be a hundred times as long.
func blownUp() map[string]string {
	ones := func(n int) string { return strings.TrimSuffix(strings.Repeat("1,", n), ",") }
	nested := func(n int) string { return strings.Repeat("[", 94) + ones(n) + strings.Repeat("]", 94) }
	var members strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&members, `"%d":1,`, i)
	}
	blob := func(v string) string { return `{"schema":"x","package":"foo","v":` + v + "}\n" }
	return map[string]string{
		"lists":          blob(nested(20_000)),
		"objects":        blob(strings.Repeat(`{"a":`, 94) + "{" + members.String() + `"b":1}` + strings.Repeat("}", 94)),
		"many documents": strings.Repeat(blob(nested(400)), 50),
		"many pairs":     blob(strings.Repeat("[", 90) + strings.TrimSuffix(strings.Repeat("[[]],", 8000), ",") + strings.Repeat("]", 90)),
		"a property": `{"schema":"olm.bundle","name":"foo.v2.0.0","package":"foo","image":"registry.example.com/foo:v2","properties":[` +
			`{"type":"olm.package","value":{"packageName":"foo","version":"2.0.0"}},{"type":"x","value":` + nested(20_000) + "}]}\n" +
			`{"schema":"olm.channel","name":"two","package":"foo","entries":[{"name":"foo.v2.0.0"}]}` + "\n",
		"a field of a package's channel": `{"schema":"olm.channel","name":"two","package":"foo","entries":[{"name":"foo.v1.0.0"}],"x":` +
			nested(20_000) + "}\n",
	}
}

const fooCatalog = `{"schema":"olm.package","name":"foo","defaultChannel":"one"}
{"schema":"olm.channel","name":"one","package":"foo","entries":[{"name":"foo.v1.0.0"}]}
{"schema":"olm.bundle","name":"foo.v1.0.0","package":"foo","image":"registry.example.com/foo:v1","properties":[{"type":"olm.package","value":{"packageName":"foo","version":"1.0.0"}}]}
`

// What indentation makes of a catalog is bounded, whatever writes it: it is an error that names the file, and nothing is
// written.
func TestIndentationIsBounded(t *testing.T) {
	for name, docs := range blownUp() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			clitest.WriteFile(t, filepath.Join(dir, "cat", "foo", "catalog.json"), fooCatalog+docs)
			before := clitest.Snapshot(t, dir)
			for _, args := range []string{"render cat", "render cat -o yaml", "migrate cat out", "migrate cat out -o yaml",
				"catalog fmt cat", "template convert substitutes cat", "template convert substitutes cat -o yaml",
				"build catalog cat -t a/b:v1 --server none --migrate-level bundle-object-to-csv-metadata"} {
				got := clitest.RunProgram(t, dir, "bindery", append(strings.Fields(args), "--error-format", "json")...)
				if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, "limit exceeded") ||
					!strings.Contains(got.Stderr, "cat") || !strings.Contains(got.Stderr, `"class":6`) {
					t.Errorf("%s: status %d, %d bytes: %s", args, got.Status, len(got.Stdout), got.Stderr)
				}
				if after := clitest.Snapshot(t, dir); after != before {
					t.Errorf("%s: files before\n%s\nafter\n%s", args, before, after)
				}
			}
			// Without indentation it is as long as it was.
			if got := clitest.RunProgram(t, dir, "bindery", "render", "cat", "-o", "ndjson"); got.Status != 0 ||
				len(got.Stdout) > 2*len(fooCatalog+docs) {
				t.Errorf("ndjson: status %d, %d bytes: %s", got.Status, len(got.Stdout), got.Stderr)
			}
		})
	}
}

// What aliases make of all documents of a catalog is bounded, not only of each.
func TestAliasesAreBounded(t *testing.T) {
	doc := "---\nschema: x\npackage: foo\na: &a " + strings.Repeat("z", 500) + "\nb: [" +
		strings.TrimSuffix(strings.Repeat("*a,", 500), ",") + "]\n"
	for name, files := range map[string]map[string]string{
		"documents": {"a.yaml": strings.Repeat(doc, 20)},
		"files": func() map[string]string {
			all := map[string]string{}
			for i := range 20 {
				all[fmt.Sprintf("%d.yaml", i)] = doc
			}
			return all
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			clitest.WriteFile(t, filepath.Join(dir, "cat", "foo.json"), fooCatalog)
			for name, text := range files {
				clitest.WriteFile(t, filepath.Join(dir, "cat", name), text)
			}
			for _, args := range []string{"render cat", "render cat -o ndjson", "validate cat", "list packages cat",
				"migrate cat out"} {
				got := clitest.RunProgram(t, dir, "bindery", strings.Fields(args)...)
				if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, "alias expansion exceeds the limit") {
					t.Errorf("%s: status %d, %d bytes: %s", args, got.Status, len(got.Stdout), got.Stderr)
				}
			}
		})
	}
}

// A catalog that is written can be read: what readers refuse for its depth, its size or its items is not written.
func TestNothingUnreadableIsWritten(t *testing.T) {
	for name, v := range map[string]string{
		"wide, as YAML": "[" + strings.TrimSuffix(strings.Repeat("1,", 300_000), ",") + "]",
		"long":          "[" + strings.TrimSuffix(strings.Repeat("1,", 8<<20), ",") + "]",
		"deep":          strings.Repeat("[", 97) + strings.Repeat("]", 97),
		"lines":         strings.Repeat("[", 60) + `"` + strings.Repeat(`a\n`, 20_000) + `"` + strings.Repeat("]", 60),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			clitest.WriteFile(t, filepath.Join(dir, "cat", "catalog.json"), fooCatalog+`{"schema":"x","package":"foo","v":`+v+"}\n")
			for _, format := range []string{"json", "yaml"} {
				got := clitest.RunProgram(t, dir, "bindery", "migrate", "cat", format, "-o", format)
				if got.Status == 0 {
					got = clitest.RunProgram(t, dir, "bindery", "validate", format)
				} else if _, err := os.Stat(filepath.Join(dir, format)); err == nil ||
					!strings.Contains(got.Stderr, "limit exceeded") {
					t.Errorf("%s: %s", format, got.Stderr)
					continue
				}
				if got.Status != 0 && !strings.Contains(got.Stderr, "limit exceeded") {
					t.Errorf("%s: written, and then: %s", format, got.Stderr)
				}
			}
		})
	}
}

// An answer with content from outside is bounded in the same way.
func TestIndentationOfAnswersIsBounded(t *testing.T) {
	keys := supplytest.Vectors(t)["keys"]
	layout := supplytest.Unpack(t, "unsigned")
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "p256.pub"), string(keys["p256.pub"]))
	clitest.WriteFile(t, filepath.Join(dir, "p256.key"), string(keys["p256.pkcs8.pem"]))
	clitest.WriteFile(t, filepath.Join(dir, "deep.json"), `{"a":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}`)
	clitest.Done(t, dir, "bindery", "attest", "oci:"+layout+":v1", "--type", "https://example.com/a", "--predicate", "deep.json",
		"--sign-key", "p256.key", "--allow-plain-key")
	verify := []string{"verify", "oci:" + layout + ":v1", "--key", "p256.pub", "--type", "https://example.com/a"}
	clitest.Done(t, dir, "bindery", verify...)
	got := clitest.RunProgram(t, dir, "bindery", append(verify, "-o", "json", "--error-format", "json")...)
	if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, "limit exceeded") ||
		!strings.Contains(got.Stderr, `"class":6`) || !strings.Contains(got.Stderr, layout) {
		t.Errorf("status %d, %d bytes: %s", got.Status, len(got.Stdout), got.Stderr)
	}
}
