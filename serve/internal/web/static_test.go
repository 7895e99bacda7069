package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/guard"
)

// written returns the files of the site of a catalog.
func written(t testing.TB, c *Content, o StaticOptions) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "site")
	if err := WriteStatic(t.Context(), c, dir, o); err != nil {
		t.Fatal(err)
	}
	return tree(t, dir)
}

// tree returns the files below a directory.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	if err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// checkLinks checks that everything that a page of a site refers to is a file, and a fragment something in it.
func checkLinks(t testing.TB, files map[string]string) {
	t.Helper()
	docs := map[string]document{}
	for name, text := range files {
		if strings.HasSuffix(name, ".html") {
			docs[name] = parsePage(t, text)
		}
	}
	lower := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if other, ok := lower[strings.ToLower(name)]; ok {
			t.Errorf("%s and %s are one file on some systems", name, other)
		}
		lower[strings.ToLower(name)] = name
	}
	for name, d := range docs {
		links := slices.Clone(d.links)
		for _, a := range d.attributes {
			if a.Key == "data-icon" || a.Key == "data-list" || a.Key == "href" {
				links = append(links, a.Val)
			}
		}
		for _, l := range links {
			u, err := url.Parse(l)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if u.Scheme != "" {
				continue
			}
			to := path.Join(path.Dir(name), u.Path)
			if u.Path == "" {
				to = name
			}
			if _, ok := files[to]; !ok || u.RawQuery != "" {
				t.Errorf("%s has a link to %q", name, l)
			}
			if u.Fragment != "" && !strings.Contains(u.Fragment, "=") && !slices.Contains(docs[to].ids, u.Fragment) {
				t.Errorf("%s has a link to %q: there is no such part", name, l)
			}
		}
	}
	for name, text := range files {
		if strings.HasSuffix(name, ".atom") {
			feedOf(t, text)
		}
	}
}

// A site has every page that the server has, and nothing that needs a server.
func TestStaticSite(t *testing.T) {
	files := written(t, contentOf(t, sampleFS()), StaticOptions{Title: "Sample"})
	checkLinks(t, files)
	for file, says := range map[string]string{
		"index.html": "Alpha Operator", "images.html": "4 images", "package/beta.html": "beta.v1.0.0",
		"channel/alpha/stable.html": "default channel", "channel/alpha/old.html": "This channel is deprecated.",
		"bundle/alpha/alpha.v1.1.0.html": "olm.constraint", "images/alpha.html": "3 images",
		"feed.atom": "New versions in Sample", "feed/alpha.atom": "New versions of Alpha Operator",
		"icon/alpha.png": "\x89PNG"} {
		if !strings.Contains(files[file], says) {
			t.Errorf("%s does not have %q", file, says)
		}
	}
	for name, text := range files {
		if strings.HasSuffix(name, ".html") && (strings.Contains(text, "api/v1") || strings.Contains(text, "og:url") ||
			!strings.Contains(text, `<meta http-equiv="Content-Security-Policy" content="default-src 'none';`)) {
			t.Errorf("%s has an address of a server, or no policy", name)
		}
		if strings.Contains(text, "<h1>Not found") {
			t.Errorf("%s is linked and not there", name)
		}
	}
	if _, ok := files["sitemap.txt"]; ok {
		t.Error("there is a sitemap without an address")
	}
}

// With the address of a site, what must be absolute is.
func TestStaticSiteWithAddress(t *testing.T) {
	at, err := url.Parse("https://acme.test/catalog/")
	if err != nil {
		t.Fatal(err)
	}
	files := written(t, contentOf(t, sampleFS()), StaticOptions{URL: at})
	for line := range strings.Lines(files["sitemap.txt"]) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), at.String()); !ok || files[name] == "" {
			t.Errorf("the sitemap has %q", line)
		}
	}
	if n := strings.Count(files["sitemap.txt"], "\n"); n != 9 {
		t.Errorf("the sitemap has %d lines", n)
	}
	for _, text := range []string{`"og:url" content="https://acme.test/catalog/package/alpha.html"`,
		`"og:image" content="https://acme.test/catalog/icon/alpha.png"`} {
		if !strings.Contains(files["package/alpha.html"], text) {
			t.Errorf("the page does not have %s", text)
		}
	}
	// Every page of a package names it and its feed, not the first one alone.
	for name, text := range files {
		if strings.HasPrefix(name, "bundle/alpha/") && !strings.Contains(text, `href="../../feed/alpha.atom"`) {
			t.Errorf("%s does not have the feed of its package", name)
		}
	}
	dated := written(t, datedCatalog(t, 1, 3), StaticOptions{URL: at})
	if href := feedOf(t, dated["feed/p0.atom"]).Entries[0].Link.Href; href != at.String()+"bundle/p0/p0.v1.2.0.html" {
		t.Errorf("the feed links to %q", href)
	}
	checkLinks(t, dated)
}

// The same catalog gives the same bytes, whatever the order of its blobs and the number of jobs.
func TestStaticSiteIsReproducible(t *testing.T) {
	const others = "---\nschema: custom.thing\npackage: alpha\nname: another\nvalue: 1\n"
	fsys := sampleFS()
	fsys["3.yaml"] = &fstest.MapFile{Data: []byte(others)}
	both := append(strings.Split(sampleA, "---\n"), strings.Split(sampleB+others, "---\n")...)
	slices.Reverse(both)
	first := written(t, contentOf(t, fsys), StaticOptions{Jobs: 1})
	second := written(t, contentOf(t, fstest.MapFS{"z.yaml": {Data: []byte(strings.Join(both, "\n---\n"))}}),
		StaticOptions{Jobs: 4})
	for name := range first {
		if first[name] != second[name] {
			t.Errorf("%s differs:\n%s\n%s", name, first[name], second[name])
		}
	}
	if len(first) != len(second) || len(first) < 20 {
		t.Errorf("%d and %d files", len(first), len(second))
	}
}

// Names from a catalog become names of files that are safe everywhere.
func TestHostileStaticSite(t *testing.T) {
	for _, evil := range append(hostile, "CON", "con.html", "a.html", ".", "~2e", "index", "Index",
		"a b.") {
		files := written(t, hostileCatalog(t, evil), StaticOptions{})
		checkLinks(t, files)
		pages := 0
		for name := range files {
			if strings.HasSuffix(name, ".html") {
				pages++
			}
			for part := range strings.SplitSeq(name, "/") {
				if len(part) > 120 || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789-_.~+") != "" ||
					deviceNames().MatchString(part) || strings.HasPrefix(part, ".") {
					t.Errorf("%.100q: a file %q", evil, name)
				}
			}
		}
		// the list, the package, its channel, its bundle, its images and all images
		if pages != 6 {
			t.Errorf("%.100q: %d pages: %q", evil, pages, slices.Sorted(maps.Keys(files)))
		}
	}
}

// Pages that are not the same are not in one file, on a file system that ignores the case of letters neither.
func FuzzFileName(f *testing.F) {
	f.Add("etcd", "stable", "Etcd", "stable")
	f.Add("con", "a/b", "a", "b")
	f.Add("a.html", "b", "a", "")
	f.Add(strings.Repeat("a", 200), "x", strings.Repeat("a", 201), "x")
	f.Add("~41", "x", "A", "x")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		x := fileName("bundle", withValues([]string{"package", a, "name", b}))
		y := fileName("bundle", withValues([]string{"package", c, "name", d}))
		if x != strings.ToLower(x) || !fs.ValidPath(x) || !filepath.IsLocal(x) {
			t.Errorf("%q is not a safe path", x)
		}
		if a != "" && c != "" && (a != c || b != d) && (x == y || strings.HasPrefix(x, y+"/")) {
			t.Errorf("%q %q and %q %q are both %q, or one is a directory of the other", a, b, c, d, x)
		}
	})
}

// A site is written into nothing or an empty directory; after an error nothing has changed.
func TestStaticSiteIsWrittenWholly(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "site")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := WriteStatic(ctx, contentOf(t, sampleFS()), dir, StaticOptions{Progress: func(done, _ int) {
		if done == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || len(tree(t, dir)) != 0 {
		t.Errorf("a cancelled site: %v, %v", err, tree(t, dir))
	}
	if err := WriteStatic(t.Context(), contentOf(t, sampleFS()), dir, StaticOptions{}); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	err = WriteStatic(t.Context(), contentOf(t, sampleFS()), dir, StaticOptions{Title: "other"})
	if !errors.Is(err, atomicfs.ErrNotEmpty) || !maps.Equal(before, tree(t, dir)) {
		t.Errorf("a directory with a site: %v", err)
	}
	if entries, err := os.ReadDir(top); err != nil || len(entries) != 1 {
		t.Errorf("there is left %v, %v", entries, err)
	}
}

// A bug is an error that says where it is, and leaves nothing.
func TestBugWhileASiteIsWritten(t *testing.T) {
	top := t.TempDir()
	for _, jobs := range []int{1, 4} {
		err := WriteStatic(t.Context(), contentOf(t, sampleFS()), filepath.Join(top, "site"), StaticOptions{Jobs: jobs,
			Progress: func(done, _ int) {
				if done == 3 {
					panic("a bug")
				}
			}})
		var bug *guard.Panic
		if !errors.As(err, &bug) || bug.Value != "a bug" || len(bug.Frames) == 0 {
			t.Errorf("%v", err)
		}
		if entries, err := os.ReadDir(top); err != nil || len(entries) != 0 {
			t.Errorf("there is left %v, %v", entries, err)
		}
	}
}

// What one request begins and others wait for ends for all of them.
func TestBugInWhatIsMadeOnce(t *testing.T) {
	var o once[int]
	for range 2 {
		_, err := o.get(t.Context(), contentOf(t, sampleFS()), func() (int, error) { panic("a bug") })
		var bug *guard.Panic
		if !errors.As(err, &bug) {
			t.Errorf("%v", err)
		}
	}
}

// A site of a real catalog has no broken link, and no page of something that is not there.
func TestStaticSiteOfACatalog(t *testing.T) {
	c := contentOf(t, os.DirFS("../../../testdata/fbc/mini"))
	files := written(t, c, StaticOptions{})
	checkLinks(t, files)
	for name, text := range files {
		if strings.Contains(text, "<h1>Not found") {
			t.Errorf("%s is linked and not there", name)
		}
	}
}

// definitionsOf returns a catalog with many versions of an operator, all with the same definitions but the last.
func definitionsOf(t testing.TB, versions int) fstest.MapFS {
	t.Helper()
	var schema strings.Builder
	for i := range 200 {
		fmt.Fprintf(&schema, `,"f%03d":{"type":"object","description":"What the field number %d is for, in a few words.","properties":{"x":{"type":"string"}}}`, i, i)
	}
	definition := func(kind, more string) string {
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"` + strings.ToLower(kind) +
			`s.x.test"},"spec":{"group":"x.test","scope":"Namespaced","names":{"kind":"` + kind + `"},"versions":[` +
			`{"name":"v1alpha1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}},` +
			`{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{` +
			schema.String()[1:] + more + `}}}}}}]}}`
	}
	var all []release
	for i := range versions {
		more := ""
		if i == versions-1 {
			more = `,"last":{"type":"string"}`
		}
		all = append(all, release{name: fmt.Sprintf("p.v1.%d.0", i), objects: []string{definition("A", ""), definition("B", more)}})
	}
	return upgradesOf(t, all...)
}

// What bundles have in common is written once: a site has one page for each content, and less than three times the bytes
// of the catalog.
func TestStaticSiteHasEachContentOnce(t *testing.T) {
	fsys := definitionsOf(t, 40)
	size := 0
	for _, f := range fsys {
		size += len(f.Data)
	}
	var planned [2]int64
	files := written(t, contentOf(t, fsys), StaticOptions{Planned: func(pages int, bytes int64) { planned = [2]int64{int64(pages), bytes} }})
	checkLinks(t, files)
	count, bytes := map[string]int{}, 0
	for name, text := range files {
		top, _, _ := strings.Cut(name, "/")
		count[top]++
		bytes += len(text)
	}
	// The definition A, and two of B: each as a file, and the fields of two versions.
	if count["definition"] != 6 || bytes > 3*size {
		t.Errorf("%v, %d bytes of a catalog with %d", count, bytes, size)
	}
	if pages := int64(len(files)); planned[0] < pages*3/4 || planned[0] > pages*4/3 || planned[1] < int64(bytes)*2/3 || planned[1] > int64(bytes)*2 {
		t.Errorf("%d pages, %d bytes; said were %v", pages, bytes, planned)
	}
	for _, bundle := range []string{"p.v1.0.0", "p.v1.39.0"} {
		if text := files["bundle/p/"+bundle+".html"]; strings.Count(text, `href="../../file/p/`) != 2 {
			t.Errorf("%s does not link to its manifests: %s", bundle, text)
		}
	}
	if again := written(t, contentOf(t, fsys), StaticOptions{Jobs: 4}); !maps.Equal(again, files) {
		t.Error("another time the site has other files")
	}
}

// Of heads alone, nothing links to the page of another bundle, and other bundles still have their names in lists.
func TestStaticSiteOfHeads(t *testing.T) {
	all := written(t, contentOf(t, definitionsOf(t, 10)), StaticOptions{})
	heads := written(t, contentOf(t, definitionsOf(t, 10)), StaticOptions{HeadsOnly: true})
	checkLinks(t, heads)
	n := 0
	for name := range heads {
		if strings.HasPrefix(name, "bundle/") {
			n++
		}
	}
	if n != 1 || heads["bundle/p/p.v1.9.0.html"] == "" || len(heads) >= len(all) || !strings.Contains(heads["package/p.html"], "p.v1.3.0") {
		t.Errorf("%d bundles: %q", n, slices.Sorted(maps.Keys(heads)))
	}
}
