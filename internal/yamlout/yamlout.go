// Package yamlout writes JSON values as YAML in the bytes that sigs.k8s.io/yaml gives, with one improvement: numbers
// keep the text that they have in the JSON.
package yamlout

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	yaml "sigs.k8s.io/yaml/goyaml.v2"
)

// AppendYAML appends the YAML of one JSON value. Keys are sorted as sigs.k8s.io/yaml sorts them.
func AppendYAML(dst, src []byte) ([]byte, error) {
	d := decoder{dec: jsontext.NewDecoder(bytes.NewReader(src), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	v, err := d.value()
	if err != nil {
		return dst, err
	}
	out, err := yaml.Marshal(v)
	if err != nil {
		return dst, err
	}
	for i, text := range d.numbers {
		out = bytes.Replace(out, []byte(placeholder(i)), []byte(text), 1)
	}
	return append(dst, out...), nil
}

// placeholder stands for a number that YAML's encoder would write with another text. It is a plain scalar of 20 bytes
// that no catalog has by accident and that needs no quotes.
func placeholder(i int) string { return fmt.Sprintf("\u0192number\u0192%09d\u0192", i) }

type decoder struct {
	dec     *jsontext.Decoder
	numbers []string
}

func (d *decoder) value() (any, error) {
	tok, err := d.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return tok.Bool(), nil
	case '"':
		return tok.String(), nil
	case '0':
		return d.number(tok.String()), nil
	case '{':
		m := map[string]any{}
		for d.dec.PeekKind() != '}' {
			key, err := d.dec.ReadToken()
			if err != nil {
				return nil, err
			}
			name := key.String()
			if m[name], err = d.value(); err != nil {
				return nil, err
			}
		}
		_, err = d.dec.ReadToken()
		return m, err
	case '[':
		a := []any{}
		for d.dec.PeekKind() != ']' {
			v, err := d.value()
			if err != nil {
				return nil, err
			}
			a = append(a, v)
		}
		_, err = d.dec.ReadToken()
		return a, err
	}
	return nil, fmt.Errorf("unexpected JSON token %v", tok)
}

// number returns a value that the encoder writes with the very text of the number.
func (d *decoder) number(text string) any {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(i, 10) == text {
		return i
	}
	d.numbers = append(d.numbers, text)
	return placeholder(len(d.numbers) - 1)
}
