package jobs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/problem"
)

// Line is one migration of a list. It has a directory, images, or both.
type Line struct {
	// Number is its line number, from 1.
	Number int
	// Source is a database, a catalog directory, or an image of one of them.
	Source string
	// Directory is the catalog directory to write; empty for none.
	Directory string
	// Names are the names of the image, Destinations the places it is written to.
	Names        []string
	Destinations []transport.Destination
}

// Outputs returns the texts of all outputs, the directory first.
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

// ListOptions configure the parsing of a list.
type ListOptions struct {
	// OutDir, unless empty, is the directory for all output directories and local images: a line may omit its output,
	// and the paths in a line are relative to it and cannot lead out of it.
	OutDir string
	// Transports are those of outputs and sources.
	Transports transport.Table
	// Image returns the names and destinations of an image, given the names and destinations in the line.
	Image func(names []string, given []transport.Destination) ([]string, []transport.Destination, error)
}

// Limits of a list.
const (
	maxList  = 16 << 20 // bytes
	maxLine  = 16 << 10 // bytes
	maxLines = 100_000
)

// arrow separates the source from the names of an image.
const arrow = "->"

// ErrList is the class of errors about lists.
var ErrList = errors.New("invalid list")

// problems are those of the list with a name.
type problems struct {
	problem.List[problem.Problem]

	name string
}

func (p *problems) add(line int, format string, args ...any) {
	err := fmt.Errorf("%w: %w", ErrList, fmt.Errorf(format, args...))
	p.Add(problem.Problem{Place: problem.Place{File: p.name, Line: line}, Text: err.Error(), Err: err})
}

// Parse reads a list; name is its name in errors. Each line is
//
//	SOURCE                      a directory below OutDir, called after the source
//	SOURCE OUT...               a directory, or images as TRANSPORT:PATH
//	SOURCE [OUT...] -> NAME...  an image with these names, also as TRANSPORT:PATH
//
// Words are separated by blanks. A word with blanks, quotes or a leading "#" is written in single or double quotes; in
// double quotes, \" and \\ are escapes. A "#" at the beginning of a word begins a comment. All problems of the list are
// reported together, including conflicts between outputs. Apart from the text, Parse reads symbolic links, to find
// paths that are the same.
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
	return lines, p.Err()
}

// parse parses a line; it returns false if the line is empty or a comment.
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
	var given []transport.Destination
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
		case o.Transports.Has(w.text):
			d, err := o.Transports.Parse(w.text)
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
			return false, fmt.Errorf(
				"two directories, %q and %q: quote names with spaces, and put image names after %q", l.Directory,
				w.text, arrow)
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
		return false, fmt.Errorf("no output for %q: name a directory or an image, or set --to DIR", l.Source)
	}
	return true, nil
}

// within moves a local image below OutDir.
func within(d transport.Destination, outDir string) (transport.Destination, error) {
	if !d.InFiles() {
		return d, nil
	}
	var err error
	d.Path, err = below(outDir, d.Path)
	return d, err
}

// below joins OutDir and a path, which must not lead out of it; without OutDir it returns the path.
func below(outDir, path string) (string, error) {
	if outDir == "" {
		return filepath.Clean(path), nil
	}
	if !filepath.IsLocal(path) || filepath.Clean(path) == "." {
		return "", fmt.Errorf("the output %q is outside of the output directory: it is relative to --to", path)
	}
	return filepath.Join(outDir, path), nil
}

// word is a word of a line. The arrow is one only without quotes.
type word struct {
	text   string
	quoted bool
}

func (w word) is(text string) bool { return !w.quoted && w.text == text }

// split parses the words of a line.
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

// next parses one word. Quoted and unquoted parts may follow each other, as in a shell.
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
