package canon

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Converter converts documents to canonical JSON and reuses its buffers. The zero value is ready. It is not safe for
// concurrent use: use one per goroutine.
type Converter struct {
	// Limits bound the cost of one document.
	Limits Limits
	// Warn, if not nil, is called for oddities of an accepted document: a repeated key, of which the last counts, or
	// text after the end of the document. Lines are 1-based and relative to the document. It is called at most ten
	// times per document.
	Warn func(line int, msg string)
	// Expansion, if not nil, is that of an input of several documents. Otherwise each document is one.
	Expansion *Expansion

	members []member // of the open objects
	warned  int      // number of warnings about this document
	scratch []byte   // for sorting members
	spare   []byte   // for discarded output
}

// AppendJSON appends the canonical JSON of one JSON document to dst; see [Converter.AppendJSON].
func AppendJSON(dst, doc []byte, l Limits, warn func(line int, msg string)) ([]byte, error) {
	c := Converter{Limits: l, Warn: warn}
	return c.AppendJSON(dst, doc)
}

// large is the size in bytes from which buffers are grown to fit and not kept.
const large = 1 << 20

// AppendYAML appends the canonical JSON of one YAML document to dst; see [Converter.AppendYAML].
func AppendYAML(dst, doc []byte, l Limits, warn func(line int, msg string)) ([]byte, error) {
	c := Converter{Limits: l, Warn: warn}
	return c.AppendYAML(dst, doc)
}

// Append appends the canonical JSON of a document to dst, without a trailing newline. Errors are those of
// [Converter.AppendJSON] and [Converter.AppendYAML].
func (c *Converter) Append(dst []byte, d Doc) ([]byte, error) {
	if n := len(d.Data); n > large && n <= c.Limits.withDefaults().MaxDocument {
		dst = slices.Grow(dst, n) // canonical JSON is seldom longer; growing step by step would leave as much garbage
	}
	if d.JSON {
		return c.AppendJSON(dst, d.Data)
	}
	return c.AppendYAML(dst, d.Data)
}

// AppendYAML appends the canonical JSON of the first YAML document in doc to dst. A document without content gives
// "null". Numbers keep their text if it is a JSON number; other integers become exact decimals, and other fractions
// lose what JSON does not allow: a plus sign, underscores, leading zeros. The last of equal keys counts, with a
// warning. Infinities, NaN, null as a key, and collections as keys are refused.
//
// The error is a [*SyntaxError] or a [*LimitError]; dst is then returned unchanged.
func (c *Converter) AppendYAML(dst, doc []byte) ([]byte, error) {
	l := c.Limits.withDefaults()
	c.warned = 0
	if len(doc) > l.MaxDocument {
		return dst, &LimitError{What: "document size", Limit: int64(l.MaxDocument)}
	}
	if out, ok := c.appendFast(dst, doc, l); ok {
		return out, nil
	}
	if err := checkText("yaml", doc); err != nil {
		return dst, err
	}
	if len(doc) > l.MaxIrregular {
		return dst, &LimitError{What: "irregular document size", Limit: int64(l.MaxIrregular)}
	}
	out, err := c.appendSlow(dst, doc, l)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// checkText refuses text that is not UTF-8. The YAML library would accept UTF-16 too.
func checkText(format string, doc []byte) error {
	at := bytes.IndexByte(doc, 0)
	msg := "text contains a NUL byte"
	if bytes.HasPrefix(doc, []byte("\xff\xfe")) || bytes.HasPrefix(doc, []byte("\xfe\xff")) {
		at, msg = 0, "text is UTF-16, not UTF-8"
	} else if at < 0 && !utf8.Valid(doc) {
		msg = "text is not valid UTF-8"
		for at = 0; at < len(doc); {
			r, size := utf8.DecodeRune(doc[at:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
	}
	if at < 0 {
		return nil
	}
	return &SyntaxError{Format: format, Line: lineAt(doc, at), Column: columnAt(doc, at), Msg: msg}
}

// maxShown is how many bytes of quoted input a message contains.
const maxShown = 80

// mostWarnings is the maximum number of warnings per document.
const mostWarnings = 10

// warn reports a warning about a document, up to [mostWarnings]. line is called only if the warning is reported.
func (c *Converter) warn(line func() int, msg string) {
	if c.warned++; c.Warn != nil && c.warned <= mostWarnings {
		c.Warn(line(), msg)
	}
}

func duplicateKey(name string) string {
	return fmt.Sprintf("duplicate key %q: the last one counts", fault.Clip(name, maxShown))
}
