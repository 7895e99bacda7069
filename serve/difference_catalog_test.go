package serve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

// random generates valid catalogs with unusual content.
type random struct {
	*rand.Rand
	// distinct gives every bundle of a catalog a different name, as databases require.
	distinct bool
}

func newRandom(seed uint64) random { return random{Rand: rand.New(rand.NewPCG(seed, 6))} }

func (r random) one(list ...string) string { return list[r.IntN(len(list))] }

// often returns true with probability n/m.
func (r random) often(n, m int) bool { return r.IntN(m) < n }

var (
	oddNames = []string{
		"stable", "beta", "4.16", "with space", "a/b", "../..", "%41", "-", `quo"te`, `back\slash`, "tab\tline\n",
		"ünï-cödé", "日本語", "<b>&amp;</b>",
		"{}", "null", "true", "1e3", "~", "stable ", "Stable", "stable\u2028x", "e\u0301", "é", "👩‍🚀",
		strings.Repeat("long-", 60), "packages.json", "a|b", "$(x)", "'",
	}
	oddTexts = []string{"", "use something else", "<script>alert(1)</script>", "zeile 1\nzeile 2\n", "ünï 日本 👩‍🚀",
		"tab\t\"quote\" \\ \u2028", strings.Repeat("text ", 2000)}
	groups   = []string{"a.test", "b.test", "", "group:\"x\""}
	versions = []string{"v1", "v1beta1", "v2"}
	kinds    = []string{"A", "B", "a", "Ünï"}
	schemas  = []string{"example.notes", "x", "X", "custom_1.v-2", "not/askable", "olm.custom"}
)

// catalog returns a random catalog of a few packages, with custom blobs of existing packages, of missing ones, and of
// none.
func (r random) catalog() *declcfg.Catalog {
	c := &declcfg.Catalog{}
	names := []string{"a", "a-b", "b", "ab", "zz9", "x" + strings.Repeat("-long", 12)}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:1+r.IntN(4)] {
		r.pkg(c, name)
	}
	for range r.IntN(6) {
		r.custom(c, r.one(append(slices.Clone(names), "", "", "nobody")...))
	}
	return c
}

func (r random) custom(c *declcfg.Catalog, pkg string) {
	blob := map[string]any{"schema": r.one(schemas...), "n": r.IntN(3), "text": r.one(oddTexts...),
		"more": []any{1.5, nil, true, map[string]any{"deep": []any{}}}}
	if pkg != "" {
		blob["package"] = pkg
	}
	name := ""
	if r.often(2, 3) {
		name = r.one(oddNames...)
		blob["name"] = name
	}
	c.Others = append(c.Others,
		declcfg.Meta{Schema: blob["schema"].(string), Package: pkg, Name: name, Blob: json.RawMessage(toJSON(blob))})
}

func (r random) pkg(c *declcfg.Catalog, name string) {
	p := declcfg.Package{Name: name, Description: r.one(oddTexts...)}
	if r.often(1, 2) {
		p.Icon = &declcfg.Icon{Data: []byte{0x89, 'P', 'N', 'G', byte(r.IntN(256))},
			MediaType: r.one("image/png", "image/svg+xml")}
	}
	bundles := r.bundles(name)
	odd := slices.Clone(oddNames)
	r.Shuffle(len(odd), func(i, j int) { odd[i], odd[j] = odd[j], odd[i] })
	var channels []declcfg.Channel
	used := map[string]bool{}
	for _, channel := range odd[:1+r.IntN(4)] {
		var in []string
		for _, b := range bundles {
			if r.often(3, 4) {
				in = append(in, b.Name)
			}
		}
		if len(in) == 0 {
			in = []string{bundles[0].Name}
		}
		for _, n := range in {
			used[n] = true
		}
		channels = append(channels, declcfg.Channel{Name: channel, Package: name, Entries: r.entries(in)})
	}
	bundles = slices.DeleteFunc(bundles, func(b declcfg.Bundle) bool { return !used[b.Name] })
	p.DefaultChannel = channels[r.IntN(len(channels))].Name
	d := declcfg.Deprecations{Package: name}
	deprecate := func(schema, of string) {
		if r.often(1, 4) {
			d.Entries = append(d.Entries,
				declcfg.DeprecationEntry{Reference: declcfg.Reference{Schema: schema, Name: of},
					Message: r.one(oddTexts[1:]...)})
		}
	}
	deprecate("olm.package", "")
	for _, ch := range channels {
		deprecate("olm.channel", ch.Name)
	}
	for _, b := range bundles {
		deprecate("olm.bundle", b.Name)
	}
	if len(d.Entries) > 0 {
		c.Deprecations = append(c.Deprecations, d)
	}
	c.Packages = append(c.Packages, p)
	c.Channels = append(c.Channels, channels...)
	c.Bundles = append(c.Bundles, bundles...)
}

// entries returns an upgrade graph with one head and no stranded entries, from names sorted from old to new.
func (r random) entries(names []string) []declcfg.ChannelEntry {
	var list []declcfg.ChannelEntry
	skipped := map[string]bool{} // the chain from the head ends at these
	for i, name := range names {
		e := declcfg.ChannelEntry{Name: name}
		switch {
		case i == 0:
			e.Replaces = r.one("", "", "gone.v0.0.1", r.one(oddNames...))
		case r.often(1, 4):
			// All older ones are skipped, and the replaced one need not exist.
			e.Skips = slices.Clone(names[:i])
			e.Replaces = r.one("", names[i-1], names[r.IntN(i)], "gone.v0.0.1")
		default:
			from := max(0, i-1-r.IntN(3))
			for skipped[names[from]] {
				from++
			}
			e.Replaces = names[from]
			e.Skips = slices.Clone(names[from+1 : i])
		}
		for _, s := range e.Skips {
			skipped[s] = true
		}
		for range r.IntN(3) {
			e.Skips = append(e.Skips, r.one("gone.v0.0.1", "gone.v0.0.2", "ünï.v1"))
		}
		r.Shuffle(len(e.Skips), func(i, j int) { e.Skips[i], e.Skips[j] = e.Skips[j], e.Skips[i] })
		if r.often(1, 3) {
			e.SkipRange = r.one(">=0.0.1 <1.0.0", "<2.0.0", ">=1.0.0-alpha <1.0.0 || >=2.0.0")
		}
		list = append(list, e)
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func propertyOf(kind string, value any) declcfg.Property {
	return declcfg.Property{Type: kind, Value: json.RawMessage(toJSON(value))}
}

func (r random) gvk() map[string]any {
	return map[string]any{"group": r.one(groups...), "version": r.one(versions...), "kind": r.one(kinds...)}
}

func (r random) bundles(pkg string) (list []declcfg.Bundle) {
	for i := range 1 + r.IntN(9) {
		version := fmt.Sprintf("%d.%d.%d%s", i/4, i%4, r.IntN(3), r.one("", "", "-alpha.1", "+build"))
		b := declcfg.Bundle{Package: pkg, Name: r.one(pkg+".v"+version, fmt.Sprintf("%s %d", r.one(oddNames...), i))}
		if r.distinct {
			b.Name = pkg + " " + b.Name
		}
		properties := []declcfg.Property{propertyOf("olm.package",
			map[string]any{"packageName": pkg, "version": version})}
		for range r.IntN(4) {
			properties = append(properties, propertyOf("olm.gvk", r.gvk()))
		}
		for range r.IntN(3) {
			properties = append(properties, propertyOf("olm.gvk.required", r.gvk()))
		}
		if r.often(1, 3) {
			properties = append(properties, propertyOf("olm.package.required",
				map[string]any{"packageName": r.one("a", "nobody"), "versionRange": ">=1.0.0 <2.0.0"}))
		}
		if r.often(1, 3) {
			properties = append(properties,
				propertyOf(r.one("olm.maxOpenShiftVersion", "x", "olm.constraint"), r.value()))
		}
		if r.often(4, 5) {
			b.Image = "example.test/" + pkg + ":v" + fmt.Sprint(i)
		}
		objects := 0
		if b.Image == "" || r.often(1, 4) {
			objects = 1 + r.IntN(3)
		}
		for j := range objects {
			properties = append(properties, r.object(b.Name, j))
		}
		if r.often(1, 2) {
			properties = append(properties, r.metadata())
		}
		b.HasObjects = objects > 0
		r.Shuffle(len(properties), func(i, j int) { properties[i], properties[j] = properties[j], properties[i] })
		b.Properties = properties
		for j := range r.IntN(3) {
			b.RelatedImages = append(b.RelatedImages,
				declcfg.RelatedImage{Name: r.one("", "operator", "ünï"),
					Image: fmt.Sprintf("example.test/image:%d", j)})
		}
		list = append(list, b)
	}
	return list
}

// value returns the value of a property of an unknown type. Constraints need a certain form, which others may have too.
func (r random) value() any {
	return map[string]any{"failureMessage": r.one(oddTexts...),
		"cel": map[string]any{"rule": r.one("true", "properties.exists(p, p.type == \"x\")")}}
}

func (r random) object(name string, i int) declcfg.Property {
	kind := r.one("ClusterServiceVersion", "ConfigMap", "CustomResourceDefinition")
	o := map[string]any{"kind": kind, "apiVersion": "v1",
		"metadata": map[string]any{"name": fmt.Sprintf("%s-%d", name, i)}, "text": r.one(oddTexts...)}
	return propertyOf("olm.bundle.object", map[string]any{"data": []byte(toJSON(o))})
}

func (r random) metadata() declcfg.Property {
	m := map[string]any{"provider": map[string]any{}, "apiServiceDefinitions": map[string]any{},
		"crdDescriptions": map[string]any{}}
	maybe := func(name string, v any) {
		if r.often(1, 2) {
			m[name] = v
		}
	}
	maybe("annotations", map[string]any{"capabilities": "Basic", "ünï/<x>": r.one(oddTexts...)})
	maybe("labels", map[string]any{"arch": "amd64"})
	maybe("description", r.one(oddTexts[1:]...))
	maybe("displayName", r.one(oddTexts[1:]...))
	maybe("keywords", []any{"a", "ünï"})
	maybe("maturity", "alpha")
	maybe("minKubeVersion", "1.20.0")
	maybe("provider", map[string]any{"name": "Someone", "url": "https://example.test"})
	maybe("links", []any{map[string]any{"name": "home", "url": "https://example.test/?a=b&c"}})
	maybe("maintainers", []any{map[string]any{"name": "me", "email": "me@example.test"}})
	maybe("installModes", []any{map[string]any{"type": "OwnNamespace", "supported": true},
		map[string]any{"type": "AllNamespaces", "supported": false}})
	maybe("crdDescriptions",
		map[string]any{"owned": []any{map[string]any{"name": "as.a.test", "version": "v1", "kind": "A"}}})
	maybe("nativeAPIs", []any{map[string]any{"group": "", "version": "v1", "kind": "Pod"}})
	return propertyOf("olm.csv.metadata", m)
}

// write writes a catalog in one of the usual file layouts and sorts its custom blobs by their order there.
func (r random) write(t testing.TB, dir string, c *declcfg.Catalog) {
	t.Helper()
	r.writeAs(t, dir, c, r.IntN(4), r.one(".yaml", ".json"))
	if r.often(1, 4) {
		write(t, filepath.Join(dir, ".indexignore"), "*.md\n/ignored\n")
		write(t, filepath.Join(dir, "README.md"), "# not a catalog: {")
	}
}

// File layouts of catalogs.
const (
	oneFile = iota
	filePerPackage
	filesPerPackage
	anyFiles
)

// writeAs writes a catalog in one layout. All files have the same extension, so that sorting names with and without it
// is the same.
func (r random) writeAs(t testing.TB, dir string, c *declcfg.Catalog, layout int, extension string) {
	t.Helper()
	parts := map[string][]declcfg.Blob{}
	files := 1 + r.IntN(5)
	for b, err := range c.Blobs() {
		if err != nil {
			t.Fatal(err)
		}
		pkg := b.BlobPackage()
		if pkg == "" {
			pkg = "_none"
		}
		name := ""
		switch layout {
		case oneFile:
			name = "catalog"
		case filePerPackage:
			name = pkg + "/catalog"
		case filesPerPackage:
			name = fmt.Sprintf("%s/%d/x", pkg, r.IntN(3))
		case anyFiles:
			name = fmt.Sprintf("%d", r.IntN(files))
		}
		parts[name] = append(parts[name], b)
	}
	c.Others = nil
	names := make([]string, 0, len(parts))
	for name := range parts {
		names = append(names, name+extension)
	}
	slices.Sort(names)
	for _, name := range names {
		blobs := parts[strings.TrimSuffix(name, extension)]
		r.Shuffle(len(blobs), func(i, j int) { blobs[i], blobs[j] = blobs[j], blobs[i] })
		var text bytes.Buffer
		for _, b := range blobs {
			if m, ok := b.(*declcfg.Meta); ok {
				c.Others = append(c.Others, *m)
			}
			format := declcfg.FormatJSON
			if extension == ".yaml" {
				format = declcfg.FormatYAML
			}
			if err := format.NewEncoder(&text).Encode(b); err != nil {
				t.Fatal(err)
			}
		}
		write(t, filepath.Join(dir, filepath.FromSlash(name)), text.String())
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
