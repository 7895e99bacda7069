package manual

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode"
)

// A Page is a file in Markdown.
type Page struct {
	Path   string // below the root of the project, with slashes
	Title  string // the text of the first heading
	Lines  int
	Anchor map[string]int // the line of each heading, by its anchor
	Twice  []string       // anchors of more than one heading: a link to one of them leads to the first
	Links  []Link
	Blocks []Block
	Spans  []Span
}

// A Link is a link or an image of a page.
type Link struct {
	Line   int
	Target string // as it is written
}

// A Block is a block of code.
type Block struct {
	Line     int    // of its first line of code
	Language string // the first word behind the fence; empty for indented blocks
	Text     string // without fence and indentation
}

// A Span is code within a line of text.
type Span struct {
	Line  int
	Text  string // without the backticks
	Table bool   // it is in a row of a table
}

var (
	linkIn  = regexp.MustCompile(`\]\(([^()\s]+(?:\([^()\s]*\))?)(?:\s+"[^"]*")?\)|\b(?:src|href)="([^"]+)"`)
	codeIn  = regexp.MustCompile("`[^`]*`")
	headRe  = regexp.MustCompile(`^#{1,6} +(.*)$`)
	fenceRe = regexp.MustCompile("^( *)```+ *([^`\\s]*)[^`]*$")
)

// Read reads a page.
func Read(root fs.FS, name string) (*Page, error) {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	p := &Page{Path: name, Anchor: map[string]int{}}
	p.parse(strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"))
	return p, nil
}

// All reads the pages that match the patterns of path.Match, with "**" for any depth of directories.
func All(root fs.FS, patterns ...string) ([]*Page, error) {
	var pages []*Page
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if base := path.Base(name); name != "." && strings.HasPrefix(base, ".") || base == "node_modules" ||
				name == "dist" {
				return fs.SkipDir
			}
			return nil
		case path.Ext(name) != ".md" || !matches(patterns, name):
			return nil
		}
		p, err := Read(root, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		pages = append(pages, p)
		return nil
	})
	return pages, err
}

func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if dir, ok := strings.CutSuffix(p, "/**"); ok && strings.HasPrefix(name, dir+"/") {
			return true
		}
		if ok, _ := path.Match(p, name); ok {
			return true
		}
	}
	return false
}

func (p *Page) parse(lines []string) {
	p.Lines = len(lines)
	var b *block
	end := func() {
		if b != nil {
			p.Blocks = append(p.Blocks, Block{Line: b.line, Language: b.language, Text: b.text()})
		}
		b = nil
	}
	blank := true
	for i, line := range lines {
		if b != nil && b.fenced {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				end()
			} else {
				b.add(line)
			}
			continue
		}
		if m := fenceRe.FindStringSubmatch(line); m != nil {
			end()
			b = &block{line: i + 2, language: m[2], indent: m[1], fenced: true}
			continue
		}
		if strings.HasPrefix(line, "    ") && (b != nil || blank) {
			if b == nil {
				b = &block{line: i + 1, indent: "    "}
			}
			b.add(line)
			continue
		}
		if blank = strings.TrimSpace(line) == ""; blank {
			if b != nil {
				b.add(line)
			}
			continue
		}
		end()
		if m := headRe.FindStringSubmatch(line); m != nil {
			p.heading(m[1], i+1)
		}
		for _, code := range codeIn.FindAllString(line, -1) {
			p.Spans = append(p.Spans, Span{Line: i + 1, Text: strings.Trim(code, "`"),
				Table: strings.HasPrefix(line, "|")})
		}
		for _, m := range linkIn.FindAllStringSubmatch(codeIn.ReplaceAllString(line, "``"), -1) {
			p.Links = append(p.Links, Link{Line: i + 1, Target: m[1] + m[2]})
		}
	}
	end()
}

func (p *Page) heading(text string, line int) {
	if p.Title == "" {
		p.Title = text
	}
	a := Anchor(text)
	if _, ok := p.Anchor[a]; ok {
		p.Twice = append(p.Twice, a)
		return
	}
	p.Anchor[a] = line
}

// Anchor returns the anchor of a heading, as GitHub makes it: small letters, digits, dashes and underscores.
func Anchor(heading string) string {
	heading = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}

// block collects the lines of a block.
type block struct {
	line             int
	language, indent string
	fenced           bool
	lines            []string
}

func (b *block) add(line string) {
	b.lines = append(b.lines, strings.TrimPrefix(line, b.indent))
}

func (b *block) text() string {
	lines := b.lines
	for !b.fenced && len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return strings.Join(lines, "\n") + "\n"
}
