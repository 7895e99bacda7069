package declcfg

import (
	"fmt"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/indented"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/yamlout"
)

// Texts writes the texts of the blobs of one output. It is what [Encoder] writes, for callers with another indentation:
// together the texts are not much longer than their compact JSON, and each can be read again. The zero value is ready.
// It is not safe for concurrent use.
type Texts struct {
	budget  indented.Budget
	compact []byte // of the last blob
	items   int    // of the last blob
	again   []byte // scratch
	conv    canon.Converter
}

// Append appends a blob as it is in a stream of a format. Errors are those of [Encoder.Encode].
func (t *Texts) Append(dst []byte, b Blob, f Format) (_ []byte, err error) {
	switch f {
	case FormatJSON:
		dst, err = t.AppendJSON(dst, b, indentUnit)
	case FormatNDJSON:
		dst, err = t.AppendJSON(dst, b, "")
	case FormatYAML:
		dst, err = t.AppendYAML(append(dst, "---\n"...), b)
	default:
		return dst, fmt.Errorf("invalid output format %q", f)
	}
	if err != nil {
		at := ""
		if p := b.Position(); p.File != "" {
			at = p.String() + ": "
		}
		return dst, fmt.Errorf("%s%s %q: %w", at, fault.Short(b.BlobSchema()), fault.Short(b.BlobName()), err)
	}
	if f != FormatYAML {
		dst = append(dst, '\n')
	}
	return dst, nil
}

// AppendJSON appends the JSON of a blob, indented by unit unless that is empty. Errors are those of [Encoder.Encode]
// without the name of the blob.
func (t *Texts) AppendJSON(dst []byte, b Blob, unit string) ([]byte, error) {
	most, err := t.compacted(b)
	if err != nil {
		return dst, err
	}
	w := objectWriter{buf: dst, unit: unit, start: len(dst), most: most}
	if unit == "" {
		w.buf = append(dst, t.compact...)
	} else {
		w.blob(b)
	}
	text := w.buf[len(dst):]
	if w.long || len(text) > most {
		return dst, tooLong(most)
	}
	return w.buf, t.check(text, true)
}

// AppendYAML appends the YAML of a blob, without a separator. Errors are those of [Texts.AppendJSON].
func (t *Texts) AppendYAML(dst []byte, b Blob) ([]byte, error) {
	most, err := t.compacted(b)
	if err != nil {
		return dst, err
	}
	if t.items > maxYAML {
		return dst, fmt.Errorf("%w: as YAML, a document of more than %d items and members", ErrLimit, maxYAML)
	}
	out, ok, err := yamlout.Append(dst, t.compact, most)
	switch {
	case !ok:
		return dst, tooLong(most)
	case err != nil:
		return dst, fmt.Errorf("write YAML: %w", err)
	}
	return out, t.check(out[len(dst):], false)
}

// compacted makes the compact JSON of a blob and returns how many bytes its text may have.
func (t *Texts) compacted(b Blob) (most int, err error) {
	w := objectWriter{buf: t.compact[:0], most: defaultMaxDocument}
	w.blob(b)
	if t.compact = w.buf; w.long {
		return 0, tooLong(defaultMaxDocument)
	}
	depth, items := extent(t.compact)
	if t.items = items; depth > canon.MaxDepth {
		return 0, unreadable(&canon.LimitError{What: "depth", Limit: canon.MaxDepth})
	}
	return min(t.budget.Most(len(t.compact)), defaultMaxDocument), nil
}

// maxYAML is how many items of lists and members of objects a YAML document has at most: the library that writes it keeps
// hundreds of bytes for each.
const maxYAML = 250_000

// From these lengths on a text can exceed limits of readers besides those of its length and its depth: the members of
// objects, and the items of YAML that only the library reads.
const (
	longJSON = 4 << 20
	longYAML = 256 << 10
)

// check adds a text to the budget, and checks that readers take it.
func (t *Texts) check(text []byte, isJSON bool) error {
	if err := t.budget.Add(len(t.compact), len(text)); err != nil {
		return err
	}
	if isJSON && len(text) > longJSON || !isJSON && len(text) > longYAML {
		var err error
		if t.again, err = t.conv.Append(t.again[:0], canon.Doc{Data: text, JSON: isJSON}); err != nil {
			return unreadable(err)
		}
	}
	return nil
}

// tooLong is the error of a text that would have more than most bytes.
func tooLong(most int) error {
	if most < defaultMaxDocument {
		return indented.Error(most)
	}
	return unreadable(&canon.LimitError{What: "document size", Limit: defaultMaxDocument})
}

// unreadable is the error of a text that readers refuse.
func unreadable(err error) error {
	return fmt.Errorf("%w: it could not be read again: %w", ErrLimit, err)
}

// extent returns how deep JSON nests, and the number of items of lists and members of objects.
func extent(text []byte) (most, items int) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			if i = jsonscan.StringEnd(text, i) - 1; i < 0 {
				return most, items
			}
		case '{', '[':
			depth++
			most = max(most, depth)
			items++
		case '}', ']':
			depth--
		case ',':
			items++
		}
	}
	return most, items
}
