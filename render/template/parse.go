package template

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/nearest"
	"github.com/operator-bindery/bindery/internal/problem"
	"github.com/operator-bindery/bindery/internal/shape"
)

// Limits bound a template. A zero field means its default.
type Limits struct {
	// MaxSize is the maximum size of the document in bytes; 32 MiB by default, which whole catalogs seldom exceed.
	MaxSize int
	// MaxDepth is the maximum nesting; 100 by default.
	MaxDepth int
	// MaxItems is the maximum number of items of each list; 200,000 by default.
	MaxItems int
	// MaxImages is the maximum number of images; 20,000 by default.
	MaxImages int
}

func (l Limits) withDefaults() Limits {
	l.MaxSize = cmp.Or(max(l.MaxSize, 0), 32<<20)
	l.MaxItems = cmp.Or(max(l.MaxItems, 0), 200_000)
	l.MaxImages = cmp.Or(max(l.MaxImages, 0), 20_000)
	return l
}

// ParseOptions configure [ParseOptions.Parse].
type ParseOptions struct {
	// Type is the required type of the template; empty means that its schema decides.
	Type Type
	// Name is the name of the input in positions; empty means that problems have no position.
	Name   string
	Limits Limits
	// Compat accepts what opm ignores: unknown fields of basic and substitutes templates, repeated keys, and documents
	// after the first. Warn is called for them then; otherwise they are problems.
	Compat bool
	// Warn, unless nil, is called for accepted but probably unintended input.
	Warn func(declcfg.Position, string)
}

// Template is a parsed, well-formed template. It may be rendered repeatedly, also concurrently.
type Template struct {
	typ    Type
	source *source
	body   body
}

// body is the content of a template of one type.
type body interface {
	// images returns the images that the template names, in order, with duplicates.
	images() []imageRef
	// assemble builds the catalog. Problems are added to the run.
	assemble(*run) *declcfg.Catalog
}

// imageRef is a place in the template that names an image.
type imageRef struct {
	image string
	path  []any
	opm   string // opm's text before the error of rendering it
}

// Parse reads a template: one document, YAML or JSON. Keys are found whatever their case, as "Schema" is. The error is
// an *[Error] with every problem of the document, an error of r, or ctx's.
func (o ParseOptions) Parse(ctx context.Context, r io.Reader) (*Template, error) {
	o.Limits = o.Limits.withDefaults()
	p := parser{options: o, report: report{source: &source{name: o.Name, line: 1}, prefix: "rendering template: "}}
	if o.Type == "" {
		p.prefix = "auto-detecting template type: "
	} else if _, err := ParseType(string(o.Type)); err != nil {
		return nil, err
	}
	root, err := p.read(ctxio.Reader{Ctx: ctx, R: r})
	if err != nil {
		return nil, err
	}
	t := &Template{typ: o.Type, source: p.source}
	if root.kind() != shape.Mapping {
		p.add(nil, "decoding template input: ", "the template is %s, not %s", root.kind(), shape.Mapping)
		return nil, p.err()
	}
	fields := root.members()
	schema, err := p.schema(fields)
	if err != nil {
		return nil, err
	}
	if t.typ == "" {
		if t.typ, err = typeOf(schema); err != nil {
			p.addSchema(lookupPath(fields, "schema"), "", "%v", err)
			return nil, p.err()
		}
	}
	p.prefix = "rendering template: "
	p.judge(t.typ)
	if t.typ != Semver || !o.Compat { // opm refuses it in a template of this type alone
		fields = p.withoutSchema(fields)
	}
	switch t.typ {
	case Basic:
		t.body = p.basic(fields, schema)
	case Semver:
		t.body = p.semver(fields, schema)
	case Substitutes:
		t.body = p.substitutes(fields, schema)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	if refs := t.body.images(); len(refs) > o.Limits.MaxImages {
		message := fmt.Sprintf("the template names more images than %d", o.Limits.MaxImages)
		p.addProblem(reported{Problem{Text: message, Err: declcfg.ErrLimit}, refs[o.Limits.MaxImages].path, message})
		return nil, p.err()
	}
	return t, ctx.Err()
}

// withoutSchema removes the field that names the schema of the file for editors.
func (p *parser) withoutSchema(fields []member) []member {
	return slices.DeleteFunc(fields, func(m member) bool {
		return m.key == "$schema" && p.want(shape.String, "", m.node)
	})
}

// parser reads one template.
type parser struct {
	report
	options  ParseOptions
	oddities []oddity
	warned   int
}

// unknownField reports a field that opm ignores.
func (p *parser) unknownField(m member, known []field, where string) {
	p.lenient(m.path, "unknown field %q%s%s", fault.Short(m.key), where, suggestion(m, known))
}

func suggestion(m member, known []field) string {
	names := make([]string, len(known))
	for i, f := range known {
		names[i] = f.name
	}
	if near, ok := nearest.Name(m.key, names); ok {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	return ""
}

// lenient reports what opm ignores.
func (p *parser) lenient(path []any, format string, args ...any) {
	if !p.options.Compat {
		p.add(path, "", format, args...)
		return
	}
	if p.warned++; p.warned <= problem.Most {
		p.warn(p.positionOf(path), fmt.Sprintf(format, args...))
	}
}

func (p *parser) warn(at declcfg.Position, message string) {
	if p.options.Warn != nil {
		p.options.Warn(at, message)
	}
}

func (p *parser) read(r io.Reader) (node, error) {
	limits := canon.Limits{MaxDocument: p.options.Limits.MaxSize, MaxDepth: p.options.Limits.MaxDepth}
	split := canon.NewSplitter(r, limits)
	doc, err := split.Next()
	if errors.Is(err, io.EOF) {
		p.addProblem(reported{Problem: Problem{Text: "the template is empty"}, opm: "decoding template input: EOF"})
		return node{}, p.err()
	}
	if err != nil {
		return node{}, p.readError(doc.Line, err)
	}
	*p.source = source{name: p.options.Name, line: doc.Line, data: bytes.Clone(doc.Data), isJSON: doc.JSON}
	doc.Data = p.source.data
	conv := canon.Converter{Limits: limits, Warn: func(line int, message string) {
		p.oddities = append(p.oddities, oddity{doc.Line + line - 1, message})
	}}
	raw, err := conv.Append(nil, doc)
	if err != nil {
		return node{}, p.readError(doc.Line, err)
	}
	more, err := split.Next()
	switch {
	case errors.Is(err, io.EOF):
	case err == nil, isContent(err):
		p.oddities = append(p.oddities,
			oddity{max(more.Line, 1), "the text after the first document is no part of the template"})
	default:
		return node{}, err
	}
	return node{raw: json.RawMessage(raw)}, nil
}

// oddity is something odd that a document reader accepts.
type oddity struct {
	line    int
	message string
}

// judge decides about oddities of the document. opm refuses repeated keys in templates of type Semver.
func (p *parser) judge(t Type) {
	for _, o := range p.oddities {
		at := declcfg.Position{File: p.source.name, Line: o.line}
		if p.options.Compat && !(t == Semver && strings.HasPrefix(o.message, "duplicate key")) {
			p.warn(at, o.message)
			continue
		}
		at.File = ""
		p.addProblem(reported{Problem: Problem{Text: o.message, Place: at}, opm: opmRead + o.message})
	}
}

// readError returns the error of reading a document: a problem of the template unless the reader failed.
func (p *parser) readError(line int, err error) error {
	if !isContent(err) {
		return err
	}
	p.addProblem(syntaxProblem(line, err))
	return p.err()
}

// isContent reports whether an error is about the content, not about reading it.
func isContent(err error) bool {
	var syntax *canon.SyntaxError
	var limit *canon.LimitError
	return errors.As(err, &syntax) || errors.As(err, &limit)
}

// schema returns the root field with the template's schema.
func (p *parser) schema(fields []member) (string, error) {
	found := lookup(fields, "schema")
	schema := ""
	for i, f := range found {
		switch {
		case i > 0:
			p.add(f.path, "decoding template input: ", "duplicate keys for key %q", "schema")
		case f.kind() == shape.String:
			schema = f.str()
		case f.kind() != shape.Null:
			p.add(f.path, "decoding template input: ", "expected value for key %q to be a string, got %s", "schema",
				f.kind())
		}
	}
	if p.options.Type != "" {
		return schema, nil
	}
	if schema == "" && (len(found) == 0 || found[0].isZero()) {
		p.add(nil, "", "template input missing required 'schema' field")
	}
	if schema == "" || len(found) > 1 {
		return "", p.err()
	}
	return schema, nil
}

// field is a known field of an object with the function that takes its value.
type field struct {
	name string
	take func(node)
}

// object passes the values of an object's fields to their functions, ignoring the case of names; null counts as absent.
// Unknown fields are passed to unknown. Repeated names are reported.
func (p *parser) object(opm string, members []member, known []field, unknown func(member, []field)) {
	seen := map[string]bool{}
	for _, m := range members {
		i := slices.IndexFunc(known, func(f field) bool { return strings.EqualFold(m.key, f.name) })
		switch {
		case i < 0:
			unknown(m, known)
		case seen[known[i].name]:
			p.add(m.path, opm, "duplicate keys for key %q", known[i].name)
		default:
			seen[known[i].name] = true
			if m.kind() != shape.Null {
				known[i].take(m.node)
			}
		}
	}
}

// items returns those of a list, unless it exceeds the limit.
func (p *parser) items(opm string, list node) []node {
	if !p.want(shape.Array, opm, list) {
		return nil
	}
	items, ok := list.items(p.options.Limits.MaxItems)
	if !ok {
		message := fmt.Sprintf("%s has more items than %d", canon.PathName(list.path), p.options.Limits.MaxItems)
		p.addProblem(reported{Problem{Text: message, Err: declcfg.ErrLimit}, list.path, opm + message})
	}
	return items
}

// want adds a problem if a value is not of the required kind, and reports whether it is.
func (p *parser) want(kind shape.Kind, opm string, n node) bool {
	if n.kind() == kind {
		return true
	}
	p.add(n.path, opm, "%s", shape.Fault{Path: n.path, Got: n.kind(), Want: kind, Written: cmp.Or(n.str(), string(n.raw))})
	return false
}
