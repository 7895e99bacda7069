package program

import (
	"fmt"
	"io"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/indented"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/yamlout"
)

// PrintValue prints an answer as JSON, or as YAML with the same fields, without credentials. An answer with deeply nested
// content from outside is refused before indentation makes it many times as long.
func (p *Program) PrintValue(format Format, v any) error {
	return p.printEncoded(format, v, redact.JSON)
}

// PrintContent prints what a user gave, in another form, as JSON: nothing is removed.
func (p *Program) PrintContent(v any) error {
	return p.printEncoded(JSON, v, func(text []byte) []byte { return text })
}

func (p *Program) printEncoded(format Format, v any, clean func([]byte) []byte) error {
	cleaned := func(text []byte) []byte { return printable.JSON(clean(text)) }
	answer := func(err error) error {
		if err != nil {
			return fmt.Errorf("the answer: %w", err)
		}
		return nil
	}
	if format != YAML {
		return p.writeWhole(func(w io.Writer) error { return answer(writeJSON(w, v, "    ", canon.Encode, cleaned)) })
	}
	text, err := indented.Encode(v, "    ")
	if err == nil {
		text, err = yamlout.AppendYAML(nil, cleaned(text))
	}
	if err != nil {
		return answer(err)
	}
	_, err = p.Stdout.Write(text)
	return err
}
