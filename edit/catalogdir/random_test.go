package catalogdir_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit/catalogdir"
)

// For any layout and any edit: the directory holds exactly the new catalog, files without changed packages are
// untouched, nothing else is left, and repeating the edit changes nothing.
func TestRandomEditsOfRandomLayouts(t *testing.T) {
	rounds := uint64(150)
	if testing.Short() {
		rounds = 30
	}
	for seed := range rounds {
		r := &random{rand.New(rand.NewPCG(seed, 4))}
		dir := t.TempDir()
		start := r.catalog()
		owners := r.layout(t, dir, start)
		if got := text(t, load(t, dir)); got != text(t, start) {
			t.Fatalf("seed %d: the layout does not hold the catalog", seed)
		}
		packages, want := r.edit(start)
		before, files := state(t, dir), contents(t, dir)
		wish := want
		if r.IntN(2) == 0 {
			wish = r.reduced(want, start)
		}
		result, err := replace(t, dir, packages, wish, r.IntN(2) == 0)
		if err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, slices.Sorted(maps.Keys(files)))
		}
		after := load(t, dir)
		if got, want := text(t, after), text(t, want); got != want {
			t.Errorf("seed %d: the catalog is\n%s\nand not\n%s", seed, got, want)
		}
		now := state(t, dir)
		var changed []string
		for name := range before {
			if slices.ContainsFunc(owners[name], func(pkg string) bool { return slices.Contains(packages, pkg) }) {
				changed = append(changed, name)
			}
		}
		appended := slices.DeleteFunc(slices.Clone(result.Changed),
			func(name string) bool { return slices.Contains(changed, name) })
		if len(appended) > 1 {
			t.Errorf("seed %d: touched %q, which have nothing of %q", seed, appended, packages)
		}
		untouched(t, before, now, append(changed, appended...)...)
		for name := range contents(t, dir) {
			if files[name] == "" && strings.HasSuffix(name, "/") || strings.Contains(name, catalogdir.StagePrefix) {
				t.Errorf("seed %d: %s is left", seed, name)
			}
		}
		if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1+int(seed) {
			t.Errorf("seed %d: %v beside the directory, %v", seed, entries, err)
		}
		result, err = replace(t, dir, packages, want, false)
		if err != nil || !result.Unchanged() {
			t.Errorf("seed %d: again: %+v, %v", seed, result, err)
		}
		untouched(t, now, state(t, dir))
		if t.Failed() {
			t.Fatalf("the files were %q", files)
		}
	}
}

func replace(t *testing.T, dir string, packages []string, want *declcfg.Catalog,
	noLinks bool) (catalogdir.Result, error) {
	t.Helper()
	d, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{})
	check(t, err)
	defer func() { check(t, d.Close()) }()
	if noLinks {
		d.WithoutLinks()
	}
	planned, err := d.Plan(context.Background(), packages, want)
	check(t, err)
	done, err := d.Replace(context.Background(), packages, want)
	if err == nil && strings.Join(planned.Files(), " ") != strings.Join(done.Files(), " ") {
		t.Errorf("planned %v, done %v", planned, done)
	}
	return done, err
}

// reduced replaces some blobs by skeletons of the blobs in the catalog before.
func (r *random) reduced(c, before *declcfg.Catalog) *declcfg.Catalog {
	out := canonical(c)
	heavy := func(b *declcfg.Bundle) (values []string) {
		for _, p := range b.Properties {
			if p.Type == declcfg.PropertyBundleObject {
				values = append(values, string(p.Value))
			}
		}
		return values
	}
	for i := range out.Bundles {
		b := &out.Bundles[i]
		for j := range before.Bundles {
			if was := &before.Bundles[j]; was.Name == b.Name && was.Package == b.Package && slices.Equal(heavy(was),
				heavy(b)) {
				b.Reduce()
			}
		}
	}
	names := map[string]int{}
	key := func(m *declcfg.Meta) string { return m.Schema + "\x00" + m.Package + "\x00" + m.Name }
	for i := range before.Others {
		names[key(&before.Others[i])]++
	}
	for i := range out.Others {
		m := &out.Others[i]
		if names[key(m)] == 1 && slices.ContainsFunc(before.Others,
			func(o declcfg.Meta) bool { return string(o.Blob) == string(m.Blob) }) {
			count := 0
			for j := range out.Others {
				if key(&out.Others[j]) == key(m) {
					count++
				}
			}
			if count == 1 {
				m.Blob = nil
			}
		}
	}
	return out
}

type random struct{ *rand.Rand }

func (r *random) some() bool { return r.IntN(3) == 0 }

func (r *random) text() string {
	words := []string{"", "x", "a: b", "# no comment", "---", "line\nline\n\n", "  lead", "trail  ", "ä€😀", "\"q\"",
		"null", "1e3", "{", "- x", "tab\there", "line\n---\nline", "\u2028", "C:\\path", "\r\n"}
	return words[r.IntN(len(words))]
}

func (r *random) property(typ string) declcfg.Property {
	value, err := json.Marshal(map[string]any{"b": r.text(), "a": []any{r.IntN(10), r.text(), nil},
		r.text() + "k": map[string]any{}})
	if err != nil {
		panic(err)
	}
	return declcfg.Property{Type: typ, Value: value}
}

func (r *random) bundle(pkg string, n int) declcfg.Bundle {
	v := fmt.Sprintf("%d.%d.%d", n/4, n%4, r.IntN(3))
	b := declcfg.Bundle{Name: fmt.Sprintf("%s.v%s-%d", pkg, v, n), Package: pkg, Image: "r/" + pkg + ":" + v,
		Properties: []declcfg.Property{
			{Type: declcfg.PropertyPackage,
				Value: []byte(fmt.Sprintf(`{"packageName":%q,"version":"%s-%d"}`, pkg, v, n))},
			r.property("x"),
		}}
	if r.some() {
		b.Properties = append(b.Properties,
			declcfg.NewBundleObject([]byte(`{"kind":"ConfigMap","data":`+string(r.property("").Value)+`}`)))
	}
	if r.some() {
		b.RelatedImages = []declcfg.RelatedImage{{Name: r.text(), Image: b.Image}}
	}
	return b
}

func (r *random) channel(pkg, name string, bundles []declcfg.Bundle) declcfg.Channel {
	c := declcfg.Channel{Name: name, Package: pkg, Entries: []declcfg.ChannelEntry{}}
	for _, b := range bundles {
		if b.Package == pkg {
			c.Entries = append(c.Entries, declcfg.ChannelEntry{Name: b.Name, SkipRange: r.text()})
		}
	}
	return c
}

func (r *random) meta(pkg string) declcfg.Meta {
	m := declcfg.Meta{Schema: []string{"x", "y.z", "olm.composite"}[r.IntN(3)], Package: pkg,
		Name: []string{"", "n"}[r.IntN(2)]}
	fields := map[string]any{"schema": m.Schema, "value": r.text(), "n": r.IntN(3)}
	if pkg != "" {
		fields["package"] = pkg
	}
	if m.Name != "" {
		fields["name"] = m.Name
	}
	m.Blob, _ = json.Marshal(fields)
	return m
}

func (r *random) pkg(c *declcfg.Catalog, name string) {
	c.Packages = append(c.Packages, declcfg.Package{Name: name, DefaultChannel: "c0", Description: r.text()})
	for n := range r.IntN(5) {
		c.Bundles = append(c.Bundles, r.bundle(name, n))
	}
	for n := range r.IntN(3) {
		c.Channels = append(c.Channels, r.channel(name, fmt.Sprintf("c%d", n), c.Bundles))
	}
	for range r.IntN(3) {
		c.Others = append(c.Others, r.meta(name))
	}
	if r.some() {
		c.Deprecations = append(c.Deprecations,
			declcfg.Deprecations{Package: name,
				Entries: []declcfg.DeprecationEntry{{Reference: declcfg.Reference{Schema: declcfg.SchemaPackage},
					Message: r.text()}}})
	}
}

func (r *random) catalog() *declcfg.Catalog {
	c := &declcfg.Catalog{}
	for n := range r.IntN(5) {
		r.pkg(c, string(rune('a'+n)))
	}
	for range r.IntN(2) {
		c.Others = append(c.Others, r.meta(""))
	}
	return canonical(c)
}

// canonical returns the catalog as it is read back, with sorted keys.
func canonical(c *declcfg.Catalog) *declcfg.Catalog {
	var buf bytes.Buffer
	if err := c.Write(&buf, declcfg.FormatNDJSON); err != nil {
		panic(err)
	}
	back, err := declcfg.Read(context.Background(), &buf, "", declcfg.LoadOptions{})
	if err != nil {
		panic(err)
	}
	return back
}

// layout writes a catalog to files in a random layout and returns the packages in each file.
func (r *random) layout(t *testing.T, dir string, c *declcfg.Catalog) map[string][]string {
	kind := r.IntN(6)
	if kind == 5 {
		kind = -1 // another kind for each package
	}
	kinds := map[string]int{}
	files := map[string][]declcfg.Blob{}
	for b := range c.Blobs() {
		pkg := b.BlobPackage()
		k, ok := kinds[pkg]
		if !ok {
			if k = kind; k < 0 {
				k = r.IntN(5)
			}
			kinds[pkg] = k
		}
		name := ""
		switch k {
		case 0:
			name = pkg + "/catalog"
		case 1:
			name = "index"
		case 2: // a file for each schema
			name = pkg + "/" + b.BlobSchema()
		case 3: // a file for each blob
			name = pkg + "/" + strings.TrimPrefix(b.BlobSchema(), "olm.") + "s/" + strings.TrimPrefix(b.BlobName(),
				pkg+".")
		case 4:
			name = fmt.Sprintf("mixed/%d", r.IntN(4))
		}
		files[strings.TrimPrefix(name, "/")] = append(files[strings.TrimPrefix(name, "/")], b)
	}
	owners := map[string][]string{}
	out := map[string]string{"ignored/x": "{", ".indexignore": "ignored\n", "empty": ""}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text, ext := r.file(t, files[name])
		out[name+ext] = text
		for _, b := range files[name] {
			owners[name+ext] = append(owners[name+ext], b.BlobPackage())
		}
	}
	write(t, dir, out)
	return owners
}

// file writes blobs in a random formatting.
func (r *random) file(t *testing.T, blobs []declcfg.Blob) (text, ext string) {
	var out strings.Builder
	crlf := r.some()
	if r.IntN(2) == 0 {
		ext = ".json"
		indent, between := []string{"", "  ", "    ", "\t"}[r.IntN(4)], []string{"\n", "", "\n\n"}[r.IntN(3)]
		for i, b := range blobs {
			var doc bytes.Buffer
			check(t, json.Indent(&doc, declcfg.AppendJSON(nil, b, false), "", indent))
			if indent == "" {
				doc.Reset()
				doc.Write(declcfg.AppendJSON(nil, b, false))
			}
			if i > 0 {
				out.WriteString(between)
			}
			out.Write(doc.Bytes())
		}
		out.WriteString([]string{"\n", ""}[r.IntN(2)])
	} else {
		ext = ".yaml"
		if r.some() {
			out.WriteString("# licence\n")
		}
		for i, b := range blobs {
			var doc bytes.Buffer
			check(t, declcfg.FormatYAML.NewEncoder(&doc).Encode(b))
			text := strings.TrimPrefix(doc.String(), "---\n")
			if i > 0 || r.some() {
				out.WriteString([]string{"---\n", "--- # next\n", "---\n# nothing\n---\n"}[r.IntN(3)])
			}
			if r.some() {
				out.WriteString("# about it\n\n")
			}
			out.WriteString(text)
			if r.some() {
				out.WriteString("# behind it\n")
			}
		}
	}
	text = out.String()
	if ext == ".yaml" && !strings.Contains(text, "|+") && !strings.Contains(text, ">+") && r.some() {
		text = strings.TrimSuffix(text, "\n")
	}
	if crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text, ext
}

// edit changes some packages of a catalog.
func (r *random) edit(c *declcfg.Catalog) ([]string, *declcfg.Catalog) {
	var packages []string
	for _, p := range c.Packages {
		if r.IntN(2) == 0 {
			packages = append(packages, p.Name)
		}
	}
	var added []string
	for _, name := range []string{"k", "zz"} {
		if r.some() {
			added = append(added, name)
		}
	}
	if r.some() {
		packages = append(packages, "")
	}
	now := &declcfg.Catalog{}
	for name, part := range c.ByPackage() {
		if slices.Contains(packages, name) {
			if name != "" && r.IntN(5) == 0 {
				continue // the package is removed
			}
			part = r.change(part, name)
		}
		now.Append(part)
	}
	for _, name := range added {
		r.pkg(now, name)
	}
	return append(packages, added...), canonical(now)
}

func (r *random) change(c *declcfg.Catalog, pkg string) *declcfg.Catalog {
	c.Bundles = slices.DeleteFunc(slices.Clone(c.Bundles), func(declcfg.Bundle) bool { return r.IntN(4) == 0 })
	c.Channels = slices.DeleteFunc(c.Channels, func(declcfg.Channel) bool { return r.IntN(4) == 0 })
	c.Others = slices.DeleteFunc(c.Others, func(declcfg.Meta) bool { return r.IntN(4) == 0 })
	for i := range c.Bundles {
		if r.IntN(4) == 0 {
			c.Bundles[i].Properties = append(c.Bundles[i].Properties, r.property("added"))
		}
	}
	for i := range c.Others {
		if r.IntN(4) == 0 {
			m := r.meta(pkg)
			c.Others[i] = m
		}
	}
	if pkg == "" {
		if r.some() {
			c.Others = append(c.Others, r.meta(""))
		}
		return c
	}
	for i := range c.Packages {
		if r.some() {
			c.Packages[i].Description = r.text()
		}
	}
	for n := range r.IntN(3) {
		c.Bundles = append(c.Bundles, r.bundle(pkg, 20+n))
	}
	for n := range r.IntN(3) {
		c.Channels = append(c.Channels, r.channel(pkg, fmt.Sprintf("n%d", n), c.Bundles))
	}
	if r.some() {
		c.Others = append(c.Others, r.meta(pkg))
	}
	if r.some() {
		c.Deprecations = nil
	}
	return c
}
