package site

import (
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// page is a page of the built site: its links, and what can be linked to in it.
type page struct {
	links []string
	ids   map[string]bool
	title string
	h1    int
}

// Every link of the site, also of images, scripts and styles, leads to a file of it and to an anchor that is there.
// Nothing is loaded from another host.
func TestSite(t *testing.T) {
	root := os.DirFS("../../dist/site")
	pages := map[string]page{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".html" {
			return err
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		doc, err := html.Parse(f)
		if err != nil {
			return err
		}
		p := page{ids: map[string]bool{}}
		p.read(t, name, doc)
		pages[name] = p
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 50 {
		t.Errorf("%d pages", len(pages))
	}
	reached := map[string]bool{"index.html": true}
	n := 0
	for name, p := range pages {
		if p.h1 != 1 || p.title == "" {
			t.Errorf("%s: %d first headings, title %q", name, p.h1, p.title)
		}
		for _, l := range p.links {
			u, err := url.Parse(l)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if u.IsAbs() {
				continue
			}
			n++
			to := name
			if u.Path != "" {
				to = path.Join(path.Dir(name), u.Path)
			}
			if _, err := fs.Stat(root, to); err != nil {
				t.Errorf("%s: %s leads to nothing", name, l)
				continue
			}
			reached[to] = true
			if u.Fragment != "" && !pages[to].ids[u.Fragment] {
				t.Errorf("%s: %s has no such anchor", name, l)
			}
		}
	}
	for name := range pages {
		if !reached[name] {
			t.Errorf("no page leads to %s", name)
		}
	}
	t.Logf("%d pages, %d links", len(pages), n)
}

func (p *page) read(t *testing.T, name string, n *html.Node) {
	if n.Type == html.ElementNode {
		switch n.Data {
		case "h1":
			p.h1++
		case "title":
			if n.FirstChild != nil {
				p.title = n.FirstChild.Data
			}
		}
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				if p.ids[a.Val] {
					t.Errorf("%s: two elements have the id %q", name, a.Val)
				}
				p.ids[a.Val] = true
			case "href", "src":
				p.links = append(p.links, a.Val)
				if u, err := url.Parse(a.Val); n.Data != "a" && (err != nil || u.Host != "") {
					t.Errorf("%s: %s is loaded from elsewhere", name, a.Val)
				}
			}
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		p.read(t, name, c)
	}
}

// The index of the search names pages that are there.
func TestSearchIndex(t *testing.T) {
	data, err := os.ReadFile("../../dist/site/pages.js")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if !strings.HasPrefix(text, "window.docPages = [{") || !strings.Contains(text, `"url":"guides/mirror.html"`) {
		t.Errorf("%.200s", text)
	}
	if len(data) > 2<<20 {
		t.Errorf("%d bytes", len(data))
	}
}

// document reads a page of the built site.
func document(t *testing.T, name string) *html.Node {
	t.Helper()
	f, err := os.Open(path.Join("../../dist/site", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := html.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// text returns the text of a node.
func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// attribute returns the value of an attribute, or "".
func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// The navigation has the sections and pages of docs/README.md in their order, and that has every page of docs.
func TestNavigationIsTheListOfPages(t *testing.T) {
	readme, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	listed := map[string]bool{"README.md": true}
	for _, section := range strings.Split(string(readme), "\n## ")[1:] {
		links := regexp.MustCompile(`\]\(([^)]+)\.md\)`).FindAllStringSubmatch(section, -1)
		if len(links) > 0 {
			title, _, _ := strings.Cut(section, "\n")
			want = append(want, "# "+title)
		}
		for _, m := range links {
			listed[m[1]+".md"] = true
			want = append(want, m[1]+".html")
			if m[1] == "reference/cli" {
				want = append(want, "reference/commands/commands.html")
			}
		}
	}
	err = fs.WalkDir(os.DirFS("../../docs"), ".", func(name string, d fs.DirEntry, err error) error {
		if path.Ext(name) == ".md" && !listed[name] {
			t.Errorf("docs/README.md does not list %s", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"index.html", "guides/serve.html"} {
		var got []string
		current := 0
		for n := range document(t, page).Descendants() {
			if n.Data != "nav" || attribute(n, "aria-label") != "Pages" {
				continue
			}
			for d := range n.Descendants() {
				switch d.Data {
				case "h2":
					got = append(got, "# "+text(d))
				case "a":
					got = append(got, path.Join(path.Dir(page), attribute(d, "href")))
					if attribute(d, "aria-current") == "page" && got[len(got)-1] == page {
						current++
					}
				}
			}
		}
		if !slices.Equal(got, want) || len(want) < 30 {
			t.Errorf("%s:\ngot  %q\nwant %q", page, got, want)
		}
		if (current == 1) != (page != "index.html") {
			t.Errorf("%s: %d links are to the page itself", page, current)
		}
	}
}

// The home page says what the README says, and shows its five commands.
func TestHome(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	about := strings.Join(strings.Fields(strings.ReplaceAll(strings.Split(string(readme), "\n\n")[1], "`", "")), " ")
	doc := document(t, "index.html")
	if got := strings.Join(strings.Fields(text(doc)), " "); !strings.Contains(got, about) {
		t.Errorf("it does not say %q", about)
	}
	commands := regexp.MustCompile(`(?m)^\$ (bindery (migrate|list|validate|build|diff) .*)$`)
	shown, want := commands.FindAllString(text(doc), -1), commands.FindAllString(string(readme), -1)
	if len(want) != 5 || !slices.Equal(shown, want) {
		t.Errorf("it shows %q, and the README %q", shown, want)
	}
}

// A long page has a list of what is on it, a short one has none; every wide part can have the focus, and each page has
// the script that copies.
func TestContents(t *testing.T) {
	for page, want := range map[string]bool{"guides/serve.html": true, "reference/commands/bindery-mirror.html": true,
		"index.html": false, "reference/commands/bindery-version.html": false} {
		headings, entries, script := 0, 0, false
		for n := range document(t, page).Descendants() {
			switch {
			case n.Data == "h2" && n.Parent.Data == "article":
				headings++
			case n.Data == "details" && attribute(n, "class") == "contents":
				for d := range n.Descendants() {
					if d.Data == "a" && d.Parent.Parent.Parent.Data == "nav" {
						entries++
					}
				}
			case n.Data == "script":
				script = script || strings.HasSuffix(attribute(n, "src"), "copy.js")
			case n.Data == "pre" || n.Data == "table":
				if attribute(n, "tabindex") != "0" {
					t.Errorf("%s: keys do not scroll %.80q", page, text(n))
				}
			}
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
					t.Errorf("%s: a policy for scripts and styles would refuse %s", page, a.Key)
				}
			}
		}
		if !script || want != (entries > 0) || entries > 0 && entries != headings {
			t.Errorf("%s: %d headings, %d in the list, script: %v", page, headings, entries, script)
		}
	}
}
