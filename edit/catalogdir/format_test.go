package catalogdir_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit/catalogdir"
)

// format formats a directory and returns the names of the files that differ from the canonical form.
func format(t *testing.T, dir string, o catalogdir.FormatOptions) ([]string, error) {
	t.Helper()
	d, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{ReadOnly: o.Check})
	check(t, err)
	defer func() { check(t, d.Close()) }()
	return d.Format(context.Background(), o)
}

// canonicalJSON is the package a in canonical form, and canonicalYAML the same as YAML.
func canonicalJSON(t *testing.T) string { return text(t, parse(t, chA+buA1+pkgA)) }

func canonicalYAML(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	check(t, parse(t, chA+buA1+pkgA).Write(&out, declcfg.FormatYAML))
	return out.String()
}

func TestFormat(t *testing.T) {
	const deprecated = `{"schema":"olm.deprecations","package":"a","entries":[{"reference":{"schema":"olm.package"},` +
		`"message":"gone"}]}` + "\n"
	const own = `{"schema":"acme.note","package":"a","name":"x","text":"y"}` + "\n"
	fast := strings.ReplaceAll(chA, "stable", "fast")
	unordered := strings.ReplaceAll(chA, `[{"name":"a.v1.0.0"}]`,
		`[{"name":"a.v1.1.0","replaces":"a.v1.0.0"},{"name":"a.v1.0.0"}]`)
	for name, test := range map[string]struct {
		files map[string]string
		want  map[string]string // the files that change
	}{
		"blobs by schema and name": {
			map[string]string{"a/catalog.json": deprecated + own + newBundle("a", "1.1.0") + buA1 + chA + fast + pkgA},
			map[string]string{"a/catalog.json": text(t, parse(t, pkgA+fast+chA+buA1+newBundle("a", "1.1.0"))) +
				text(t, parse(t, own)) + text(t, parse(t, deprecated))},
		},
		"packages of one file by name": {
			map[string]string{"catalog.json": pkgB + chA + buA1 + pkgA},
			map[string]string{"catalog.json": canonicalJSON(t) + text(t, parse(t, pkgB))},
		},
		"entries of a channel keep their order": {
			map[string]string{"a/catalog.json": pkgA + unordered + newBundle("a", "1.1.0") + buA1},
			map[string]string{"a/catalog.json": text(t, parse(t, pkgA+unordered+buA1+newBundle("a", "1.1.0")))},
		},
		"a file of YAML": {
			map[string]string{"a/catalog.yaml": "schema: olm.package\ndefaultChannel: stable\nname: a\n---\n" +
				"schema: olm.bundle\nname: a.v1.0.0\npackage: a\nimage: \"r/a:1\"\nproperties:\n" +
				"  - {type: olm.package, value: {packageName: a, version: 1.0.0}}\n---\n" +
				"schema: olm.channel\npackage: a\nname: stable\nentries: [{name: a.v1.0.0}]\n"},
			map[string]string{"a/catalog.yaml": canonicalYAML(t)},
		},
		"CRLF becomes LF": {
			map[string]string{"a/catalog.yaml": strings.ReplaceAll(canonicalYAML(t), "\n", "\r\n")},
			map[string]string{"a/catalog.yaml": canonicalYAML(t)},
		},
		"a file with JSON and YAML becomes YAML": {
			map[string]string{"a/catalog.yaml": "---\n" + strings.TrimSpace(pkgA) + "\n---\n" + strings.TrimSpace(
				buA1) +
				"\n---\nschema: olm.channel\nname: stable\npackage: a\nentries:\n- name: a.v1.0.0\n"},
			map[string]string{"a/catalog.yaml": canonicalYAML(t)},
		},
		"files keep their names, and only those that differ change": {
			map[string]string{"a/package.json": text(t, parse(t, pkgA)), "a/channels.json": chA,
				"a/bundles.json": text(t, parse(t, buA1))},
			map[string]string{"a/channels.json": text(t, parse(t, chA))},
		},
		"nothing to change": {
			map[string]string{"a/catalog.json": canonicalJSON(t), "b/catalog.yaml": ""}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, test.files)
			start := state(t, dir)
			names := slices.Sorted(maps.Keys(test.want))
			found, err := format(t, dir, catalogdir.FormatOptions{Check: true})
			if err != nil || !slices.Equal(found, names) {
				t.Errorf("the check finds %q, %v, want %q", found, err, names)
			}
			untouched(t, start, state(t, dir))
			changed, err := format(t, dir, catalogdir.FormatOptions{})
			if err != nil || !slices.Equal(changed, names) {
				t.Fatalf("changed %q, %v, want %q", changed, err, names)
			}
			want := maps.Clone(test.files)
			maps.Copy(want, test.want)
			sameFiles(t, contents(t, dir), want)
			untouched(t, start, state(t, dir), names...)
			if again, err := format(t, dir, catalogdir.FormatOptions{Check: true}); err != nil || len(again) > 0 {
				t.Errorf("not canonical after it was written: %q, %v", again, err)
			}
		})
	}
}

// A comment is an error with its file and line, and no file changes; the same file without comments is formatted.
func TestFormatComments(t *testing.T) {
	yaml := "schema: olm.package\nname: a\ndefaultChannel: stable\n"
	channel := "schema: olm.channel\nname: stable\npackage: a\nentries:\n- name: a.v1.0.0\n"
	bundle := "schema: olm.bundle\nname: a.v1.0.0\npackage: a\nimage: r/a:1\nproperties:\n- type: olm.package\n" +
		"  value: {packageName: a, version: 1.0.0}\n"
	for name, test := range map[string]struct {
		text string
		line string // empty: no comment
	}{
		"at the start":            {"# first\n" + yaml + "---\n" + channel + "---\n" + bundle, ":1: "},
		"before the first marker": {"# first\n---\n" + yaml + "---\n" + channel + "---\n" + bundle, ":1: "},
		"behind a value": {yaml + "---\n" + channel + "---\n" + strings.Replace(bundle, "r/a:1", "r/a:1 # x",
			1), ":14: "},
		"on a line of its own": {yaml + "---\n" + strings.Replace(channel, "entries", "# x\nentries",
			1) + "---\n" + bundle, ":8: "},
		"of two lines": {yaml + "---\n" + strings.Replace(channel, "entries", "# x\n# y\nentries",
			1) + "---\n" + bundle, ":8: "},
		"between documents":        {yaml + "---\n" + channel + "# x\n---\n" + bundle, ":10: "},
		"behind a marker":          {yaml + "--- # x\n" + channel + "---\n" + bundle, ":4: "},
		"at the end":               {yaml + "---\n" + channel + "---\n" + bundle + "# last\n", ":18: "},
		"at the end, blank before": {yaml + "---\n" + channel + "---\n" + bundle + "\n# last", ":19: "},
		"in a value":               {yaml + "---\n" + channel + "---\n" + strings.Replace(bundle, "r/a:1", "'r/a#x # y'", 1), ""},
		"in a block of text": {yaml + "description: |\n  # A heading\n\n  text\n---\n" + channel + "---\n" +
			bundle, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{"a/catalog.yaml": test.text, "b/catalog.json": "  " + pkgB})
			start := state(t, dir)
			_, err := format(t, dir, catalogdir.FormatOptions{})
			if test.line == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			place := filepath.Join(dir, "a", "catalog.yaml") + test.line
			if !errors.Is(err, catalogdir.ErrComments) || !strings.Contains(err.Error(), place) {
				t.Errorf("%v, want %s", err, place)
			}
			untouched(t, start, state(t, dir))
			found, err := format(t, dir, catalogdir.FormatOptions{Check: true})
			if err != nil || len(found) != 2 {
				t.Errorf("the check finds %q, %v", found, err)
			}
			changed, err := format(t, dir, catalogdir.FormatOptions{DropComments: true})
			if err != nil || len(changed) != 2 {
				t.Fatalf("changed %q, %v", changed, err)
			}
			want := canonicalYAML(t)
			if got := contents(t, dir)["a/catalog.yaml"]; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// After an error in one file all files are as they were.
func TestFormatOfDirectoryWithAnError(t *testing.T) {
	for name, broken := range map[string]string{
		"broken JSON": `{"schema":"olm.package","name":`,
		"broken YAML": "schema: [\n",
		"no schema":   `{"name":"b"}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{"a/catalog.json": buA1 + chA + pkgA, "b/catalog.yaml": broken})
			start := state(t, dir)
			if names, err := format(t, dir, catalogdir.FormatOptions{}); err == nil ||
				!strings.Contains(err.Error(), "catalog.yaml") {
				t.Errorf("changed %q, %v", names, err)
			}
			untouched(t, start, state(t, dir))
			if left := contents(t, dir); len(left) != 2 {
				t.Errorf("left behind: %q", slices.Sorted(maps.Keys(left)))
			}
		})
	}
}

// A cancelled run changes nothing.
func TestFormatCancelled(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a/catalog.json": buA1 + chA + pkgA})
	start := state(t, dir)
	d, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{})
	check(t, err)
	defer func() { check(t, d.Close()) }()
	ctx, cancel := context.WithCancel(context.Background())
	d.AtStep(func(string) { cancel() })
	if _, err := d.Format(ctx, catalogdir.FormatOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	untouched(t, start, state(t, dir))
}
