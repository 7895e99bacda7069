// Package yamlout writes JSON values as YAML with the same bytes as sigs.k8s.io/yaml, except that numbers keep their
// text.
package yamlout

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	yaml "sigs.k8s.io/yaml/goyaml.v2"
)

// AppendYAML appends the YAML of one JSON value. Keys are sorted as sigs.k8s.io/yaml sorts them.
func AppendYAML(dst, src []byte) ([]byte, error) {
	d := decoder{dec: jsontext.NewDecoder(bytes.NewReader(src), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))}
	v, err := d.value()
	if err != nil {
		return dst, err
	}
	out, err := yaml.Marshal(v)
	if err != nil {
		return dst, err
	}
	return d.fill(dst, out)
}

// fill appends out to dst and replaces the placeholders by numbers.
func (d *decoder) fill(dst, out []byte) ([]byte, error) {
	if len(d.numbers) == 0 {
		return append(dst, out...), nil
	}
	for left := len(d.numbers); left > 0; left-- {
		before, rest, found := bytes.Cut(out, []byte(d.mark))
		if !found || len(rest) < placeDigits {
			return dst, fmt.Errorf("a number was lost")
		}
		i, err := strconv.Atoi(string(rest[:placeDigits]))
		if err != nil || i >= len(d.numbers) {
			return dst, fmt.Errorf("a number was lost")
		}
		dst = append(append(dst, before...), d.numbers[i]...)
		out = rest[placeDigits:]
	}
	return append(dst, out...), nil
}

// A placeholder replaces a number that YAML's encoder would write differently: a random mark and the number's index. It
// is a plain scalar that needs no quotes and is too short to be folded. Each document gets a new mark, so that no input
// can contain a placeholder.
const placeDigits = 9

func (d *decoder) placeholder(i int) string {
	if d.mark == "" {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails, according to its documentation
		d.mark = "\u0192" + hex.EncodeToString(b[:]) + "\u0192"
	}
	return fmt.Sprintf("%s%0*d", d.mark, placeDigits, i)
}

type decoder struct {
	dec     *jsontext.Decoder
	numbers []string
	mark    string
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

// number returns a value that the encoder writes with the number's original text.
func (d *decoder) number(text string) any {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(i, 10) == text {
		return i
	}
	d.numbers = append(d.numbers, text)
	return d.placeholder(len(d.numbers) - 1)
}
