package jobs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/images"
)

// Line is one migration of a list. It has a directory, images, or both.
type Line struct {
	// Number is where in the list it stands, from 1.
	Number int
	// Source is a database, a catalog directory or an image of one of them.
	Source string
	// Directory is the catalog directory to write; empty for none.
	Directory string
	// Names are what the image is called, and Destinations where it goes.
	Names        []string
	Destinations []images.Destination
}

// Outputs are the texts of all outputs, the directory first.
func (l *Line) Outputs() []string {
	var out []string
	if l.Directory != "" {
		out = append(out, l.Directory)
	}
	for _, d := range l.Destinations {
		out = append(out, d.String())
	}
	return out
}

// ListOptions say how a list is understood.
type ListOptions struct {
	// OutDir, unless empty, is where all directories and local images are written: a line need not name any, and what it
	// names is relative to it and cannot lead out of it.
	OutDir string
	// Image finds out where an image with some names goes, given the destinations that the line has. It may change the names.
	Image func(names []string, given []images.Destination) ([]string, []images.Destination, error)
}

// The bounds of a list.
const (
	maxList     = 16 << 20 // bytes
	maxLine     = 16 << 10 // bytes
	maxLines    = 100_000
	maxProblems = 20 // reported of one list
)

// arrow stands between the source and the names of an image.
const arrow = "->"

// transports begin the name of an image that says where it is.
var transports = [...]string{"docker://", "oci:", "oci-archive:", "docker-archive:", "dir:", "containers-storage:"}

// ProblemsError has everything that is wrong with a list.
type ProblemsError struct {
	Problems []error
	// More is how many are not among them.
	More int
}

func (e *ProblemsError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.Error()
	}
	if e.More > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(texts, "\n")
}

func (e *ProblemsError) Unwrap() []error { return e.Problems }

// ErrList is the class of errors about lists.
var ErrList = errors.New("invalid list")

// problems gathers what is wrong.
type problems struct {
	name string
	err  ProblemsError
}

func (p *problems) add(line int, format string, args ...any) {
	if len(p.err.Problems) == maxProblems {
		p.err.More++
		return
	}
	p.err.Problems = append(p.err.Problems, fmt.Errorf("%s:%d: %w: %w", p.name, line, ErrList, fmt.Errorf(format, args...)))
}

func (p *problems) result() error {
	if len(p.err.Problems) == 0 {
		return nil
	}
	return &p.err
}

// Parse reads a list, which is called name in errors. Each line is
//
//	SOURCE                      a directory below OutDir, called after the source
//	SOURCE OUT...               a directory, or images as TRANSPORT:PATH
//	SOURCE [OUT...] -> NAME...  an image with these names, also as TRANSPORT:PATH
//
// Words are separated by blanks; what has blanks, quotes or a "#" at its beginning stands in single or in double quotes, in
// the latter with \" and \\. A "#" at the beginning of a word begins a comment. All problems of the list are reported
// together, among them outputs that are in each other's way; nothing is looked at but the text and, for what is the same
// place, links in the file system.
func Parse(r io.Reader, name string, o ListOptions) ([]Line, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxList+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &problems{name: name}
	if len(text) > maxList {
		return nil, fmt.Errorf("%s: %w: longer than %d bytes", name, ErrList, maxList)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	var lines []Line
	scan := bufio.NewScanner(bytes.NewReader(text))
	scan.Buffer(nil, maxList+1)
	for n := 1; scan.Scan(); n++ {
		l := Line{Number: n}
		given, err := l.parse(scan.Text(), o)
		switch {
		case err != nil:
			p.add(n, "%w", err)
			continue
		case !given:
			continue
		}
		if len(lines) == maxLines {
			p.add(n, "more than %d migrations", maxLines)
			break
		}
		lines = append(lines, l)
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	deriveNames(lines, o)
	checkOutputs(lines, o, p)
	return lines, p.result()
}

// parse reads the text of a line; it reports false if there is nothing on it.
func (l *Line) parse(text string, o ListOptions) (bool, error) {
	if len(text) > maxLine {
		return false, fmt.Errorf("longer than %d bytes", maxLine)
	}
	words, err := split(strings.TrimSuffix(text, "\r"))
	if err != nil || len(words) == 0 {
		return false, err
	}
	if l.Source = words[0].text; l.Source == "" || words[0].is(arrow) {
		return false, errors.New("missing source")
	}
	var given []images.Destination
	named := false
	for _, w := range words[1:] {
		switch {
		case w.is(arrow):
			if named {
				return false, fmt.Errorf("duplicate %q", arrow)
			}
			named = true
		case w.text == "":
			return false, errors.New("empty output")
		case hasTransport(w.text):
			d, err := images.Parse(w.text)
			if err != nil {
				return false, err
			}
			if d, err = within(d, o.OutDir); err != nil {
				return false, err
			}
			given = append(given, d)
		case named:
			l.Names = append(l.Names, w.text)
		case l.Directory != "":
			return false, fmt.Errorf("two directories, %q and %q: quote names with spaces, and put image names after %q", l.Directory, w.text, arrow)
		default:
			if l.Directory, err = below(o.OutDir, w.text); err != nil {
				return false, err
			}
		}
	}
	if named && len(l.Names)+len(given) == 0 {
		return false, fmt.Errorf("no image after %q", arrow)
	}
	if len(l.Names)+len(given) > 0 {
		if l.Names, l.Destinations, err = o.Image(l.Names, given); err != nil {
			return false, err
		}
	}
	if l.Directory == "" && len(l.Destinations) == 0 && o.OutDir == "" {
		return false, fmt.Errorf("no output for %q: name a directory or an image, or set --out-dir", l.Source)
	}
	return true, nil
}

func hasTransport(text string) bool {
	return slices.ContainsFunc(transports[:], func(t string) bool { return strings.HasPrefix(text, t) })
}

// within puts a local image below the directory for outputs.
func within(d images.Destination, outDir string) (images.Destination, error) {
	if !d.InFiles() {
		return d, nil
	}
	var err error
	d.Path, err = below(outDir, d.Path)
	return d, err
}

// below is a path in the directory for outputs, which it must not lead out of; without such a directory it is the path.
func below(outDir, path string) (string, error) {
	if outDir == "" {
		return filepath.Clean(path), nil
	}
	if !filepath.IsLocal(path) || filepath.Clean(path) == "." {
		return "", fmt.Errorf("the output %q is outside of the output directory: it is relative to --out-dir", path)
	}
	return filepath.Join(outDir, path), nil
}

// word is a word of a line. The arrow counts only where it is not in quotes.
type word struct {
	text   string
	quoted bool
}

func (w word) is(text string) bool { return !w.quoted && w.text == text }

// split parses a line.
func split(line string) ([]word, error) {
	if !utf8.ValidString(line) {
		return nil, errors.New("not UTF-8")
	}
	for _, r := range line {
		if r != '\t' && unicode.IsControl(r) {
			return nil, fmt.Errorf("the control character %q", r)
		}
	}
	var words []word
	for rest := line; ; {
		rest = strings.TrimLeft(rest, " \t")
		if rest == "" || rest[0] == '#' {
			return words, nil
		}
		w, left, err := next(rest)
		if err != nil {
			return nil, err
		}
		words, rest = append(words, w), left
	}
}

// next takes one word off a line. Quoted and other parts may follow each other, as in a shell.
func next(s string) (w word, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t':
			w.text = b.String()
			return w, s[i:], nil
		case '\'', '"':
			w.quoted = true
			for i++; ; i++ {
				if i >= len(s) {
					return w, "", fmt.Errorf("the quote %c is not closed", c)
				}
				if s[i] == c {
					break
				}
				if c == '"' && s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\') {
					i++
				}
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	w.text = b.String()
	return w, "", nil
}
