package render

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// ImageTemplate generates the image reference of a bundle that has none, from .Package, .Name and .Version. It is safe
// for concurrent use.
type ImageTemplate struct{ t *template.Template }

// Limits of a template and its result, in bytes.
const (
	maxImageTemplate  = 16 << 10
	maxImageReference = 4096
)

// errReference is returned for a reference that is too long.
var errReference = fmt.Errorf("the reference is longer than %d bytes", maxImageReference)

// ParseImageTemplate parses a template of Go's text/template. The template's inputs come from bundles and it is
// executed for each of many, so its cost must be bounded: loops and nested templates, which no reference needs, are
// refused, and functions cannot return more than the maximum length of a reference.
func ParseImageTemplate(text string) (*ImageTemplate, error) {
	if len(text) > maxImageTemplate {
		return nil, fmt.Errorf("the template has %d bytes (limit %d)", len(text), maxImageTemplate)
	}
	t, err := template.New("image-ref-template").Option("missingkey=error").Funcs(template.FuncMap{
		"print":    func(args ...any) (string, error) { return short(fmt.Sprint, args) },
		"println":  func(args ...any) (string, error) { return short(fmt.Sprintln, args) },
		"html":     func(args ...any) (string, error) { return short(template.HTMLEscaper, args) },
		"js":       func(args ...any) (string, error) { return short(template.JSEscaper, args) },
		"urlquery": func(args ...any) (string, error) { return short(template.URLQueryEscaper, args) },
		"printf": func(format string, args ...any) (string, error) {
			if wide.MatchString(format) || len(format) > maxImageReference {
				return "", errReference
			}
			return short(func(args ...any) string { return fmt.Sprintf(format, args...) }, args)
		},
	}).Parse(text)
	if err != nil {
		return nil, err
	}
	if len(t.Templates()) > 1 {
		return nil, errors.New("templates in templates are not supported")
	}
	if t.Tree != nil && loops(t.Tree.Root) {
		return nil, errors.New("range and template are not supported")
	}
	return &ImageTemplate{t}, nil
}

// wide matches formats with a width or precision of more than four digits or given by an argument.
var wide = regexp.MustCompile(`%[^a-zA-Z%]*([0-9]{5}|\*)`)

// short calls a function and fails if its arguments or result are longer than a reference.
func short(f func(...any) string, args []any) (string, error) {
	if slices.ContainsFunc(args, func(a any) bool { s, ok := a.(string); return ok && len(s) > maxImageReference }) {
		return "", errReference
	}
	text := f(args...)
	if len(text) > maxImageReference {
		return "", errReference
	}
	return text, nil
}

// loops reports whether a node contains a loop or another template.
func loops(n parse.Node) bool {
	switch n := n.(type) {
	case *parse.RangeNode, *parse.TemplateNode:
		return true
	case *parse.ListNode:
		return n != nil && slices.ContainsFunc(n.Nodes, loops)
	case *parse.IfNode:
		return loops(n.List) || loops(n.ElseList)
	case *parse.WithNode:
		return loops(n.List) || loops(n.ElseList)
	}
	return false
}

// referenceText is a buffer limited to the maximum length of a reference.
type referenceText struct{ strings.Builder }

func (r *referenceText) Write(p []byte) (int, error) {
	if r.Len()+len(p) > maxImageReference {
		return 0, errReference
	}
	return r.Builder.Write(p)
}

// Execute returns the reference of a bundle.
func (t *ImageTemplate) Execute(pkg, name, version string) (string, error) {
	var text referenceText
	data := struct{ Package, Name, Version string }{pkg, name, version}
	if err := t.t.Execute(&text, data); err != nil {
		return "", fmt.Errorf("failed templating image reference from bundle: %w", err)
	}
	return text.String(), nil
}
