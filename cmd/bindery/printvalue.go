package main

import (
	"bytes"
	"encoding/json"

	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/yamlout"
)

// printJSON prints an answer as JSON.
func (p *program) printJSON(v any) error { return p.printValue("json", v) }

// printValue prints an answer as JSON, or as YAML with the same fields.
func (p *program) printValue(format string, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "    ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	text := printable.JSON(b.Bytes())
	if format == "yaml" {
		var err error
		if text, err = yamlout.AppendYAML(nil, text); err != nil {
			return err
		}
	}
	_, err := p.stdout.Write(text)
	return err
}
