package declcfg

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/nearest"
)

// UnknownField is a field that the schema of its blob does not define. At the top level of a blob it is kept, below it
// is lost. Usually it is misspelled, and the intended field counts as absent.
type UnknownField struct {
	Position Position
	// Path is the path from the blob to the field: names (string) and indices (int).
	Path    []any
	Message string
}

// maxUnknown is how many unknown fields of one blob are reported. Determining the line of each takes a pass over the
// document.
const maxUnknown = 10

// fieldTree are the fields that the specification defines for an object, each with the tree of its value or of the
// items of its list. Values without a tree are not checked.
type fieldTree map[string]fieldTree

var (
	propertyFields = fieldTree{"type": nil, "value": nil}
	fieldTrees     = map[string]fieldTree{
		SchemaPackage: {"schema": nil, "name": nil, "defaultChannel": nil, "description": nil,
			"icon": {"base64data": nil, "mediatype": nil}, "properties": propertyFields},
		SchemaChannel: {"schema": nil, "name": nil, "package": nil, "properties": propertyFields,
			"entries": {"name": nil, "replaces": nil, "skips": nil, "skipRange": nil}},
		SchemaBundle: {"schema": nil, "name": nil, "package": nil, "image": nil, "properties": propertyFields,
			"relatedImages": {"name": nil, "image": nil}},
		SchemaDeprecations: {"schema": nil, "package": nil,
			"entries": {"message": nil, "reference": {"schema": nil, "name": nil}}},
	}
)

// reportUnknown reports the unknown fields of a blob that was just read, or a schema that is probably misspelled.
func (d *docReader) reportUnknown(m *Meta) {
	report := func(path []any, format string, args ...any) {
		u := UnknownField{Position: m.Pos, Path: path, Message: fmt.Sprintf(format, args...)}
		if d.options.UnknownField != nil {
			d.options.UnknownField(u)
			return
		}
		if line, column, ok := canon.NewLocator(d.doc.Data, d.doc.JSON).Place(path...); ok {
			u.Position.Line, u.Position.Column = u.Position.Line+line-1, column
		}
		d.options.Warn(u.Position, u.Message)
	}
	known, ok := fieldTrees[m.Schema]
	if !ok {
		if near, ok := nearest.Name(m.Schema, sortedNames(fieldTrees)); ok {
			report([]any{"schema"}, "unknown schema %q: did you mean %q?", m.Schema, near)
		}
		return
	}
	count := 0
	s := newScanner(m.Blob)
	s.unknownIn(known, nil, func(path []any, in fieldTree) {
		if count++; count > maxUnknown {
			return
		}
		name, _ := path[len(path)-1].(string)
		where := ""
		if len(path) > 1 {
			where = canon.PathName(path[:len(path)-1]) + " of "
		}
		hint := ""
		if near, ok := nearest.Name(name, sortedNames(in)); ok {
			hint = fmt.Sprintf(": did you mean %q?", near)
		}
		report(path, "unknown field %s in %s%s %s%s", fault.Quote(name), where, m.Schema, fault.Quote(m.Name), hint)
	})
	if count > maxUnknown {
		report(nil, "%d more unknown fields in %s %s", count-maxUnknown, m.Schema, fault.Quote(m.Name))
	}
}

// unknownIn calls found for every field of an object, or of the objects in a list, that is not in a tree.
func (s *scanner) unknownIn(known fieldTree, path []any, found func(path []any, in fieldTree)) {
	at := func(step any) []any { return append(path[:len(path):len(path)], step) }
	switch s.Peek() {
	case '[':
		i := 0
		s.Array(func() {
			s.unknownIn(known, at(i), found)
			i++
		})
	case '{':
		s.Object(func(key []byte) {
			for name, below := range known {
				switch {
				case !isKey(key, name):
				case below == nil:
					s.Value()
					return
				default:
					s.unknownIn(below, at(name), found)
					return
				}
			}
			s.Value()
			var name string
			if json.Unmarshal([]byte(`"`+string(key)+`"`), &name) == nil {
				found(at(name), known)
			}
		})
	default:
		s.Value()
	}
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
