package site

import (
	"io/fs"
	"net/url"
	"os"
	"path"
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
