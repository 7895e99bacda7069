package declcfg

import (
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
	"github.com/operator-bindery/bindery/internal/shape"
)

// opmReading is what opm says before an error of reading a document.
const opmReading = "error unmarshaling JSON: while decoding JSON: "

// blobShape is the shape of a blob of any schema.
var blobShape = shape.Open(shape.Texts("schema", "package", "name"))

// typeError is an error about the kinds of values in a blob.
type typeError struct {
	meta   *Meta         // what is known of the blob; may be nil
	opm    string        // opm's message
	faults []shape.Fault // at most [problem.Most]
	texts  []string      // of faults without a place
}

// faultsOf returns the values of a document that have another kind than its schema has.
func faultsOf(s *shape.Shape, doc []byte) (faults []shape.Fault) {
	s.Check(doc, func(f shape.Fault) {
		if len(faults) < problem.Most {
			faults = append(faults, f)
		}
	})
	return faults
}

func (e *typeError) Error() string {
	var texts []string
	for _, f := range e.faults {
		texts = append(texts, e.about(f.String()))
	}
	for _, text := range e.texts {
		texts = append(texts, e.about(text))
	}
	return strings.Join(texts, "\n")
}

// about puts the name of the blob before a text about it.
func (e *typeError) about(text string) string {
	if e.meta == nil || e.meta.Schema == "" {
		return text
	}
	if e.meta.Name == "" {
		return fault.Short(e.meta.Schema) + ": " + text
	}
	return fmt.Sprintf("%s %s: %s", fault.Short(e.meta.Schema), fault.Quote(e.meta.Name), text)
}

// problems returns one problem for each fault of a document that starts at a position. left is how many bytes may still
// be read to find places.
func (e *typeError) problems(at Position, doc canon.Doc, left *int) (list []Problem) {
	first := Problem{Position: at, Rule: RuleSyntax, opm: fault.Clip(e.opm, maxMessage)}
	if e.meta != nil {
		first.Package = packageOf(e.meta)
		switch e.meta.Schema {
		case SchemaChannel:
			first.Channel = e.meta.Name
		case SchemaBundle:
			first.Bundle = e.meta.Name
		}
	}
	var values *canon.Locator
	cost := max(len(doc.Data), maxLocated/1000) // a thousand places are enough
	if *left -= cost; *left > 0 {
		values = canon.NewLocator(doc.Data, doc.JSON)
	}
	faults := e.faults
	if values == nil && len(faults) > 1 {
		faults = faults[:1] // the others would only be counted
	}
	for _, f := range faults {
		p := first
		p.Message, p.path = fault.Clip(e.about(f.String()), maxMessage), f.Path
		if doc.JSON { // Place reads JSON from the start for every place
			*left -= cost
		}
		if values != nil && *left > 0 {
			if line, column, ok := values.Place(f.Path...); ok {
				p.Position.Line, p.Position.Column = at.Line+line-1, column
			}
		}
		list = append(list, p)
	}
	for _, text := range e.texts {
		p := first
		p.Message = fault.Clip(e.about(text), maxMessage)
		list = append(list, p)
	}
	return list
}
