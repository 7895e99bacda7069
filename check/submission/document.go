package submission

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// document is a file with one value.
type document struct {
	file string
	json []byte // the value as canonical JSON; nil: the file is empty
}

// fault is why a file cannot be used.
type fault struct {
	file         string
	line, column int
	text         string
}

func (f *fault) Error() string { return f.text }

// finding returns the fault as a finding.
func (f *fault) finding() rules.Finding {
	return rules.Finding{Severity: rules.Error, File: f.file, Line: f.line, Column: f.column, Message: f.text}
}

func faultOf(file string, line int, format string, args ...any) *fault {
	return &fault{file: file, line: line, text: fmt.Sprintf(format, args...)}
}

// readDocument reads a file that the pipelines read: one YAML document, and perhaps empty ones after it.
func readDocument(fsys fs.FS, file string) (document, *fault) {
	text, err := bundlefs.ReadFile(fsys, file)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return document{}, faultOf(file, 0, "there is no such file")
		}
		return document{}, faultOf(file, 0, "%v", err)
	}
	d := document{file: file}
	limits := canon.Limits{MaxDocument: bundlefs.MaxFile}
	split := canon.NewSplitter(bytes.NewReader(text), limits)
	for {
		doc, err := split.Next()
		if err == io.EOF {
			break
		}
		if err == nil && d.json != nil {
			return document{}, faultOf(file, doc.Line, "the file has more than one YAML document: the pipeline reads one")
		}
		if err == nil {
			c := canon.Converter{Limits: limits}
			d.json, err = c.Append(nil, doc)
		}
		if err != nil {
			f := faultOf(file, max(doc.Line, 1), "the file is no YAML: %v", err)
			var syntax *canon.SyntaxError
			if errors.As(err, &syntax) {
				f.line, f.column, f.text = syntax.Place(max(doc.Line, 1))
				f.text = "the file is no YAML: " + f.text
			}
			return document{}, f
		}
	}
	if bad := tagFault(file, text); bad != nil {
		return document{}, bad
	}
	if string(d.json) == "null" {
		d.json = nil
	}
	return d, nil
}

// tagFault returns the fault of a text with a tag that the pipelines do not know.
func tagFault(file string, text []byte) *fault {
	if !mayHaveTag(text) {
		return nil
	}
	if n := ownTag(text); n != nil {
		return faultOf(file, n.Line, "the tag %q is none of YAML's: remove it", n.Tag)
	}
	return nil
}

// mayHaveTag reports whether a text has what may be a tag of its own.
func mayHaveTag(text []byte) bool {
	for from := 0; ; {
		i := bytes.IndexByte(text[from:], '!')
		if i < 0 {
			return false
		}
		at := from + i
		if (at == 0 || bytes.IndexByte([]byte(" \t\n[{,"), text[at-1]) >= 0) && at+1 < len(text) &&
			bytes.IndexByte([]byte(" \t\r\n="), text[at+1]) < 0 {
			return true
		}
		from = at + 1
	}
}

// pyTags are the tags that the pipelines' reader of YAML knows.
var pyTags = []string{"!!null", "!!bool", "!!int", "!!float", "!!binary", "!!timestamp", "!!omap", "!!pairs", "!!set", "!!str",
	"!!seq", "!!map", "!!merge"}

// ownTag returns the first value of a text with a tag that YAML does not have.
func ownTag(text []byte) (found *yaml.Node) {
	defer func() { _ = recover() }() // of the library, on a text that has been read already
	var root yaml.Node
	if yaml.Unmarshal(text, &root) != nil {
		return nil
	}
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		if n.Tag != "" && n.Kind != yaml.AliasNode && !slices.Contains(pyTags, n.ShortTag()) && found == nil {
			found = n
		}
		for _, c := range n.Content {
			visit(c)
		}
	}
	visit(&root)
	return found
}

// isObject reports whether the value is a mapping.
func (d document) isObject() bool { return len(d.json) > 0 && d.json[0] == '{' }

// kindOf names the kind of a JSON value in YAML's words.
func kindOf(value []byte) string {
	if len(value) == 0 {
		return "empty"
	}
	switch value[0] {
	case '"':
		return "text"
	case '{':
		return "a mapping"
	case '[':
		return "a list"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// isSet reports whether a JSON value is there and has a content: it is not null, the empty text, false, zero or empty.
func isSet(value []byte) bool {
	switch string(value) {
	case "", "null", `""`, "false", "0", "[]", "{}":
		return false
	}
	return true
}

// textOf returns a text; ok is false if the value is there and is none.
func textOf(value []byte) (text string, ok bool) {
	if len(value) == 0 || string(value) == "null" {
		return "", true
	}
	return jsonscan.Text(value)
}
