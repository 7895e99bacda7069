package imageset

import (
	"cmp"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/shape"
)

var (
	operatorShape   = shape.Strict[operatorForm]()
	additionalShape = shape.Strict[additionalForm]()
	blockedShape    = shape.Strict[blockedForm]()

	platformShape = shape.Strict[platformStanza]()

	helmShape = shape.Strict[helmForm]()
	// What is not mirrored is checked anyway: a file must not become wrong by it.
	samplesShape = shape.List(texts("name"))

	imageShape = shape.Object(shape.Fields{"kind": shape.Text, "apiVersion": shape.Text, "archiveSize": shape.Whole,
		"mirror": shape.Object(shape.Fields{"operators": shape.List(operatorShape),
			"additionalImages": shape.List(additionalShape), "blockedImages": shape.List(blockedShape),
			"platform": platformShape, "helm": helmShape, "samples": samplesShape}), "delete": shape.Any})
	deleteShape = shape.Object(shape.Fields{"kind": shape.Text, "apiVersion": shape.Text,
		"delete": shape.Object(shape.Fields{"operators": shape.List(operatorShape),
			"additionalImages": shape.List(additionalShape), "platform": platformShape, "helm": helmShape,
			"samples": samplesShape}), "mirror": shape.Any})
)

func texts(names ...string) *shape.Shape { return shape.Object(shape.Texts(names...)) }

// advice is what to write in place of fields that older versions of the format had.
var advice = map[string]string{
	"storageConfig": "remove it: nothing is kept between runs that would need a place of its own",
	"headsOnly":     "remove it: heads are the default, and full: true wants all",
	"targetName":    "targetCatalog is the path at the destination",
	"minBundle":     "minVersion is the lowest version",
	"ocp":           "platform.channels have a type",
}

// conform checks a document, of which v is the value, against a shape. What does not fit is reported, and is in v a
// misfit or absent: the rest can still be checked.
func (r *reader) conform(doc []byte, v map[string]any, s *shape.Shape, root canon.Place) {
	s.Check(doc, func(f shape.Fault) {
		at, in := root, any(v)
		last := len(f.Path) - 1
		for _, step := range f.Path[:last] {
			at, in = at.In(step), inside(in, step)
		}
		name, isField := f.Path[last].(string)
		if f.Want == "" {
			fields, _ := in.(map[string]any)
			delete(fields, name)
			fix := advice[name]
			if fix == "" {
				fix = shape.Suggest(name, f.Known)
			}
			r.wrong(at.Key(name), canon.PathName(f.Path[:last]), "unknown field "+fault.Quote(name), fix)
			return
		}
		switch in := in.(type) {
		case map[string]any:
			if isField {
				in[name] = misfit{}
			}
		case []any:
			in[f.Path[last].(int)] = misfit{}
		}
		at = at.In(f.Path[last])
		written := cmp.Or(at.Written(), f.Written)
		r.wrong(at, f.Field(), string(f.Got)+", expected "+string(f.Want), shape.Fix(f.Got, f.Want, written))
	})
}

// inside returns the value at a step; nil if there is none.
func inside(v, step any) any {
	switch v := v.(type) {
	case map[string]any:
		name, _ := step.(string)
		return v[name]
	case []any:
		if i, ok := step.(int); ok && i < len(v) {
			return v[i]
		}
	}
	return nil
}

// misfit stands for a value of a wrong type, about which nothing more needs to be said.
type misfit struct{}

// hollow reports whether a value says nothing: it is null, false, empty, or made of such values.
func hollow(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, member := range v {
			if !hollow(member) {
				return false
			}
		}
		return true
	}
	return false
}
