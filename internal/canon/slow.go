package canon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v2"
)

// appendSlow converts a document of any shape. The library that opm uses (the v2 line of the Go YAML library, which
// speaks YAML 1.1) decides what every node means; because it keeps neither lines nor bounds, the tree of the v3 line is
// made first, for the limits and for the lines of duplicate keys.
func (c *Converter) appendSlow(dst, doc []byte, l Limits) (out []byte, err error) {
	if n := punctuation(doc); n > l.MaxNodes {
		return dst, &LimitError{What: "nodes", Limit: int64(l.MaxNodes)}
	}
	var warnings []warning
	tree, treeErr := parseTree(doc)
	if treeErr == nil && tree != nil {
		if warnings, err = inspect(tree, len(doc), l, c.Warn != nil); err != nil {
			return dst, err
		}
	} else if treeErr != nil && bytes.ContainsAny(doc, "*") {
		// Without the tree nobody knows what the aliases would grow to. The other library's error is the better known
		// one, and it can be had without following aliases.
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
	w := valueWriter{dst: dst, max: l.MaxDepth, limit: len(dst) + l.MaxExpansion*len(doc) + expansionFloor}
	if err := w.write(v); err != nil {
		return dst, err
	}
	if rest {
		c.warn(func() int { return restLine(doc) }, "text behind the end of the YAML document is ignored")
	}
	for _, w := range warnings {
		c.warn(func() int { return w.line }, w.msg)
	}
	return w.dst, nil
}

// punctuation counts what an item or a member of a collection takes: an upper bound, but for a few.
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

// decodeV2 decodes the first document of doc and tells whether there is something behind it. The library may panic on
// malformed input.
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

// skipped takes any node without looking at it.
type skipped struct{}

func (*skipped) UnmarshalYAML(func(any) error) error { return nil }

var lineOfError = regexp.MustCompile(`^line ([0-9]+): `)

// yamlError makes a SyntaxError of an error of the YAML libraries.
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
	if m := lineOfError.FindStringSubmatch(msg); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Msg = msg[len(m[0]):]
	}
	return e
}

// value is a YAML node as the library means it, with the text of scalars.
type value struct {
	kind kind
	text string // scalars: what to write; strings unescaped
	*collection
}

// collection is the contents of a sequence or, with the keys sorted, of a mapping.
type collection struct {
	keys  []string
	items []value
}

type kind uint8

const (
	kindNull kind = iota // the zero value: the library leaves targets of nulls alone
	kindString
	kindLiteral // text is JSON: a number, true or false
	kindSequence
	kindMapping
)

// UnmarshalYAML takes a node of any kind. The library offers no way to ask for the kind, so each is tried.
func (v *value) UnmarshalYAML(unmarshal func(any) error) error {
	var other *yaml.TypeError
	var text string
	err := unmarshal(&text)
	if err == nil {
		var meaning any
		if err := unmarshal(&meaning); err != nil {
			return err
		}
		return v.setScalar(text, meaning)
	}
	if !errors.As(err, &other) {
		return err
	}
	var pairs map[key]value
	if err = unmarshal(&pairs); err == nil {
		return v.setMapping(pairs)
	} else if !errors.As(err, &other) {
		return err
	}
	v.kind, v.collection = kindSequence, &collection{}
	return unmarshal(&v.items)
}

func (v *value) setMapping(pairs map[key]value) error {
	v.kind, v.collection = kindMapping, &collection{keys: make([]string, 0, len(pairs)), items: make([]value, len(pairs))}
	for k := range pairs {
		if !k.set {
			return errors.New("yaml: unsupported map key of type: null")
		}
		v.keys = append(v.keys, k.name)
	}
	slices.Sort(v.keys)
	for i, name := range v.keys {
		v.items[i] = pairs[key{name, true}]
	}
	return nil
}

// UnmarshalText takes the strings that look like null but are quoted, which the library does not hand to UnmarshalYAML.
func (v *value) UnmarshalText(text []byte) error {
	*v = value{kind: kindString, text: string(text)}
	return nil
}

func (v *value) setScalar(text string, meaning any) error {
	v.kind = kindLiteral
	switch m := meaning.(type) {
	case nil:
		v.kind = kindNull
	case string:
		v.kind, v.text = kindString, m
	case bool:
		v.text = strconv.FormatBool(m)
	case int:
		v.text = exactInt(text, strconv.Itoa(m))
	case int64:
		v.text = exactInt(text, strconv.FormatInt(m, 10))
	case uint64:
		v.text = exactInt(text, strconv.FormatUint(m, 10))
	case float64:
		if math.IsInf(m, 0) || math.IsNaN(m) {
			return fmt.Errorf("yaml: unsupported value: %v", m)
		}
		v.text = exactFloat(text, m)
	default:
		return fmt.Errorf("yaml: unsupported value of type %T", meaning)
	}
	return nil
}

// key is a mapping's key as a string. It is a struct so that a key of null, which the library does not hand to
// UnmarshalYAML, can be told from an empty string.
type key struct {
	name string
	set  bool
}

func (k *key) UnmarshalYAML(unmarshal func(any) error) error {
	var meaning any
	if err := unmarshal(&meaning); err != nil {
		return err
	}
	name, err := keyText(meaning)
	*k = key{name: name, set: true}
	return err
}

// UnmarshalText is that of value.
func (k *key) UnmarshalText(text []byte) error {
	*k = key{name: string(text), set: true}
	return nil
}

// keyText is the text that a resolved scalar has as the key of a JSON object.
func keyText(meaning any) (string, error) {
	switch m := meaning.(type) {
	case string:
		return m, nil
	case bool:
		return strconv.FormatBool(m), nil
	case int:
		return strconv.Itoa(m), nil
	case int64:
		return strconv.FormatInt(m, 10), nil
	case uint64:
		return strconv.FormatUint(m, 10), nil
	case float64:
		return floatKey(m), nil
	case map[any]any, []any:
		return "", errors.New("yaml: invalid map key: a collection")
	}
	return "", errors.New("yaml: unsupported map key of type: null")
}

// floatKey writes a fraction as opm's YAML library does for keys: rounded to 32 bits.
func floatKey(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return ".inf"
	case math.IsInf(f, -1):
		return "-.inf"
	case math.IsNaN(f):
		return ".nan"
	}
	return strconv.FormatFloat(f, 'g', -1, 32)
}

// valueWriter writes values as canonical JSON.
type valueWriter struct {
	dst        []byte
	depth, max int
	limit      int // of the length of dst
}

func (w *valueWriter) write(v value) error {
	if len(w.dst) > w.limit {
		return &LimitError{What: "alias expansion", Limit: int64(w.limit)}
	}
	switch v.kind {
	case kindNull:
		w.dst = append(w.dst, "null"...)
	case kindLiteral:
		w.dst = append(w.dst, v.text...)
	case kindString:
		w.str(v.text)
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
	w.dst, _ = appendEscaped(w.dst, []byte(s))
	w.dst = append(w.dst, '"')
}
