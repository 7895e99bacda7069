package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
)

const (
	maxFileName = 255
	maxReason   = 160 // bytes of another library's error in a message
)

// list returns the sorted names of the regular files in a directory, and of its directories. Other kinds of files and
// misleading names are fatal. A link counts as its target, which must be in the bundle.
func (r *reader) list(dir string) (files, dirs []string, err error) {
	entries, err := fs.ReadDir(r.fsys, dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if r.entries++; r.entries > r.limits.Entries {
			return nil, nil, r.limit(dir, fmt.Sprintf("more than %d files and directories", r.limits.Entries))
		}
		name := e.Name()
		if why := badName(name); why != "" {
			r.fatal(Problem{Rule: RuleName, File: dir,
				Message: fmt.Sprintf("invalid file name %s: %s", fault.Quote(name), why)})
			continue
		}
		mode := e.Type()
		if mode&fs.ModeSymlink != 0 {
			info, err := fs.Stat(r.fsys, path.Join(dir, name))
			if err != nil {
				r.fatal(Problem{Rule: RuleFile, File: path.Join(dir, name),
					Message: "a link that leads to nothing within the bundle: " + reason(err)})
				continue
			}
			mode = info.Mode().Type()
		}
		switch {
		case mode.IsDir():
			dirs = append(dirs, name)
		case mode.IsRegular():
			files = append(files, name)
		default:
			r.fatal(Problem{Rule: RuleFile, File: path.Join(dir, name), Message: "not a regular file"})
		}
	}
	slices.Sort(files)
	return files, dirs, nil
}

// read reads a file that list returned into r.raw.
func (r *reader) read(ctx context.Context, name string) (err error) {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	f, err := r.fsys.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	switch {
	case !info.Mode().IsRegular():
		r.fatal(Problem{Rule: RuleFile, File: name, Message: "not a regular file"})
		return errStop
	case size > r.limits.File:
		return r.limit(name, fmt.Sprintf("%d bytes (limit %d)", size, r.limits.File))
	case r.total+size > r.limits.Total:
		return r.limit(name, fmt.Sprintf("the files of the bundle have more than %d bytes", r.limits.Total))
	}
	r.total += size
	r.raw = slices.Grow(r.raw[:0], int(size))[:size]
	// If the file grows meanwhile, only the counted bytes are read.
	_, err = io.ReadFull(f, r.raw)
	return err
}

func badName(name string) string {
	switch {
	case len(name) > maxFileName:
		return fmt.Sprintf("longer than %d bytes", maxFileName)
	case !utf8.ValidString(name):
		return "not UTF-8"
	case strings.ContainsRune(name, '\\'):
		return "has a backslash"
	case strings.ContainsFunc(name, func(c rune) bool { return unicode.IsControl(c) || unicode.Is(unicode.Cf, c) }):
		return "has a control character"
	}
	return ""
}

// checkIdentifier makes a name of a package or bundle fatal if it is unsafe in paths, references or lines of text.
func (r *reader) checkIdentifier(what, name string, at bundlefs.Place) {
	const longest = 253 // like the name of any Kubernetes object
	why := ""
	switch {
	case name == "":
		why = "it is empty"
	case len(name) > longest:
		why = fmt.Sprintf("longer than %d bytes", longest)
	case name == "." || name == ".." || strings.ContainsAny(name, "/\\ "):
		why = "it may not have slashes and blanks"
	case strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		why = "it may only have printable ASCII characters"
	default:
		return
	}
	r.fatal(r.problem(RuleName, at, fmt.Sprintf("invalid name %s of the %s: %s", fault.Quote(name), what, why)))
}

// reason returns the text of an error without the name of the file, which the message already has.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}

// syntaxPlace returns a document's error with its place in the file, of which text has all lines; first is the line at
// which the document starts.
func syntaxPlace(err error, first int, text []byte) (p Problem) {
	var syntax *canon.SyntaxError
	var l *canon.LimitError
	p = Problem{Rule: RuleSyntax, Line: first, Message: err.Error()}
	switch {
	case errors.As(err, &syntax):
		p.Line, p.Column, p.Message = syntax.Place(first)
		// For a text that ends too early the library names a line after the last one.
		p.Line = min(p.Line, 1+bytes.Count(bytes.TrimRight(text, "\n"), []byte{'\n'}))
	case errors.As(err, &l):
		whole := *l
		whole.Line = 0
		p.Rule, p.Message = RuleLimit, whole.Error()
		p.Line += max(l.Line-1, 0)
	}
	return p
}
