package declcfg

import (
	"encoding/json"
	"fmt"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/nearest"
)

// maxUnknown is how many unknown fields of one blob are reported. Determining the line of each takes a pass over the
// document.
const maxUnknown = 10

// reportUnknown reports the unknown fields of a blob that was just read, or a schema that is probably misspelled.
func (d *docReader) reportUnknown(m *Meta) {
	report := func(path []any, format string, args ...any) {
		at, message := m.Pos, fmt.Sprintf(format, args...)
		if d.options.UnknownField != nil {
			d.options.UnknownField(at, path, message)
			return
		}
		if line, column, ok := canon.NewLocator(d.doc.Data, d.doc.JSON).Place(path...); ok {
			at.Line, at.Column = at.Line+line-1, column
		}
		d.options.Warn(at, message)
	}
	known := schemaNamed(m.Schema)
	if known == nil {
		if near, ok := nearest.Name(m.Schema, schemaNames()); ok {
			report([]any{"schema"}, "unknown schema %q: did you mean %q?", m.Schema, near)
		}
		return
	}
	count := 0
	s := newScanner(m.Blob)
	s.unknownIn(known.json, nil, func(path []any, in *jsonType) {
		if count++; count > maxUnknown {
			return
		}
		name, _ := path[len(path)-1].(string)
		where := ""
		if len(path) > 1 {
			where = canon.PathName(path[:len(path)-1]) + " of "
		}
		hint := ""
		if near, ok := nearest.Name(name, in.names); ok {
			hint = fmt.Sprintf(": did you mean %q?", near)
		}
		report(path, "unknown field %s in %s%s %s%s", fault.Quote(name), where, m.Schema, fault.Quote(m.Name), hint)
	})
	if count > maxUnknown {
		report(nil, "%d more unknown fields in %s %s", count-maxUnknown, m.Schema, fault.Quote(m.Name))
	}
}

// unknownIn calls found for every field of an object, or of the objects in a list, that its type does not have.
func (s *scanner) unknownIn(t *jsonType, path []any, found func(path []any, in *jsonType)) {
	at := func(step any) []any { return append(path[:len(path):len(path)], step) }
	for t != nil && t.kind == pointerValue {
		t = t.elem
	}
	switch next := s.Peek(); {
	case next == '[' && t != nil && t.kind == listValue:
		i := 0
		s.Array(func() {
			s.unknownIn(t.elem, at(i), found)
			i++
		})
	case next == '{' && t != nil && t.kind == objectValue:
		s.Object(func(key []byte) {
			for i := range t.fields {
				if f := &t.fields[i]; isKey(key, f.name) {
					s.unknownIn(f.value, at(f.name), found)
					return
				}
			}
			s.Value()
			var name string
			if json.Unmarshal([]byte(`"`+string(key)+`"`), &name) == nil {
				found(at(name), t)
			}
		})
	default:
		s.Value()
	}
}
