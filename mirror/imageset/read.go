package imageset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// Options configure [Read].
type Options struct {
	// Compat accepts what oc-mirror accepts and what does no harm, with a warning: an apiVersion that is not known, and
	// a negative archiveSize.
	Compat bool
	// Transports are those that images can have beside docker and oci, as the client that reads them has them:
	// NAME://DETAILS.
	Transports []string
}

// Read reads a configuration file of the wanted kind: one document in YAML or JSON, of at most 4 MiB. Errors of the
// file's content are an [*Error] with all problems.
func Read(ctx context.Context, path string, kind Kind, o Options) (*Set, error) {
	data, err := regularfile.ReadNamed(ctx, path, MaxConfig)
	if err != nil {
		return nil, err
	}
	return Parse(data, path, kind, o)
}

// Parse reads the text of a configuration as [Read] does; file is its name in messages.
func Parse(data []byte, file string, kind Kind, o Options) (*Set, error) {
	r := &reader{file: file, options: o, set: Set{Kind: kind, Text: data}}
	r.readDocument(kind)
	if err := r.problems.Err(); err != nil {
		slices.SortStableFunc(r.problems.Problems, func(a, b Problem) int { return a.Compare(b.Place) })
		return nil, err
	}
	return &r.set, nil
}

// reader reads a configuration and collects its problems.
type reader struct {
	file     string
	options  Options
	set      Set
	first    int // the line of the document's first line, minus one
	problems Error
}

func (r *reader) problem(at canon.Place, field, what, fix string) Problem {
	p := Problem{Place: problem.Place{File: r.file}, Field: field, Text: what, Fix: fix, Err: fault.ErrInvalid}
	if p.Line, p.Column = at.Position(); p.Line > 0 {
		p.Line += r.first
	}
	return p
}

func (r *reader) wrong(at canon.Place, field, what, fix string) {
	r.problems.AddNew(func() Problem { return r.problem(at, field, what, fix) })
}

func (r *reader) warn(at canon.Place, field, what, fix string) {
	if len(r.set.Warnings) < problem.Most {
		r.set.Warnings = append(r.set.Warnings, r.problem(at, field, what, fix))
	}
}

// syntax adds the problem of a document that cannot be read; line counts from the start of the document.
func (r *reader) syntax(err error) {
	p := Problem{Place: problem.Place{File: r.file}, Text: err.Error(), Err: fault.ErrInvalid}
	var s *canon.SyntaxError
	if errors.As(err, &s) {
		p.Text = s.Format + ": " + s.Msg
		if s.Line > 0 {
			p.Line, p.Column = s.Line+r.first, max(s.Column, 1)
		}
	}
	r.problems.Add(p)
}

// readDocument reads the only document of the file.
func (r *reader) readDocument(kind Kind) {
	limits := canon.Limits{MaxDocument: MaxConfig, MaxIrregular: MaxConfig, MaxDepth: 20}
	split := canon.NewSplitter(bytes.NewReader(r.set.Text), limits)
	doc, err := split.Next()
	if doc.Line > 0 {
		r.first = doc.Line - 1
	}
	if errors.Is(err, io.EOF) {
		r.wrong(canon.Place{}, "", "the file is empty", "a "+string(kind)+" is wanted")
		return
	}
	if err != nil {
		r.syntax(err)
		return
	}
	doc.Data = bytes.Clone(doc.Data)
	conv := canon.Converter{Limits: limits, Warn: func(line int, msg string) {
		r.problems.Add(Problem{Place: problem.Place{File: r.file, Line: line + r.first, Column: 1},
			Text: strings.TrimSuffix(msg, ": the last one counts"), Err: fault.ErrInvalid})
	}}
	plain, err := conv.Append(nil, doc)
	if err != nil {
		r.syntax(err)
		return
	}
	if _, err := split.Next(); !errors.Is(err, io.EOF) {
		r.wrong(canon.Place{}, "", "the file has more than one document", "one file is one configuration")
		return
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(plain))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		r.syntax(err)
		return
	}
	root := canon.NewLocator(doc.Data, doc.JSON).Root()
	top, ok := v.(map[string]any)
	if !ok {
		r.wrong(root, "", "not an object", "a "+string(kind)+" is wanted")
		return
	}
	r.readTop(plain, top, root, kind)
}

// readTop reads the outermost object; doc is its text as canonical JSON.
func (r *reader) readTop(doc []byte, v map[string]any, at canon.Place, kind Kind) {
	other, s := Delete, imageShape
	if kind == Delete {
		other, s = Image, deleteShape
	}
	_, isText := v["kind"].(string)
	switch got := v["kind"]; {
	case got == nil || got == "":
		r.wrong(at, "kind", "missing kind", "kind: "+string(kind))
	case isText && got != string(kind):
		r.wrong(at.In("kind"), "kind", fmt.Sprintf("%s is not %s", fault.Quote(fmt.Sprint(got)), kind), "")
		if got == string(other) {
			return // the fields are those of the other kind
		}
	}
	r.conform(doc, v, s, at)
	o := node{r: r, fields: v, at: at}
	r.checkVersion(o)
	if size, ok := v["archiveSize"].(json.Number); ok {
		r.set.ArchiveSize, _ = size.Int64() // conform has tried it
		if r.set.ArchiveSize < 0 {
			r.unless(r.options.Compat, at.In("archiveSize"), "archiveSize", "less than 0", "0 stands for 500 GiB")
		}
	}
	if _, there := v[other.stanza()]; there {
		r.wrong(at.Key(other.stanza()), other.stanza(), "not allowed in "+string(kind), "it belongs in "+string(other))
	}
	stanza, ok := o.object(kind.stanza())
	if !ok {
		if v[kind.stanza()] == nil {
			r.wrong(at, kind.stanza(), "missing", "what is to be mirrored stands below it")
		}
		return
	}
	r.readImages(stanza)
}

// checkVersion checks the apiVersion. oc-mirror does not look at it.
func (r *reader) checkVersion(o node) {
	const v1alpha2 = "mirror.openshift.io/v1alpha2"
	r.set.APIVersion = o.text("apiVersion")
	switch r.set.APIVersion {
	case APIVersion, "":
	case v1alpha2:
		r.warn(o.at.In("apiVersion"), "apiVersion", "the fields are read as those of "+APIVersion, "write that version")
	default:
		r.unless(r.options.Compat, o.at.In("apiVersion"), "apiVersion",
			"unknown version "+fault.Quote(r.set.APIVersion), "write "+APIVersion)
	}
}

// unless adds a problem, or a warning if it is accepted.
func (r *reader) unless(accepted bool, at canon.Place, field, what, fix string) {
	if accepted {
		r.warn(at, field, what, fix)
		return
	}
	r.wrong(at, field, what, fix)
}
