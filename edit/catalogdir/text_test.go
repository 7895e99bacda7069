package catalogdir_test

import (
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

const (
	yamlA = "# the package\nschema: olm.package # here\nname: a\ndefaultChannel: stable\n"
	yamlC = "schema: olm.channel\nname: stable\npackage: a\nentries:\n  - name: a.v1.0.0 # first\n"
	yamlX = "schema: x\npackage: a\ntext: |+\n  one\n\n"
	yamlB = "schema: olm.package\nname: b\n"
)

// A rewritten file keeps all text that is not part of a change.
func TestTexts(t *testing.T) {
	setDefault := func(c *declcfg.Catalog) {
		for i := range c.Packages {
			if c.Packages[i].Name == "a" {
				c.Packages[i].DefaultChannel = "other"
			}
		}
	}
	const changedA = "schema: olm.package # here\nname: a\ndefaultChannel: other\n"
	const canonicalA = "defaultChannel: other\nname: a\nschema: olm.package\n" // of what is in no lines of block style
	crlf := func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
	indented := func(by string) string {
		return "{\n" + by + "\"schema\": \"olm.package\",\n" + by + "\"name\": \"a\",\n" + by +
			"\"defaultChannel\": \"stable\",\n" + by + "\"properties\": [\n" + by + by + "{\n" + by + by + by +
			"\"type\": \"x\",\n" + by + by + by + "\"value\": {}\n" + by + by + "}\n" + by + "]\n}"
	}
	other := func(text string) string { return strings.ReplaceAll(text, "stable", "other") }
	for name, c := range map[string]struct {
		file   string
		change func(*declcfg.Catalog)
		want   string // empty: the file is removed
	}{
		"changed, with comments before and behind": {
			"# file\n---\n" + yamlA + "# behind\n---\n" + yamlC, setDefault,
			"# file\n---\n# the package\n" + changedA + "# behind\n---\n" + yamlC,
		},
		"changed, without a separator before it": {
			yamlA + "--- # next\n" + yamlC, setDefault,
			"# the package\n" + changedA + "--- # next\n" + yamlC,
		},
		"changed, the last, without a line end": {
			"---\n" + yamlC + "---\n" + strings.TrimSuffix(yamlA, "\n"), setDefault,
			"---\n" + yamlC + "---\n# the package\n" + changedA,
		},
		"blank lines before a separator": {
			yamlA + "\n\n---\n\n" + yamlC, setDefault,
			"# the package\n" + changedA + "\n\n---\n\n" + yamlC,
		},
		"comments of their own": {
			"# licence\n---\n# nothing\n---\n" + yamlC + "---\n# between\n---\n" + yamlB + "---\n# end\n",
			removing("stable"),
			"# licence\n---\n# nothing\n---\n# between\n---\n" + yamlB + "---\n# end\n",
		},
		"the first removed": {
			"---\n" + yamlC + "---\n" + yamlB, removing("stable"),
			"---\n" + yamlB,
		},
		"the first removed, without a separator": {
			yamlC + "---\n" + yamlB, removing("stable"),
			"---\n" + yamlB,
		},
		"the last removed": {
			"---\n" + yamlB + "---\n" + yamlC, removing("stable"),
			"---\n" + yamlB,
		},
		"the last removed, without a line end": {
			"---\n" + yamlB + "---\n" + strings.TrimSuffix(yamlC, "\n"), removing("stable"),
			"---\n" + yamlB,
		},
		"all removed": {"# licence\n---\n" + yamlC, removing("stable"), ""},
		"added behind the last, without a line end": {
			yamlB + "---\n" + strings.TrimSuffix(yamlC, "\n"), adding(t, strings.ReplaceAll(chA, "stable", "fast")),
			yamlB + "---\n" + yamlC + "---\nschema: olm.channel\nname: fast\npackage: a\nentries:\n- name: a.v1.0.0\n",
		},
		"added behind text with blank lines at its end": {
			yamlX + "---\n" + yamlB, adding(t, `{"schema":"x","package":"a","text":"two\n\n"}`),
			yamlX + "---\nschema: x\npackage: a\ntext: |+\n  two\n\n---\n" + yamlB,
		},
		"changed text with blank lines at its end, comments behind it": {
			yamlX + "# end\n\n---\n" + yamlB, func(c *declcfg.Catalog) {
				c.Others[0].Blob = []byte(`{"package":"a","schema":"x","text":"two\n\n"}`)
			},
			"package: a\nschema: x\ntext: |+\n  two\n\n# end\n\n---\n" + yamlB,
		},
		"CR LF": {
			crlf("---\n" + yamlA + "---\n" + yamlC),
			func(c *declcfg.Catalog) { setDefault(c); adding(t, strings.ReplaceAll(chA, "stable", "fast"))(c) },
			crlf("---\n# the package\n" + changedA + "---\n" + yamlC +
				"---\nschema: olm.channel\nname: fast\npackage: a\nentries:\n- name: a.v1.0.0\n"),
		},
		"flow style": {
			"{schema: olm.package, name: a, defaultChannel: stable}\n---\n{schema: olm.package, name: b}\n", setDefault,
			canonicalA + "---\n{schema: olm.package, name: b}\n",
		},
		"documents that are JSON, in YAML": {
			"---\n" + pkgA + "---\n" + pkgB, setDefault,
			"---\n" + canonicalA + "---\n" + pkgB,
		},
		"JSON that goes on as YAML": {
			pkgA + "---\n" + yamlC + "---\n" + yamlB, func(c *declcfg.Catalog) { setDefault(c); adding(t, buA1)(c) },
			other(pkgA) + "---\n" + yamlC +
				"---\nschema: olm.bundle\nname: a.v1.0.0\npackage: a\nimage: r/a:1\nproperties:\n- type: " +
				"olm.package\n  value:\n    packageName: a\n    version: 1.0.0\n---\n" + yamlB,
		},
		"JSON that goes on as YAML, added behind the JSON": {
			pkgA + "---\n" + yamlB, adding(t, buA1),
			pkgA[:len(
				pkgA)-1] +
				"\n---\nimage: r/a:1\nname: a.v1.0.0\npackage: a\nproperties:\n- type: " +
				"olm.package\n  value:\n    packageName: a\n    version: 1.0.0\nschema: olm.bundle\n---\n" + yamlB,
		},
		"JSON that goes on as YAML, without the JSON": {pkgA + "---\n" + yamlB, removing("a"), "\n---\n" + yamlB},
		"JSON indented by two": {indented("  ") + "\n" + pkgB, setDefault,
			other(indented("  ")) + "\n" + pkgB},
		"JSON indented by four": {indented("    ") + "\n" + pkgB, setDefault,
			other(indented("    ")) + "\n" + pkgB},
		"JSON indented by a tab": {indented("\t") + "\n\n" + pkgB, setDefault,
			other(indented("\t")) + "\n\n" + pkgB},
		"JSON with CR LF": {crlf(indented("  ") + "\n" + pkgB), setDefault,
			crlf(other(indented("  ")) + "\n" + pkgB)},
		"JSON in a line, with spaces": {
			`{"schema": "olm.package", "name": "a", "defaultChannel": "stable", "description": "a:b,c\"d:e"}`,
			setDefault,
			`{"schema": "olm.package", "name": "a", "defaultChannel": "other", "description": "a:b,c\"d:e"}`,
		},
		"JSON, white space as it was": {"\n  " + pkgB + "\n\n" + pkgA + "\n", setDefault,
			"\n  " + pkgB + "\n\n" + other(pkgA) + "\n"},
		"JSON without anything between": {
			strings.ReplaceAll(pkgB+pkgA, "\n", ""), adding(t, buA1), strings.ReplaceAll(pkgB+pkgA+buA1, "\n", ""),
		},
		"JSON in forms of their own": {
			indented("  ") + "\n" + chA + "\n" + pkgB,
			func(c *declcfg.Catalog) { setDefault(c); adding(t, strings.ReplaceAll(chA, "stable", "fast"))(c) },
			other(indented("  ")) + "\n" + strings.TrimSuffix(chA, "\n") + "\n" + strings.ReplaceAll(chA, "stable",
				"fast") + "\n" + pkgB,
		},
		"JSON, the first removed": {pkgA + "\n\n" + pkgB, removing("a"), pkgB},
		"JSON, the last removed": {pkgB + strings.TrimSuffix(pkgA, "\n"), removing("a"),
			strings.TrimSuffix(pkgB, "\n")},
		"numbers keep their text": {`{"schema":"x","package":"a","n":1.50}` + "\n" + pkgA, setDefault,
			`{"schema":"x","package":"a","n":1.50}` + "\n" + other(pkgA)},
		"what says the same is no change": {"---\n" + yamlA + "---\n" + yamlX,
			func(c *declcfg.Catalog) { c.Packages[0].Properties = []declcfg.Property{} },
			"---\n" + yamlA + "---\n" + yamlX},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{"dir/some file": c.file})
			before := load(t, dir)
			c.change(before)
			if _, err := edit(t, dir, []string{"a", "b"}, c.change); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"dir/some file": c.want}
			if c.want == "" {
				want = map[string]string{}
			}
			sameFiles(t, contents(t, dir), want)
			if got, want := text(t, load(t, dir)), text(t, before); got != want {
				t.Errorf("the catalog is\n%s\nand not\n%s", got, want)
			}
		})
	}
}
