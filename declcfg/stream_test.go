package declcfg_test

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
)

// texts formats the blobs of a stream with their positions, and its error.
func texts(blobs iter.Seq2[declcfg.Blob, error]) []string {
	var out []string
	for b, err := range blobs {
		if err != nil {
			return []string{err.Error()} // blobs before an error do not count
		}
		out = append(out, fmt.Sprintf("%v %s", b.Position(), declcfg.AppendJSON(nil, b, false)))
	}
	return out
}

// sameAsLoad fails if a stream differs from a load.
func sameAsLoad(t *testing.T, fsys fs.FS) {
	t.Helper()
	var want []string
	c, err := declcfg.Load(t.Context(), fsys, declcfg.LoadOptions{})
	if err != nil {
		want = []string{err.Error()}
	} else {
		want = texts(c.Blobs())
	}
	got := texts(declcfg.Stream(t.Context(), fsys, declcfg.LoadOptions{}, nil))
	if !slices.Equal(got, want) {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// layouts returns a catalog in different file layouts.
func layouts(t *testing.T, c *declcfg.Catalog) map[string]fstest.MapFS {
	t.Helper()
	var blobs []declcfg.Blob
	for b := range c.Blobs() {
		blobs = append(blobs, b)
	}
	text := func(f declcfg.Format, list ...declcfg.Blob) string {
		var b strings.Builder
		enc := f.NewEncoder(&b)
		for _, blob := range list {
			if err := enc.Encode(blob); err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	out := map[string]fstest.MapFS{}
	put := func(layout, file, content string) {
		if out[layout] == nil {
			out[layout] = fstest.MapFS{}
		}
		f := out[layout][file]
		if f == nil {
			f = &fstest.MapFile{}
			out[layout][file] = f
		}
		f.Data = append(f.Data, content...)
	}
	backwards := slices.Clone(blobs)
	slices.Reverse(backwards)
	for _, f := range []declcfg.Format{declcfg.FormatJSON, declcfg.FormatYAML, declcfg.FormatNDJSON} {
		put(string(f)+", one file", "catalog."+f.Extension(), text(f, blobs...))
		put(string(f)+", one file, backwards", "catalog."+f.Extension(), text(f, backwards...))
		for i, b := range blobs {
			dir := b.BlobPackage()
			put(string(f)+", a directory each", path.Join(dir, "catalog."+f.Extension()), text(f, b))
			put(string(f)+", a file each", dir+"."+f.Extension(), text(f, b))
			put(string(f)+", a blob each", fmt.Sprintf("%04d.%s", (i*7919)%10000, f.Extension()), text(f, b))
			put(string(f)+", dealt out", fmt.Sprintf("%d.%s", i%3, f.Extension()), text(f, b))
		}
	}
	y := out["yaml, one file"]["catalog.yaml"].Data
	put("CR LF", "catalog.yaml", strings.ReplaceAll(string(y), "\n", "\r\n"))
	put("comments", "catalog.yaml", "# first\n"+strings.ReplaceAll(string(y), "---\n", "--- # next\n\n# about it\n"))
	return out
}

func TestStreamIsLoadInOrder(t *testing.T) {
	for _, dir := range []string{"../testdata/fbc/mini"} {
		c, err := declcfg.Load(t.Context(), os.DirFS(dir), declcfg.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.Others = append(c.Others, declcfg.Meta{Schema: "custom", Blob: []byte(`{"schema":"custom","v":1}`)},
			declcfg.Meta{Schema: "custom", Package: c.Packages[0].Name,
				Blob: fmt.Appendf(nil, `{"package":%q,"schema":"custom","v":2}`, c.Packages[0].Name)})
		for name, fsys := range layouts(t, c) {
			t.Run(name, func(t *testing.T) { sameAsLoad(t, fsys) })
		}
	}
}

// oddCatalogs are files in which the package of a blob is not obvious, or which are invalid.
var oddCatalogs = []string{
	// a quoted scalar with lines that look like keys
	"schema: olm.bundle\ndescription: \"\npackage: other\nname: x\n\"\nimage: q.io/a\n",
	"schema: olm.bundle\ndescription: '\npackage: other\nname: x\n'\n", "schema: s\nv: {\npackage: a\n}\n",
	"schema: s\nv: [\nname: a,\n]\n",
	"package: a\nschema: s\npackage: b\n", "Package: a\nschema: s\n", "schema: s\n\"package\": a\n",
	"? schema\n: s\npackage: a\n", "schema: s\npackage: >-\n  a\n",
	"schema: s\npackage: a\n  b\n", "schema: s\npackage: a\n\n  b\n", "schema: s\npackage: a # x\n",
	"schema: s\npackage: 1.5\n", "schema: s\npackage: yes\n", "schema: s\npackage: ~\n",
	"  schema: s\n  package: a\n", "schema: s\nv: |\n  x\npackage: a\n", "schema: s\n<<: {package: a}\n",
	"x: &a p\nschema: s\npackage: *a\n", "schema: s\npackage: !!str a\n",
	"schema: s\nv: x\u0085package: a\n", "schema: s\nv: x\u2028package: a\n", "schema: s\nv: \"x\rpackage: a\"\n",
	"schema: s\n...\npackage: a\n", "%YAML 1.1\n---\nschema: s\n",
	"---#x\nschema: s\n", "# only\n", "", "---\n---\nschema: s\n", "schema: s\n--- x\nschema: s\n", "\ufeffschema: s\n",
	"schema: s\npackage:\n- a\n", "package: a\n",
	"schema: olm.package\nname: p\n---\nschema: olm.channel\npackage: p\nname: [x]\n---\nschema: [\n",
	"schema: olm.package\ndescription: \"a\n  b\"\nname: p\ndefaultChannel: c\n",
	`{"schema":"s","package":"a"}{"schema":"s","package":"b","name":"\u0063"}`,
	`{"schema":"s","package":"a","package":"b"}`, `{"schema":"s","Package":"a"}`,
	`{"schema":"s","\u0070ackage":"a"}`, `{"schema":"s","package":null}`, `{"schema":"s","package":{"name":"x"}}`,
	`{"v":{"package":"x"},"schema":"s"} {"schema":"s" "package":"a"}`,
	`{"schema":"olm.bundle","name":"b","properties":[{"type":"olm.bundle.object","value":{"data":"!"}}]}`,
	"{schema: s, package: a}\n", `{"schema":"s"}` + "\n---\nschema: t\n",
	`{"schema":"olm.bundle","name":"b"}`, `{"schema":"olm.channel","package":"p","name":"b"}`,
	`{"schema":"olm.package"}`, "schema: olm.deprecations\nname: x\npackage: a\n",
	"schema: olm.deprecations\nentries: []\n",
}

func TestStreamOfOddFiles(t *testing.T) {
	all := fstest.MapFS{}
	for i, text := range oddCatalogs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			sameAsLoad(t, fstest.MapFS{"catalog.yaml": {Data: []byte(text)}})
			sameAsLoad(t, fstest.MapFS{"catalog.yaml": {Data: []byte(text)},
				"z.yaml": {Data: []byte("schema: olm.package\nname: z\nx: [\n")}})
		})
		all[fmt.Sprintf("%02d", i)] = &fstest.MapFile{Data: []byte(text)}
	}
	sameAsLoad(t, all)
}

func FuzzStream(f *testing.F) {
	for _, text := range oddCatalogs {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { sameAsLoad(t, fstest.MapFS{"catalog.yaml": {Data: []byte(text)}}) })
}

// countingFS counts opened files.
type countingFS struct {
	fs.FS
	opened map[string]int
}

func (c countingFS) Open(name string) (fs.File, error) {
	c.opened[name]++
	return c.FS.Open(name)
}

func TestStreamOfOnePackageReadsNoOther(t *testing.T) {
	files := fstest.MapFS{}
	for i := range 20 {
		pkg := fmt.Sprintf("p%02d", i)
		text := fmt.Sprintf(
			"schema: olm.package\nname: %s\ndefaultChannel: c\n---\nschema: olm.channel\npackage: %s\nname: "+
				"c\nentries:\n- name: %s.v1\n", pkg, pkg, pkg)
		// A bundle that cannot be parsed: reading it is an error.
		bad := "properties: {{\n"
		if i == 7 {
			bad = "image: q.io/a/b\n"
		}
		files[pkg+"/catalog.yaml"] = &fstest.MapFile{Data: []byte(
			text + "---\nschema: olm.bundle\nname: " + pkg + ".v1\npackage: " + pkg + "\n" + bad)}
	}
	counted := countingFS{files, map[string]int{}}
	got := texts(declcfg.Stream(t.Context(), counted, declcfg.LoadOptions{Jobs: 1},
		func(pkg string) bool { return pkg == "p07" }))
	if len(got) != 3 || !strings.Contains(got[2], "q.io/a/b") {
		t.Errorf("got %q", got)
	}
	for name, n := range counted.opened {
		want := 1
		if strings.HasPrefix(name, "p07/") {
			want = 2
		}
		if strings.HasSuffix(name, ".yaml") && n != want {
			t.Errorf("%s was opened %d times, want %d", name, n, want)
		}
	}
	if got := texts(declcfg.Stream(t.Context(), files, declcfg.LoadOptions{},
		func(pkg string) bool { return pkg == "p08" })); len(got) != 1 || !strings.Contains(got[0],
		"p19/catalog.yaml") {
		t.Errorf("the error does not have the problems of all files: %q", got)
	}
}

// The blobs of a package that can be read are yielded whatever the others have, and an error is about its own blob.
func TestPackageBlobs(t *testing.T) {
	const bad = `{"schema":"olm.bundle","package":"%s","name":"b","image":"a/b:v1","properties":"x"}` + "\n"
	text := fmt.Sprintf(bad,
		"one") + `{"schema":"olm.channel","package":"two","name":"c","entries":[{"name":"a"}]}` + "\n" +
		`{"schema":"olm.package","name":"two","defaultChannel":"c"}` + "\n" + fmt.Sprintf(bad, "three")
	x, err := declcfg.NewIndex(t.Context(), fstest.MapFS{"catalog.json": {Data: []byte(text)}}, declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for pkg, want := range map[string]string{"one": "catalog.json:1", "two": "olm.package olm.channel",
		"three": "catalog.json:4", "none": ""} {
		var got []string
		for b, err := range x.PackageBlobs(t.Context(), pkg) {
			var invalid *declcfg.ValidationError
			switch {
			case errors.As(err, &invalid) && len(invalid.Problems) == 1:
				at := invalid.Problems[0].Position
				got = append(got, fmt.Sprintf("%s:%d", at.File, at.Line))
			case err != nil:
				t.Error(err)
			default:
				got = append(got, b.BlobSchema())
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", pkg, got, want)
		}
	}
}
