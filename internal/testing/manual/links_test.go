package manual

import (
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"
	"testing"
)

// pages are those of the project.
var pages = []string{"*.md", "docs/**", "deploy/**"}

// maxLines bounds the length of a page.
const maxLines = 350

// longer are pages that may be longer: tables that are looked up, and what the program writes.
var longer = map[string]bool{"docs/differences-from-opm.md": true, "docs/reference/commands.md": true,
	"CHANGELOG.md": true}

func TestLinks(t *testing.T) {
	root := os.DirFS("../../..")
	all := read(t, root)
	byPath := map[string]*Page{}
	for _, p := range all {
		byPath[p.Path] = p
	}
	linked := map[string]bool{}
	n := 0
	for _, p := range all {
		for _, a := range p.Twice {
			t.Errorf("%s: two headings have the anchor %q", p.Path, a)
		}
		for _, l := range p.Links {
			n++
			u, err := url.Parse(l.Target)
			if err != nil {
				t.Errorf("%s:%d: %v", p.Path, l.Line, err)
				continue
			}
			if u.Scheme != "" || u.Host != "" {
				continue
			}
			to := p.Path
			if u.Path != "" {
				to = path.Join(path.Dir(p.Path), u.Path)
			}
			if to != p.Path {
				linked[to] = true
			}
			if _, err := fs.Stat(root, to); err != nil {
				t.Errorf("%s:%d: %s leads to nothing", p.Path, l.Line, l.Target)
				continue
			}
			if u.Fragment == "" {
				continue
			}
			if target := byPath[to]; target == nil {
				t.Errorf("%s:%d: %s: anchors are for pages", p.Path, l.Line, l.Target)
			} else if _, ok := target.Anchor[u.Fragment]; !ok {
				t.Errorf("%s:%d: %s has no such heading", p.Path, l.Line, l.Target)
			}
		}
	}
	if n < 100 {
		t.Errorf("%d links", n)
	}
	for _, p := range all {
		if strings.HasPrefix(p.Path, "docs/") && !linked[p.Path] {
			t.Errorf("no page leads to %s", p.Path)
		}
	}
}

func TestPages(t *testing.T) {
	for _, p := range read(t, os.DirFS("../../..")) {
		if p.Title == "" {
			t.Errorf("%s has no title", p.Path)
		}
		if p.Lines > maxLines && !longer[p.Path] {
			t.Errorf("%s has %d lines, %d at most", p.Path, p.Lines, maxLines)
		}
	}
}

func read(t *testing.T, root fs.FS) []*Page {
	t.Helper()
	all, err := All(root, pages...)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("%d pages", len(all))
	}
	return all
}
