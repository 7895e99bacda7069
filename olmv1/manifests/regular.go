package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

var documentLimits = canon.Limits{MaxDocument: maxFile, MaxDepth: maxDepth}

// regularReader has the buffers with which files are read one after the other.
type regularReader struct {
	split canon.Splitter
	conv  canon.Converter
	text  []byte
	odd   bool
}

var regularReaders = sync.Pool{New: func() any {
	r := &regularReader{conv: canon.Converter{Limits: documentLimits}}
	r.conv.Warn = func(int, string) { r.odd = true }
	return r
}}

// regular reads the objects of a file if nothing about it is irregular: it is false for a file with an error, an oddity
// or a list, which the client library then reads. It takes a tenth of the library's time.
func regular(text []byte, definitions bool) ([]found, bool) {
	r := regularReaders.Get().(*regularReader)
	defer regularReaders.Put(r)
	r.odd = false
	if one := bytes.TrimSpace(text); len(one) > 0 && one[0] == '{' { // one JSON document, as in catalogs
		if doc, err := r.conv.AppendJSON(nil, one); err == nil && !r.odd {
			return appendRegular(nil, doc, definitions)
		}
		r.odd = false
	}
	r.split.Reset(bytes.NewReader(text), documentLimits)
	var all []found
	for {
		doc, err := r.split.Next()
		if errors.Is(err, io.EOF) {
			return all, true
		}
		if err == nil {
			r.text, err = r.conv.Append(r.text[:0], doc)
		}
		if err != nil || r.odd {
			return nil, false
		}
		if string(r.text) == "null" {
			continue
		}
		var ok bool
		if all, ok = appendRegular(all, r.text, definitions); !ok {
			return nil, false
		}
	}
}

// appendRegular appends the object of a document, canonical JSON.
func appendRegular(all []found, doc []byte, definitions bool) ([]found, bool) {
	if definitions {
		if d, ok := squeezed(doc); ok {
			return append(all, found{definition: d}), true
		}
	}
	u, ok := regularObject(doc)
	if !ok {
		return nil, false
	}
	return append(all, found{object: u}), true
}

// squeezed returns a CustomResourceDefinition of canonical JSON, if it is one and has no oddities.
func squeezed(doc []byte) (*definition, bool) {
	version := jsonscan.TextAt(doc, "apiVersion")
	if doc[0] != '{' || jsonscan.TextAt(doc, "kind") != kindCRD || strings.Count(version, "/") > 1 ||
		jsonscan.Member(doc, "items") != nil {
		return nil, false
	}
	text, ok := definitionLayout().squeeze(doc)
	if !ok {
		return nil, false
	}
	return &definition{
		Object: Object{APIVersion: version, Kind: kindCRD, Namespace: jsonscan.TextAt(text, "metadata", "namespace"),
			Name: jsonscan.TextAt(text, "metadata", "name"), JSON: text},
		preservesUnknown: string(jsonscan.Member(text, "spec", "preserveUnknownFields")) == "true",
	}, true
}

// regularObject decodes one object, canonical JSON, with a kind, no items, and metadata of the right types.
func regularObject(doc []byte) (*unstructured.Unstructured, bool) {
	if doc[0] != '{' || jsonscan.Member(doc, "items") != nil {
		return nil, false
	}
	if version := jsonscan.Member(doc, "apiVersion"); version != nil && version[0] != '"' {
		return nil, false
	}
	if metadata := jsonscan.Member(doc, "metadata"); metadata != nil {
		var typed metav1.ObjectMeta
		if metadata[0] != '{' || utiljson.Unmarshal(metadata, &typed) != nil {
			return nil, false
		}
	}
	t := tree{text: doc}
	value, _ := t.value().(map[string]any)
	u := &unstructured.Unstructured{Object: value}
	return u, !t.failed && u.GroupVersionKind().Kind != ""
}

// tree decodes canonical JSON as Kubernetes does: whole numbers that fit are int64, fractions float64. It fails at
// numbers that may be either.
type tree struct {
	text   []byte
	at     int
	failed bool
}

func (t *tree) value() any {
	switch t.text[t.at] {
	case '{':
		return t.object()
	case '[':
		return t.array()
	case '"':
		return t.string()
	case 't':
		t.at += len("true")
		return true
	case 'f':
		t.at += len("false")
		return false
	case 'n':
		t.at += len("null")
		return nil
	default:
		return t.number()
	}
}

func (t *tree) object() map[string]any {
	out := map[string]any{}
	for t.at++; t.text[t.at] != '}'; {
		name := t.string()
		t.at++ // colon
		out[name] = t.value()
		if t.text[t.at] == ',' {
			t.at++
		}
	}
	t.at++
	return out
}

func (t *tree) array() []any {
	out := []any{}
	for t.at++; t.text[t.at] != ']'; {
		out = append(out, t.value())
		if t.text[t.at] == ',' {
			t.at++
		}
	}
	t.at++
	return out
}

func (t *tree) string() string {
	end := jsonscan.StringEnd(t.text, t.at)
	quoted := t.text[t.at:end]
	t.at = end
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var out string
	if err := json.Unmarshal(quoted, &out); err != nil {
		t.failed = true
	}
	return out
}

func (t *tree) number() any {
	start := t.at
	for t.at < len(t.text) && bytes.IndexByte([]byte("+-.eE0123456789"), t.text[t.at]) >= 0 {
		t.at++
	}
	digits := string(t.text[start:t.at])
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(digits, 64)
	// A whole number in the form of a fraction, such as 1e3, is a whole number in YAML and a fraction in JSON.
	if err != nil || f == math.Trunc(f) {
		t.failed = true
	}
	return f
}

// squeeze takes canonical JSON through a type: what comes out is what the type would print, as canonical JSON. It is
// false for text that the type may refuse or print in another way than it is written, such as fractions; the type
// itself is for these.
func (l *layout) squeeze(text []byte) ([]byte, bool) {
	s := &squeezer{text: text, out: make([]byte, 0, len(text)+len(text)/8)}
	s.value(l)
	return s.out, !s.failed && s.at == len(text)
}

type squeezer struct {
	text   []byte
	at     int
	out    []byte
	failed bool
}

// copyTo copies the text up to an offset.
func (s *squeezer) copyTo(end int) {
	if end < 0 || end > len(s.text) {
		s.failed = true
		return
	}
	s.out = append(s.out, s.text[s.at:end]...)
	s.at = end
}

// value prints a value, not null, and reports whether it is empty.
func (s *squeezer) value(l *layout) (empty bool) {
	if s.at >= len(s.text) {
		s.failed = true
	}
	if s.failed {
		return false
	}
	c := s.text[s.at]
	switch {
	case l.form == formStruct && c == '{':
		s.object(l)
	case l.form == formMap && c == '{':
		return s.keyed(l)
	case l.form == formList && c == '[':
		return s.list(l)
	case l.form == formString && c == '"':
		end := jsonscan.StringEnd(s.text, s.at)
		empty = end == s.at+2
		s.copyTo(end)
	case l.form == formBool && c == 't', l.form == formSchemaOrBool && c == 't':
		s.copyTo(s.at + len("true"))
	case l.form == formBool && c == 'f', l.form == formSchemaOrBool && c == 'f':
		s.copyTo(s.at + len("false"))
		return true
	case l.form == formSchemaOrBool && c == '{', l.form == formSchemaOrList && c == '{':
		s.object(l.item)
	case l.form == formInt, l.form == formFloat:
		return s.number(l)
	case l.form == formJSON:
		s.whatever()
	default:
		s.failed = true
	}
	return empty
}

// object prints a struct: known fields that are not empty, and those that are always there.
func (s *squeezer) object(l *layout) {
	s.out = append(s.out, '{')
	absent, start := l.always, len(s.out)
	next := func() { // before a member
		if len(s.out) > start {
			s.out = append(s.out, ',')
		}
	}
	for s.at++; !s.failed && s.text[s.at] != '}'; s.comma() {
		quoted := s.key()
		if s.failed {
			return
		}
		field := l.fields[string(quoted[1:len(quoted)-1])]
		if field == nil || bytes.HasPrefix(s.text[s.at:], []byte("null")) {
			s.skip()
			continue
		}
		for len(absent) > 0 && absent[0].name < field.name {
			next()
			s.addMissing(absent[0])
			absent = absent[1:]
		}
		if len(absent) > 0 && absent[0] == field {
			absent = absent[1:]
		}
		before := len(s.out)
		next()
		s.out = append(append(s.out, quoted...), ':')
		if empty := s.value(field.layout); empty && field.optional && !field.pointer {
			s.out = s.out[:before]
		}
	}
	for _, field := range absent {
		next()
		s.addMissing(field)
	}
	s.out = append(s.out, '}')
	s.at++
}

func (s *squeezer) addMissing(f *layoutField) {
	s.out = append(append(append(append(s.out, '"'), f.name...), `":`...), f.zero...)
}

// key returns the next key with its quotes, and stands at its value.
func (s *squeezer) key() []byte {
	end := jsonscan.StringEnd(s.text, s.at)
	if end < 0 || end+1 >= len(s.text) {
		s.failed = true
		return nil
	}
	quoted := s.text[s.at:end]
	s.at = end + 1
	return quoted
}

// comma passes the comma after a member or item.
func (s *squeezer) comma() {
	if s.at < len(s.text) && s.text[s.at] == ',' {
		s.at++
	}
	s.failed = s.failed || s.at >= len(s.text)
}

func (s *squeezer) skip() {
	if s.at = jsonscan.ValueEnd(s.text, s.at); s.at < 0 {
		s.failed = true
	}
}

// keyed prints a map.
func (s *squeezer) keyed(l *layout) (empty bool) {
	s.copyTo(s.at + 1)
	empty = !s.failed && s.text[s.at] == '}'
	for !s.failed && s.text[s.at] != '}' {
		s.out = append(append(s.out, s.key()...), ':')
		s.value(l.item)
		s.separator()
	}
	if !s.failed {
		s.copyTo(s.at + 1)
	}
	return empty
}

// list prints a list.
func (s *squeezer) list(l *layout) (empty bool) {
	s.copyTo(s.at + 1)
	empty = !s.failed && s.text[s.at] == ']'
	for !s.failed && s.text[s.at] != ']' {
		s.value(l.item)
		s.separator()
	}
	if !s.failed {
		s.copyTo(s.at + 1)
	}
	return empty
}

// separator prints the comma between items.
func (s *squeezer) separator() {
	if s.at >= len(s.text) {
		s.failed = true
	} else if !s.failed && s.text[s.at] == ',' {
		s.copyTo(s.at + 1)
	}
}

// number prints a number as the type does.
func (s *squeezer) number(l *layout) (empty bool) {
	end := s.at
	for end < len(s.text) && bytes.IndexByte([]byte("+-.eE0123456789"), s.text[end]) >= 0 {
		end++
	}
	digits := string(s.text[s.at:end])
	if l.form == formInt {
		n, err := strconv.ParseInt(digits, 10, l.bits)
		if err != nil || digits == "-0" {
			s.failed = true
			return false
		}
		s.copyTo(end)
		return n == 0
	}
	f, err := strconv.ParseFloat(digits, 64)
	printed, printErr := json.Marshal(f)
	if err != nil || printErr != nil || digits == "-0" {
		s.failed = true
		return false
	}
	s.out, s.at = append(s.out, printed...), end
	return f == 0
}

// whatever prints any value as it is, unless it has numbers that are printed in another way.
func (s *squeezer) whatever() {
	end := jsonscan.ValueEnd(s.text, s.at)
	if end < 0 {
		s.failed = true
		return
	}
	for i := s.at; i < end; i++ {
		switch c := s.text[i]; {
		case c == '"':
			i = jsonscan.StringEnd(s.text, i) - 1
		case c == '-' || c >= '0' && c <= '9':
			start := i
			for i+1 < end && bytes.IndexByte([]byte("+-.eE0123456789"), s.text[i+1]) >= 0 {
				i++
			}
			if n, err := strconv.ParseInt(string(s.text[start:i+1]), 10, 64); err != nil || c == '-' && n == 0 {
				s.failed = true
				return
			}
		}
	}
	s.copyTo(end)
}
