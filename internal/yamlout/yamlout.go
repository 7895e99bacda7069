// Package yamlout writes JSON values as YAML with the same bytes as sigs.k8s.io/yaml, except that numbers keep their
// text, and that what indentation makes of a value is bounded (package indented).
package yamlout

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	yaml "sigs.k8s.io/yaml/goyaml.v2"

	"github.com/operator-bindery/bindery/internal/indented"
)

// AppendYAML appends the YAML of one JSON value, which is as long as [indented.Most] allows at most. Keys are sorted as
// sigs.k8s.io/yaml sorts them.
func AppendYAML(dst, src []byte) ([]byte, error) { return AppendWithin(dst, src, &indented.Budget{}) }

// AppendWithin is like [AppendYAML], for one of several values that have a budget together.
func AppendWithin(dst, src []byte, b *indented.Budget) ([]byte, error) {
	most := b.Most(len(src))
	out, ok, err := Append(dst, src, most)
	switch {
	case err != nil:
		return dst, err
	case !ok:
		return dst, indented.Error(most)
	}
	return out, b.Add(len(src), len(out)-len(dst))
}

// Append is like [AppendYAML] with a limit: a value whose YAML has more than most bytes is not ok, and dst is
// unchanged.
func Append(dst, src []byte, most int) (_ []byte, ok bool, _ error) {
	d := decoder{src: src, most: most, dec: jsontext.NewDecoder(bytes.NewReader(src), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))}
	v, err := d.value(0, false)
	if err != nil {
		return dst, !errors.Is(err, errLong), unlessLong(err)
	}
	out := &bounded{most: most + len(d.mark)*d.numbers}
	enc := yaml.NewEncoder(out)
	if err = enc.Encode(v); err == nil {
		err = enc.Close()
	}
	switch {
	case out.long:
		return dst, false, nil
	case err != nil:
		return dst, false, err
	}
	end := len(dst)
	if dst = d.fill(dst, out.text); len(dst)-end > most {
		return dst[:end], false, nil
	}
	return dst, true, nil
}

// errLong ends the reading of a value whose YAML is too long.
var errLong = errors.New("the YAML is too long")

func unlessLong(err error) error {
	if errors.Is(err, errLong) {
		return nil
	}
	return err
}

// bounded collects a text up to a length.
type bounded struct {
	text []byte
	most int
	long bool
}

func (b *bounded) Write(text []byte) (int, error) {
	if len(b.text)+len(text) > b.most {
		b.long = true
		return 0, errLong
	}
	b.text = append(b.text, text...)
	return len(text), nil
}

// fill appends the encoder's output to dst, with the numbers in place of the marks.
func (d *decoder) fill(dst, out []byte) []byte {
	for _, n := range d.inOrder {
		before, rest, _ := bytes.Cut(out, d.mark)
		dst = append(append(dst, before...), d.src[n.at:n.at+n.length]...)
		out = rest
	}
	return append(dst, out...)
}

// decoder reads a value for YAML's encoder.
type decoder struct {
	dec     *jsontext.Decoder
	src     []byte
	most    int
	written int // what the YAML of the values read so far has at least

	mark    []byte    // see [number]
	numbers int       // how many there are
	inOrder []*number // the numbers that the encoder has asked for
}

// number is a number that YAML's encoder would write differently. The encoder asks for its text in the order of the
// output and gets a mark, which is replaced by the number afterwards. A mark is a plain scalar that needs no quotes and
// is too short to be folded. It is random, so that no input can contain it.
type number struct {
	d          *decoder
	at, length uint32 // in the source
}

// MarshalYAML is called by the encoder.
func (n *number) MarshalYAML() (any, error) {
	n.d.inOrder = append(n.d.inOrder, n)
	return string(n.d.mark), nil
}

// need adds to the length that the output has at least, so that no tree is built of a value that is too long.
func (d *decoder) need(n int) error {
	if d.written += n; d.written > d.most {
		return errLong
	}
	return nil
}

// value reads a value whose lines are indented by indent blanks, as an item of a list or not.
func (d *decoder) value(indent int, item bool) (any, error) {
	tok, err := d.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case 'n':
		return nil, d.need(len("null"))
	case 't', 'f':
		return tok.Bool(), d.need(len("true"))
	case '"':
		s := tok.String()
		return s, d.need(len(s))
	case '0':
		return d.number(tok.String())
	case '{':
		m := map[string]any{}
		for first := item; d.dec.PeekKind() != '}'; first = false {
			key, err := d.dec.ReadToken()
			if err != nil {
				return nil, err
			}
			name := key.String()
			if err := d.line(len(name)+len(":\n"), indent, first); err != nil {
				return nil, err
			}
			if m[name], err = d.value(indent+2, false); err != nil {
				return nil, err
			}
		}
		_, err = d.dec.ReadToken()
		return m, err
	case '[':
		if !item {
			indent = max(0, indent-2) // a list is not indented in an object
		}
		a := []any{}
		for first := item; d.dec.PeekKind() != ']'; first = false {
			if err := d.line(len("- "), indent, first); err != nil {
				return nil, err
			}
			v, err := d.value(indent+2, true)
			if err != nil {
				return nil, err
			}
			a = append(a, v)
		}
		_, err = d.dec.ReadToken()
		return a, err
	}
	return nil, errors.New("unexpected JSON token " + tok.String())
}

// line adds a line of n bytes and its indentation, which the first line of an item does not have.
func (d *decoder) line(n, indent int, first bool) error {
	if !first {
		n += indent
	}
	return d.need(n)
}

// number returns a value that the encoder writes with the number's original text.
func (d *decoder) number(text string) (any, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(i, 10) == text {
		return i, d.need(len(text))
	}
	if d.mark == nil {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails, according to its documentation
		d.mark = append([]byte("\u0192"), hex.EncodeToString(b[:])...)
	}
	d.numbers++
	return &number{d, uint32(d.dec.InputOffset()) - uint32(len(text)), uint32(len(text))}, d.need(len(text))
}
