package canon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"go.yaml.in/yaml/v2"
)

// appendSlow converts any document with the library that opm uses: the v2 line of the Go YAML library, which implements
// YAML 1.1. That library reports neither lines nor sizes, so the document is first parsed with the v3 line, for the
// limits and for the lines of duplicate keys.
func (c *Converter) appendSlow(dst, doc []byte, l Limits) (out []byte, err error) {
	if n := punctuation(doc); n > l.MaxNodes {
		return dst, &LimitError{What: "nodes", Limit: int64(l.MaxNodes)}
	}
	var warnings []warning
	expansion := c.Expansion
	if expansion == nil {
		expansion = &Expansion{}
	}
	most := expansion.most(len(doc), l)
	tree, treeErr := parseTree(doc)
	if treeErr == nil && tree != nil {
		if warnings, err = inspect(tree, most, l, c.Warn != nil); err != nil {
			return dst, err
		}
	} else if treeErr != nil && bytes.ContainsAny(doc, "*") {
		// Without the v3 tree the expansion of aliases is unknown. v2's error is the better known one, and [skipped]
		// returns it without expanding aliases.
		tree = nil
		var s skipped
		if _, err := decodeV2(doc, &s); err != nil {
			return dst, yamlError(err)
		}
		return dst, yamlError(treeErr)
	}
	var v value
	rest, err := decodeV2(doc, &v)
	if err != nil {
		return dst, yamlError(err)
	}
	w := valueWriter{dst: dst, start: len(dst), max: l.MaxDepth, limit: len(dst) + most}
	if err := w.write(v); err != nil {
		return dst, err
	}
	if !expansion.add(len(doc), len(w.dst)-len(dst), l) {
		return dst, &LimitError{What: "alias expansion", Limit: int64(most)}
	}
	if rest {
		c.warn(func() int { return restLine(doc) }, "text behind the end of the YAML document is ignored")
	}
	for _, w := range warnings {
		c.warn(func() int { return w.line }, w.msg)
	}
	return w.dst, nil
}

// punctuation estimates the number of items and members in collections from their punctuation. The estimate is an upper
// bound, give or take a few.
func punctuation(doc []byte) int {
	n := 0
	for i, c := range doc {
		switch c {
		case ',', '[', '{':
			n++
		case ':', '-', '?':
			if i+1 == len(doc) || doc[i+1] <= ' ' || c == '?' || c == ':' && i > 0 && doc[i-1] == '"' {
				n++
			}
		}
	}
	return n
}

// decodeV2 decodes the first document of doc and reports whether more text follows. The library may panic on malformed
// input.
func decodeV2(doc []byte, into any) (rest bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: %v", p)
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(doc))
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		return false, err
	}
	return hasMore(d), nil
}

func hasMore(d *yaml.Decoder) (more bool) {
	defer func() {
		if recover() != nil {
			more = true
		}
	}()
	var s skipped
	return !errors.Is(d.Decode(&s), io.EOF)
}

// skipped accepts any node without decoding it.
type skipped struct{}

func (*skipped) UnmarshalYAML(func(any) error) error { return nil }

var lineOfError = lazyregexp.New(`^line ([0-9]+): `)

// yamlError converts an error of the YAML libraries to a SyntaxError.
func yamlError(err error) error {
	var limit *LimitError
	if errors.As(err, &limit) {
		return err
	}
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	switch {
	case strings.Contains(msg, "exceeded max depth"):
		return &LimitError{What: "depth", Limit: 10_000}
	case strings.Contains(msg, "excessive aliasing"), strings.Contains(msg, "value contains itself"):
		return &LimitError{What: "alias expansion", Limit: 0}
	}
	e := &SyntaxError{Format: "yaml", Msg: msg, Err: err}
	if m := lineOfError().FindStringSubmatch(msg); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Msg = msg[len(m[0]):]
	}
	return e
}

// valueWriter writes values as canonical JSON.
type valueWriter struct {
	dst        []byte
	depth, max int
	start      int // of the value in dst
	limit      int // maximum length of dst
}

func (w *valueWriter) write(v value) error {
	if len(w.dst) > w.limit {
		return &LimitError{What: "alias expansion", Limit: int64(w.limit - w.start)}
	}
	switch v.kind {
	case kindNull:
		w.dst = append(w.dst, "null"...)
	case kindLiteral:
		w.dst = append(w.dst, v.text...)
	case kindString:
		w.str(v.text)
	case kindInvalid:
		return yamlError(errors.New(v.text))
	case kindSequence, kindMapping:
		if w.depth++; w.depth > w.max {
			return &LimitError{What: "depth", Limit: int64(w.max)}
		}
		if err := w.collection(v); err != nil {
			return err
		}
		w.depth--
	}
	return nil
}

func (w *valueWriter) collection(v value) error {
	brackets := "[]"
	if v.kind == kindMapping {
		brackets = "{}"
	}
	w.dst = append(w.dst, brackets[0])
	for i, item := range v.items {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		if v.kind == kindMapping {
			w.str(v.keys[i])
			w.dst = append(w.dst, ':')
		}
		if err := w.write(item); err != nil {
			return err
		}
	}
	w.dst = append(w.dst, brackets[1])
	return nil
}

func (w *valueWriter) str(s string) {
	w.dst = append(w.dst, '"')
	w.dst = appendEscaped(w.dst, []byte(s))
	w.dst = append(w.dst, '"')
}
