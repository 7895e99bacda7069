package catalogdir_test

import (
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

// A changed document keeps the text of its unchanged parts: order of keys and items, comments, quotes and indentation.
func TestDocumentsChangeWhereTheyMust(t *testing.T) {
	entries := func(list ...declcfg.ChannelEntry) func(*declcfg.Catalog) {
		return func(c *declcfg.Catalog) { c.Channels[0].Entries = list }
	}
	e := func(name, replaces string, skips ...string) declcfg.ChannelEntry {
		return declcfg.ChannelEntry{Name: name, Replaces: replaces, Skips: skips}
	}
	deprecations := func(list ...declcfg.DeprecationEntry) func(*declcfg.Catalog) {
		return func(c *declcfg.Catalog) { c.Deprecations[0].Entries = list }
	}
	about := func(bundle, message string) declcfg.DeprecationEntry {
		return declcfg.DeprecationEntry{Reference: declcfg.Reference{Schema: "olm.bundle", Name: bundle},
			Message: message}
	}
	const pkg = "---\nschema: olm.package\nname: a\n"
	for name, c := range map[string]struct {
		file   string
		change func(*declcfg.Catalog)
		want   string
	}{
		"an entry is added": {
			"# ask first\nschema: olm.channel\npackage: a\nname: 'stable' # the one\n\nentries: # newest last\n- " +
				"name: a.v1\n- name: a.v2 # good\n  replaces: \"a.v1\"\n",
			entries(e("a.v1", ""), e("a.v2", "a.v1"), e("a.v3", "a.v2", "a.v0")),
			"# ask first\nschema: olm.channel\npackage: a\nname: 'stable' # the one\n\nentries: # newest last\n- " +
				"name: a.v1\n- name: a.v2 # good\n  replaces: \"a.v1\"\n- name: a.v3\n  replaces: " +
				"a.v2\n  skips:\n  - a.v0\n",
		},
		"an entry changes, another goes": {
			"schema: olm.channel\npackage: a\nname: stable\nentries:\n  # the first\n  - name: a.v1 # old\n  # the " +
				"second\n  -   name: a.v2 # middle\n      replaces: a.v1\n  # the third\n  - replaces: a.v2 # so " +
				"that\n    name: 'a.v3'\nextra: 1\n",
			entries(e("a.v2", ""), e("a.v3", "a.v2", "a.v1")),
			"schema: olm.channel\npackage: a\nname: stable\nentries:\n  # the first\n  # the second\n  -   name: " +
				"a.v2 # middle\n  # the third\n  - replaces: a.v2 # so that\n    name: 'a.v3'\n    skips:\n    - " +
				"a.v1\nextra: 1\n",
		},
		"entries change their order": {
			"schema: olm.channel\nname: stable\npackage: a\nentries:\n- {name: a.v1}\n- name: a.v2 # two\n",
			entries(e("a.v2", ""), e("a.v1", "")),
			"schema: olm.channel\nname: stable\npackage: a\nentries:\n- name: a.v2 # two\n- {name: a.v1}\n",
		},
		"keys in declcfg's order get new ones at their place": {
			"entries:\n- name: a.v2\n  skips: [a.v1] # two\nname: stable\npackage: a\nschema: olm.channel\n",
			entries(e("a.v2", "a.v0", "a.v1")),
			"entries:\n- name: a.v2\n  replaces: a.v0\n  skips: [a.v1] # two\nname: stable\npackage: a\nschema: " +
				"olm.channel\n",
		},
		"what says nothing stays": {
			"schema: olm.channel\nproperties: [] # none\npackage: a\nname: stable\nentries:\n- name: a.v1\n  skips: " +
				"[]\n  skipRange: \"\"\n",
			entries(e("a.v1", "a.v0")),
			"schema: olm.channel\nproperties: [] # none\npackage: a\nname: stable\nentries:\n- name: a.v1\n  skips: " +
				"[]\n  skipRange: \"\"\n  replaces: a.v0\n",
		},
		"a message in several lines": {
			"schema: olm.deprecations\npackage: a\nentries:\n- reference:\n    schema: olm.bundle # of a\n    name: " +
				"a.v1\n  message: |\n    # no comment\n    - no item\n- message: two\n  reference: {schema: " +
				"olm.bundle, name: a.v2}\n",
			deprecations(about("a.v1", "# no comment\n- no item\n"), about("a.v2", "three"),
				about("a.v3", "- four\n\n# five\n")),
			"schema: olm.deprecations\npackage: a\nentries:\n- reference:\n    schema: olm.bundle # of a\n    name: " +
				"a.v1\n  message: |\n    # no comment\n    - no item\n- message: three\n  reference: {schema: " +
				"olm.bundle, name: a.v2}\n- message: |\n    - four\n\n    # five\n  reference:\n    name: " +
				"a.v3\n    schema: olm.bundle\n",
		},
		"new documents follow the order of keys of the one before them": {
			"schema: olm.channel\npackage: a\nname: stable\nentries:\n- name: a.v1\n",
			func(c *declcfg.Catalog) {
				c.Channels = append(c.Channels,
					declcfg.Channel{Name: "fast", Package: "a", Entries: []declcfg.ChannelEntry{e("a.v1", "a.v0")}})
				c.Deprecations = append(c.Deprecations,
					declcfg.Deprecations{Package: "a", Entries: []declcfg.DeprecationEntry{about("a.v1", "old")}})
			},
			"schema: olm.channel\npackage: a\nname: stable\nentries:\n- name: a.v1\n---\nschema: " +
				"olm.channel\npackage: a\nname: fast\nentries:\n- name: a.v1\n  replaces: a.v0\n" +
				"---\nschema: olm.deprecations\npackage: a\nentries:\n- message: old\n  reference:\n    name: " +
				"a.v1\n    schema: olm.bundle\n",
		},
		"an anchor that would be lost": {
			"schema: olm.channel\npackage: a\nname: &n stable\nentries:\n- name: &v a.v1\n- name: " +
				"a.v2\n  replaces: *v\n",
			entries(e("a.v2", "a.v1")),
			"entries:\n- name: a.v2\n  replaces: a.v1\nname: stable\npackage: a\nschema: olm.channel\n",
		},
		"JSON with keys in an order of its own": {
			"{\n  \"schema\": \"olm.channel\",\n  \"package\": \"a\",\n  \"name\": \"stable\",\n  \"entries\": " +
				"[\n    {\n      \"replaces\": \"a.v0\",\n      \"name\": \"a.v1\"\n    }\n  ]\n}\n",
			entries(e("a.v1", "a.v0"), e("a.v2", "a.v1")),
			"{\n  \"schema\": \"olm.channel\",\n  \"package\": \"a\",\n  \"name\": \"stable\",\n  \"entries\": " +
				"[\n    {\n      \"replaces\": \"a.v0\",\n      \"name\": " +
				"\"a.v1\"\n    },\n    {\n      \"replaces\": \"a.v1\",\n      \"name\": \"a.v2\"\n    }\n  ]\n}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := "catalog.yaml"
			if c.file[0] == '{' {
				file = "catalog.json"
				write(t, dir, map[string]string{"p.yaml": pkg})
			} else {
				c.file, c.want = pkg+"---\n"+c.file, pkg+"---\n"+c.want
			}
			write(t, dir, map[string]string{file: c.file})
			want := load(t, dir)
			c.change(want)
			if _, err := edit(t, dir, []string{"a"}, c.change); err != nil {
				t.Fatal(err)
			}
			if got := contents(t, dir)[file]; got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if got, want := text(t, load(t, dir)), text(t, want); got != want {
				t.Errorf("the catalog is\n%s\nand not\n%s", got, want)
			}
		})
	}
}
