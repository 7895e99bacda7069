package declcfg

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"

	"github.com/operator-bindery/bindery/internal/indented"
)

// Format is the file format of a catalog.
type Format string

// The formats of a catalog. FormatJSON is a sequence of objects, each indented by four spaces and followed by a
// newline; FormatYAML is a sequence of documents, each after a "---" line, with sorted keys. FormatNDJSON has one
// compact JSON object per line, for streams that scripts read; every reader of FormatJSON accepts it.
const (
	FormatJSON   Format = "json"
	FormatYAML   Format = "yaml"
	FormatNDJSON Format = "ndjson"
)

// ParseFormat parses the value of an --output flag for the format of a catalog's files: JSON or YAML.
func ParseFormat(s string) (Format, error) {
	switch f := Format(s); f {
	case FormatJSON, FormatYAML:
		return f, nil
	}
	return "", fmt.Errorf("invalid output format %q: expected %q or %q", s, FormatJSON, FormatYAML)
}

// Extension is the file name extension of the format, without a dot.
func (f Format) Extension() string { return string(f) }

// Encoder writes blobs one after another, in JSON and YAML with the same bytes as opm. It writes nothing that the
// defaults of [Limits] refuse, and bounds what indentation adds to all of its output: ten times the compact JSON and
// 1 MiB. It is not safe for concurrent use. It keeps one buffer of the size of the largest blob written.
type Encoder struct {
	w      io.Writer
	format Format
	buf    []byte
	texts  Texts
}

// NewEncoder returns an encoder that writes to w.
func (f Format) NewEncoder(w io.Writer) *Encoder {
	return &Encoder{w: w, format: f}
}

// Encode writes one blob with a single Write. The error of a blob whose text would be too long, too deep or otherwise
// refused by readers is of the class [ErrLimit] and names the blob.
func (e *Encoder) Encode(b Blob) error {
	var err error
	if e.buf, err = e.texts.Append(e.buf[:0], b, e.format); err != nil {
		return err
	}
	_, err = e.w.Write(e.buf)
	return err
}

// AppendJSON appends a blob as one JSON object, its fields in the order of the specification: compact, or indented by
// four spaces. What is indented is not bounded: see [Encoder].
func AppendJSON(dst []byte, b Blob, indent bool) []byte {
	w := objectWriter{buf: dst, most: math.MaxInt}
	if indent {
		w.unit = indentUnit
	}
	w.blob(b)
	return w.buf
}

// MarshalJSON returns the compact JSON of the blob.
func (p *Package) MarshalJSON() ([]byte, error) { return AppendJSON(nil, p, false), nil }

// MarshalJSON returns the compact JSON of the blob.
func (c *Channel) MarshalJSON() ([]byte, error) { return AppendJSON(nil, c, false), nil }

// MarshalJSON returns the compact JSON of the blob.
func (b *Bundle) MarshalJSON() ([]byte, error) { return AppendJSON(nil, b, false), nil }

// MarshalJSON returns the compact JSON of the blob.
func (d *Deprecations) MarshalJSON() ([]byte, error) { return AppendJSON(nil, d, false), nil }

// MarshalJSON returns the blob's own JSON.
func (m *Meta) MarshalJSON() ([]byte, error) { return m.Blob, nil }

func (w *objectWriter) blob(b Blob) {
	switch b := b.(type) {
	case *Meta:
		w.value(b.Blob)
	case typedBlob:
		_, unknown := b.origin()
		w.object(schemaNamed(b.BlobSchema()).json, reflect.ValueOf(b).Elem(), b.BlobSchema(), *unknown)
	}
}

// objectWriter appends JSON to buf, compact or indented.
type objectWriter struct {
	buf     []byte
	depth   int
	unit    string // of indentation; empty for compact JSON
	started bool   // the innermost object or array has an element already

	start int  // of the text in buf
	most  int  // bytes of the text
	long  bool // the text has more bytes than most; what is in buf is useless
}

func (w *objectWriter) open(c byte) {
	w.buf = append(w.buf, c)
	w.depth++
	w.started = false
}

func (w *objectWriter) close(c byte) {
	w.depth--
	if w.started {
		w.newline()
	}
	w.buf = append(w.buf, c)
	w.started = true
}

// element starts an element of an array or a member of an object.
func (w *objectWriter) element() {
	if w.started {
		w.buf = append(w.buf, ',')
	}
	w.newline()
	w.started = true
}

// newline starts a line of an indented text. A text that is too long is dropped.
func (w *objectWriter) newline() {
	if len(w.buf)-w.start > w.most {
		w.tooLong()
	}
	if w.unit != "" {
		w.buf = indented.Newline(w.buf, w.unit, w.depth)
	}
}

func (w *objectWriter) tooLong() { w.buf, w.long = w.buf[:w.start], true }

func (w *objectWriter) key(name string) { w.quotedKey(appendString(nil, name)) }

func (w *objectWriter) quotedKey(quoted []byte) {
	w.element()
	w.buf = append(w.buf, quoted...)
	w.buf = append(w.buf, ':')
	if w.unit != "" {
		w.buf = append(w.buf, ' ')
	}
}

func (w *objectWriter) value(v json.RawMessage) {
	switch {
	case v == nil:
		w.buf = append(w.buf, "null"...)
	case w.unit != "":
		ok := false
		if w.buf, ok = indented.Append(w.buf, v, w.unit, w.depth, w.most-(len(w.buf)-w.start)); !ok {
			w.tooLong()
		}
	default:
		w.buf = append(w.buf, v...)
	}
}
