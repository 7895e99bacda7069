package template

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/indented"
	"github.com/operator-bindery/bindery/internal/yamlout"
)

// ConvertOptions configure [ConvertOptions.Convert].
type ConvertOptions struct {
	// Type is Basic or Substitutes.
	Type   Type
	Format declcfg.Format
	// Warn, unless nil, is called for content that rendering the template will not restore.
	Warn func(declcfg.Position, string)
}

// Convert writes a template that renders to the catalog: a basic template has an image in place of each bundle, a
// substitutes template has all blobs and an empty list of substitutions. Blobs are in the order of
// [declcfg.Catalog.Blobs]. Content that the template cannot represent is an *[Error] with every problem, and nothing is
// written: bundles without an image in a basic template, and blobs that belong to no package.
func (o ConvertOptions) Convert(w io.Writer, c *declcfg.Catalog) error {
	if o.Type != Basic && o.Type != Substitutes {
		return fmt.Errorf("a catalog cannot be converted to a template of type %q, only to one of %v", o.Type,
			[]Type{Basic, Substitutes})
	}
	if _, err := declcfg.ParseFormat(string(o.Format)); err != nil {
		return err
	}
	if err := convertible(c, o); err != nil {
		return err
	}
	var doc bytes.Buffer
	fmt.Fprintf(&doc, `{"schema":%q,"entries":[`, o.Type.schema())
	first := true
	for b := range c.Blobs() {
		if !first {
			doc.WriteByte(',')
		}
		first = false
		if bundle, ok := b.(*declcfg.Bundle); ok && o.Type == Basic {
			b = &declcfg.Bundle{Image: bundle.Image}
		}
		doc.Write(declcfg.AppendJSON(nil, b, false))
	}
	doc.WriteByte(']')
	if o.Type == Substitutes {
		doc.WriteString(`,"substitutions":[]`)
	}
	doc.WriteByte('}')
	out, err := formatted(doc.Bytes(), o.Format)
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}

// formatted returns a template in a format. What [ParseOptions.Parse] would refuse for its size or depth is an error,
// as is a document that indentation makes too long.
func formatted(doc []byte, f declcfg.Format) (out []byte, err error) {
	limits := Limits{}.withDefaults()
	most := min(limits.MaxSize, indented.Most(len(doc)))
	ok := true
	if f == declcfg.FormatYAML {
		out, ok, err = yamlout.Append([]byte("---\n"), doc, most)
	} else if out, ok = indented.Append(nil, doc, "    ", 0, most); ok {
		out = append(out, '\n')
	}
	if err == nil && !ok {
		err = indented.Error(most)
	}
	if err != nil {
		return nil, fmt.Errorf("the template: %w", err)
	}
	readable := canon.Limits{MaxDocument: limits.MaxSize, MaxDepth: limits.MaxDepth}
	if _, err := canon.AppendJSON(nil, doc, readable, nil); err != nil {
		return nil, fmt.Errorf("the template: %w: it could not be read again: %w", declcfg.ErrLimit, err)
	}
	return out, nil
}

// convertible checks that a template can represent the whole catalog.
func convertible(c *declcfg.Catalog, o ConvertOptions) error {
	e := &Error{}
	refuse := func(at declcfg.Position, format string, args ...any) {
		e.Problems = append(e.Problems, Problem{Place: at, Text: fmt.Sprintf(format, args...)})
	}
	for i := range c.Packages {
		if p := &c.Packages[i]; p.Name == "" {
			refuse(p.Pos, "the package has no name")
		}
	}
	for i := range c.Channels {
		if b := &c.Channels[i]; b.Package == "" {
			refuse(b.Pos, "channel %q has no package", b.Name)
		}
	}
	for i := range c.Deprecations {
		if b := &c.Deprecations[i]; b.Package == "" {
			refuse(b.Pos, "the deprecations have no package")
		}
	}
	for i := range c.Bundles {
		b := &c.Bundles[i]
		switch {
		case b.Package == "":
			refuse(b.Pos, "bundle %q has no package", b.Name)
		case b.Image == "" && o.Type == Basic:
			refuse(b.Pos, "bundle %q has no image: a basic template has nothing else of a bundle", b.Name)
		case len(b.Unknown) > 0 && o.Type == Basic && o.Warn != nil:
			names := make([]string, len(b.Unknown))
			for i, f := range b.Unknown {
				names[i] = fault.Short(f.Name)
			}
			o.Warn(b.Pos,
				fmt.Sprintf("bundle %q has fields that its image will not bring back: %s", b.Name,
					strings.Join(names, ", ")))
		}
	}
	if len(e.Problems) == 0 {
		return nil
	}
	slices.SortStableFunc(e.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), a.Compare(b.Place))
	})
	e.opm = e.Error()
	return e
}
