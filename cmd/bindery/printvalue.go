package main

import (
	"bytes"
	"encoding/json"

	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/yamlout"
)

// printJSON prints an answer as JSON.
func (p *program) printJSON(v any) error { return p.printValue("json", v) }

// printValue prints an answer as JSON, or as YAML with the same fields, without credentials.
func (p *program) printValue(format string, v any) error {
	return p.printEncoded(format, v, redact.JSON)
}

// printContent prints what a user gave, in another form, as JSON: nothing is removed.
func (p *program) printContent(v any) error {
	return p.printEncoded("json", v, func(text []byte) []byte { return text })
}

func (p *program) printEncoded(format string, v any, clean func([]byte) []byte) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "    ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	text := printable.JSON(clean(b.Bytes()))
	if format == "yaml" {
		var err error
		if text, err = yamlout.AppendYAML(nil, text); err != nil {
			return err
		}
	}
	_, err := p.stdout.Write(text)
	return err
}
