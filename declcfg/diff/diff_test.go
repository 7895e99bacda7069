package diff_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/diff"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

var update = flag.Bool("update", false, "write the golden files")

// read parses a catalog.
func read(t testing.TB, text string) iter.Seq2[declcfg.Blob, error] {
	t.Helper()
	c, err := declcfg.Read(context.Background(), strings.NewReader(text), "catalog.json", declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Blobs()
}

func compare(t testing.TB, old, after iter.Seq2[declcfg.Blob, error], only ...diff.Section) *diff.Report {
	t.Helper()
	r, err := diff.Compare(old, after, diff.Options{Only: only})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(t testing.TB, r *diff.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteText(&b, diff.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const base = `
{"schema":"olm.package","name":"p","defaultChannel":"stable","description":"does things","icon":{"base64data":"AAAA","mediatype":"image/png"}}
{"schema":"olm.channel","package":"p","name":"stable","entries":[{"name":"p.v1"},{"name":"p.v2","replaces":"p.v1","skips":["x","y"]}]}
{"schema":"olm.bundle","package":"p","name":"p.v1","image":"e.x/p:1","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}},{"type":"t","value":{"a":1,"b":2}}],"relatedImages":[{"name":"r","image":"e.x/r:1"}]}
{"schema":"olm.bundle","package":"p","name":"p.v2","image":"e.x/p:2","properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}]}
{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.bundle","name":"p.v1"},"message":"old"}]}
{"schema":"custom","package":"p","name":"c","v":1}
`

// Each edit of a catalog is reported in one line, in its section and in no other.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name, from, to string
		section        diff.Section
		want           string // all lines, without the headings
	}{
		{"default channel", `"defaultChannel":"stable"`, `"defaultChannel":"fast"`, diff.Packages,
			"~ default channel stable -> fast"},
		{"description", `"does things"`, `"does more"`, diff.Packages, "~ description does things -> does more"},
		{"icon", `"AAAA"`, `"AAAB"`, diff.Packages, "~ icon image/png sha256:"},
		{"replaces", `"replaces":"p.v1",`, ``, diff.Edges, "~ p.v2\n- replaces p.v1"},
		{"head", `"replaces":"p.v1",`, ``, diff.Heads, "~ head p.v2 -> p.v1,p.v2"},
		{"skips", `["x","y"]`, `["y","z"]`, diff.Edges, "~ p.v2\n+ skips z\n- skips x"},
		{"skipRange", `"skips":["x","y"]`, `"skips":["x","y"],"skipRange":"<2.0.0"`, diff.Edges,
			"~ p.v2\n+ skipRange <2.0.0"},
		{"entry added", `{"name":"p.v1"},`, `{"name":"p.v1"},{"name":"p.v1a","skips":["p.v1"]},`, diff.Edges,
			"+ p.v1a: skips p.v1"},
		{"entry removed", `{"name":"p.v1"},`, ``, diff.Edges, "- p.v1"},
		{"image", `"e.x/p:2"`, `"e.x/p:3"`, diff.Images,
			"~ bundle p.v2 (2.0.0)\n~ image e.x/p:2 -> e.x/p:3\n~ images: 1 added, 1 removed\n+ e.x/p:3\n- e.x/p:2"},
		{"related image", `"e.x/r:1"`, `"e.x/r:2"`, diff.Images,
			"~ bundle p.v1 (1.0.0)\n- related image r e.x/r:1\n+ related image r e.x/r:2\n~ images: 1 added, 1 " +
				"removed\n+ e.x/r:2\n- e.x/r:1"},
		{"property", `{"a":1,"b":2}`, `{"a":1,"b":3}`, diff.Properties,
			"~ bundle p.v1 (1.0.0)\n" + `~ property t {"a":1,"b":2} -> {"a":1,"b":3}`},
		{"large property", `{"a":1,"b":2}`, `"` + strings.Repeat("x", 600) + `"`, diff.Properties,
			"~ bundle p.v1 (1.0.0)\n~ property t"},
		{"deprecation changed", `"message":"old"`, `"message":"very old"`, diff.Deprecations,
			"~ deprecation of bundle p.v1: old -> very old"},
		{"deprecation of another", `{"schema":"olm.bundle","name":"p.v1"}`, `{"schema":"olm.package","name":""}`,
			diff.Deprecations,
			"- deprecation of bundle p.v1: old\n+ deprecation of package: old"},
		{"other blob", `"v":1`, `"v":2`, diff.Others, "~ blob custom c"},
		{"other blob of another name", `"name":"c"`, `"name":"d"`, diff.Others, "- blob custom c\n+ blob custom d"},
		{"unknown field", `"defaultChannel":"stable"`, `"defaultChannel":"stable","mine":1`, diff.Others,
			"+ field mine of olm.package p"},
		{"channel", `"name":"stable","entries"`, `"name":"fast","entries"`, diff.Channels,
			"+ channel fast: head p.v2\n- channel stable: head p.v2"},
		{"bundle", `"name":"p.v2","image"`, `"name":"p.v3","image"`, diff.Bundles,
			"- bundle p.v2 (2.0.0)\n+ bundle p.v3 (2.0.0)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Count(base, c.from) != 1 {
				t.Fatalf("%q is there %d times", c.from, strings.Count(base, c.from))
			}
			edited := strings.Replace(base, c.from, c.to, 1)
			r := compare(t, read(t, base), read(t, edited), c.section)
			var lines []string
			for _, line := range strings.Split(strings.TrimSpace(text(t, r)), "\n") {
				if line = strings.TrimSpace(line); line != "~ package p" && line != "~ channel stable" {
					lines = append(lines, line)
				}
			}
			if got := strings.Join(lines,
				"\n"); got != c.want && !(strings.HasSuffix(c.want, "sha256:") && strings.HasPrefix(got, c.want)) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if r.Same || compare(t, read(t, base), read(t, edited)).Same {
				t.Error("said to be the same")
			}
		})
	}
}

// Order, notation and duplicates are not differences.
func TestSame(t *testing.T) {
	for name, other := range map[string]string{
		"itself":        base,
		"keys in order": strings.Replace(base, `{"a":1,"b":2}`, `{"b":2, "a":1}`, 1),
		"properties": strings.Replace(base,
			`{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}},{"type":"t","value":{"a":1,"b":2}}`,
			`{"type":"t","value":{"a":1,"b":2}},{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}`,
			1),
		"entries": strings.Replace(base, `{"name":"p.v1"},{"name":"p.v2","replaces":"p.v1","skips":["x","y"]}`,
			`{"name":"p.v2","replaces":"p.v1","skips":["y","x","y"]},{"name":"p.v1"}`, 1),
		"blobs": reversed(base),
	} {
		t.Run(name, func(t *testing.T) {
			if name != "itself" && other == base {
				t.Fatal("nothing was edited")
			}
			if r := compare(t, read(t, base), read(t, other)); !r.Same || text(t, r) != "" {
				t.Errorf("%+v", r)
			}
		})
	}
}

func reversed(s string) string {
	var out string
	for _, line := range strings.Split(s, "\n") {
		out = line + "\n" + out
	}
	return out
}

// A package that is only on one side is reported with all its content.
func TestAddedPackage(t *testing.T) {
	r := compare(t, read(t, ""), read(t, base))
	if len(r.Packages) != 1 || r.Packages[0].Change != diff.Added || len(r.Packages[0].Channels) != 1 ||
		len(r.Packages[0].Bundles) != 2 {
		t.Errorf("%+v", r)
	}
	back := compare(t, read(t, base), read(t, ""))
	if len(back.Packages) != 1 || back.Packages[0].Change != diff.Removed || back.Old != r.New {
		t.Errorf("%+v", back)
	}
	if r.New != (diff.Counts{Packages: 1, Channels: 1, Bundles: 2, Images: 3}) {
		t.Errorf("%+v", r.New)
	}
}

// An error of a stream is the error of the comparison.
func TestCompareError(t *testing.T) {
	broken := func(yield func(declcfg.Blob, error) bool) { yield(nil, os.ErrPermission) }
	for _, pair := range [][2]iter.Seq2[declcfg.Blob, error]{{broken, read(t, base)}, {read(t, base), broken}} {
		if r, err := diff.Compare(pair[0], pair[1], diff.Options{}); !errors.Is(err, os.ErrPermission) || r != nil {
			t.Errorf("%v, %v", r, err)
		}
	}
}

// A database and the catalog made from it are equal.
func TestDatabaseIsItsCatalog(t *testing.T) {
	check := func(t *testing.T, all recorded.Collection) {
		for _, name := range all.Databases(t) {
			if !all.Has("golden/" + name + "/render-graph.mmd") {
				continue
			}
			t.Run(name, func(t *testing.T) {
				db, err := sqlite.Open(context.Background(), all.Database(t, name), sqlite.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				dir := filepath.Join(t.TempDir(), "out")
				if err := declcfg.WriteFS(context.Background(), dir, declcfg.FormatYAML,
					db.Blobs(context.Background())); err != nil {
					t.Fatal(err)
				}
				c, err := declcfg.Load(context.Background(), os.DirFS(dir), declcfg.LoadOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if r := compare(t, db.Blobs(context.Background()), c.Blobs()); !r.Same {
					t.Errorf("differs:\n%s", text(t, r))
				}
				// A removed bundle is reported, so the comparison above was not empty.
				if len(c.Bundles) > 0 {
					bundle := c.Bundles[0]
					c.Bundles[0].Properties = bundle.Properties[1:]
					if r := compare(t, db.Blobs(context.Background()), c.Blobs(), diff.Properties); r.Same {
						t.Error("a property less is not seen")
					}
				}
			})
		}
	}
	t.Run("part", func(t *testing.T) { check(t, recorded.Part(t)) })
	t.Run("all", func(t *testing.T) { check(t, recorded.All(t)) })
}

// The JSON form of a report is stable.
func TestReportJSON(t *testing.T) {
	edited := strings.NewReplacer(`"replaces":"p.v1",`, ``, `"e.x/r:1"`, `"e.x/r:2"`, `"message":"old"`,
		`"message":"very old"`, `{"a":1,"b":2}`, `{"a":1}`, `"v":1`, `"v":2`).Replace(base)
	got, err := json.MarshalIndent(compare(t, read(t, base), read(t, edited)), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "report.json")
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Control characters in names are cleaned before they reach a terminal.
func TestTextIsCleaned(t *testing.T) {
	r := compare(t, read(t, ""), read(t, `{"schema":"olm.package","name":"a\u001b[2Jb\nc","defaultChannel":"x\ny"}`))
	var b bytes.Buffer
	clean := func(s string) string { return strings.NewReplacer("\x1b", `\x1b`, "\n", `\n`).Replace(s) }
	if err := r.WriteText(&b, diff.TextOptions{Clean: clean}); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "+ package a\\x1b[2Jb\\nc\n  + default channel x\\ny\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// BenchmarkCompare compares two catalogs of 5,000 bundles.
func BenchmarkCompare(b *testing.B) {
	var c declcfg.Catalog
	c.Packages = []declcfg.Package{{Name: "p", DefaultChannel: "c"}}
	ch := declcfg.Channel{Package: "p", Name: "c"}
	metadata := json.RawMessage(`{"annotations":{"a":"` + strings.Repeat("x", 8<<10) + `"}}`)
	for i := range 5000 {
		name := "p.v" + strings.Repeat("i", i%50) + string(rune('a'+i%26)) + strings.Repeat("j", i/50)
		ch.Entries = append(ch.Entries, declcfg.ChannelEntry{Name: name})
		c.Bundles = append(c.Bundles, declcfg.Bundle{Package: "p", Name: name, Image: "e.x/p:" + name,
			Properties: []declcfg.Property{{Type: declcfg.PropertyCSVMetadata, Value: metadata}}})
	}
	c.Channels = []declcfg.Channel{ch}
	for b.Loop() {
		if r, err := diff.Compare(c.Blobs(), c.Blobs(), diff.Options{}); err != nil || !r.Same {
			b.Fatal(r, err)
		}
	}
}
