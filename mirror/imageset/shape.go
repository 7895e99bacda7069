package imageset

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/nearest"
)

// shape is the form of a value: a text, a number, a boolean, a list or an object. Fields that are there and null count
// as absent.
type shape struct {
	what   string            // "a text", "a whole number", "true or false", "a list", "an object"
	item   *shape            // of a list
	fields map[string]*shape // of an object
}

var (
	text   = &shape{what: "a text"}
	number = &shape{what: "a whole number"}
	flag   = &shape{what: "true or false"}
)

func list(item *shape) *shape                { return &shape{what: "a list", item: item} }
func object(fields map[string]*shape) *shape { return &shape{what: "an object", fields: fields} }

var (
	osArch = object(map[string]*shape{"os": text, "architecture": text})

	operatorShape = object(map[string]*shape{"catalog": text, "full": flag, "targetCatalog": text, "targetTag": text,
		"targetCatalogSourceTemplate": text, "skipDependencies": flag, "platforms": list(osArch),
		"packages": list(object(map[string]*shape{"name": text, "defaultChannel": text, "minVersion": text,
			"maxVersion": text, "channels": list(object(map[string]*shape{"name": text, "minVersion": text,
				"maxVersion": text}))}))})
	additionalShape = object(map[string]*shape{"name": text, "targetRepo": text, "targetTag": text,
		"platforms": list(osArch)})

	// What is not mirrored is checked anyway: a file must not become wrong by it.
	platformShape = object(map[string]*shape{"graph": flag, "architectures": list(text), "platforms": list(osArch),
		"release": text, "kubeVirtContainer": flag,
		"channels": list(object(map[string]*shape{"name": text, "type": text,
			"minVersion": text, "maxVersion": text, "shortestPath": flag, "full": flag}))})
	chartShape = object(map[string]*shape{"name": text, "version": text, "path": text, "imagePaths": list(text),
		"platforms": list(osArch)})
	helmShape = object(map[string]*shape{"local": list(chartShape),
		"repositories": list(object(map[string]*shape{"name": text, "url": text, "charts": list(chartShape)}))})
	samplesShape = list(object(map[string]*shape{"name": text}))

	imageShape = object(map[string]*shape{"kind": text, "apiVersion": text, "archiveSize": number,
		"mirror": object(map[string]*shape{"operators": list(operatorShape), "additionalImages": list(additionalShape),
			"blockedImages": list(object(map[string]*shape{"name": text})),
			"platform":      platformShape, "helm": helmShape, "samples": samplesShape}), "delete": nil})
	deleteShape = object(map[string]*shape{"kind": text, "apiVersion": text,
		"delete": object(map[string]*shape{"operators": list(operatorShape), "additionalImages": list(additionalShape),
			"platform": platformShape, "helm": helmShape, "samples": samplesShape}), "mirror": nil})
)

// advice is what to write in place of fields that older versions of the format had.
var advice = map[string]string{
	"storageConfig": "remove it: nothing is kept between runs that would need a place of its own",
	"headsOnly":     "remove it: heads are the default, and full: true wants all",
	"targetName":    "targetCatalog is the path at the destination",
	"minBundle":     "minVersion is the lowest version",
	"ocp":           "platform.channels have a type",
}

// conform checks a value against a shape and returns it with a misfit in place of what does not fit: the rest can still
// be checked.
func (r *reader) conform(v any, s *shape, at canon.Place, path string) any {
	if v == nil || s == nil {
		return v
	}
	fits := false
	switch got := v.(type) {
	case string:
		fits = s == text
	case bool:
		fits = s == flag
	case json.Number:
		if _, err := got.Int64(); err == nil {
			fits = s == number
		}
	case []any:
		if fits = s.item != nil; fits {
			for i := range got {
				got[i] = r.conform(got[i], s.item, at.In(i), fmt.Sprintf("%s[%d]", path, i))
			}
		}
	case map[string]any:
		if fits = s.fields != nil; fits {
			r.members(got, s, at, path)
		}
	}
	if fits {
		return v
	}
	r.wrong(at, path, "not "+s.what, remedy(v, s, at))
	return misfit{}
}

// misfit stands for a value of a wrong type, about which nothing more needs to be said.
type misfit struct{}

// remedy is the advice about a value of another type.
func remedy(v any, s *shape, at canon.Place) string {
	written := at.Written()
	if written == "" {
		written = fmt.Sprint(v)
	}
	switch v.(type) {
	case json.Number, bool:
		if s == text {
			return "write it in quotes: \"" + fault.Short(written) + "\""
		}
	case []any, map[string]any:
		return ""
	}
	return fault.Quote(written) + " is something else"
}

// members checks the fields of an object.
func (r *reader) members(fields map[string]any, s *shape, at canon.Place, path string) {
	known := slices.Sorted(maps.Keys(s.fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field := name
		if path != "" {
			field = path + "." + name
		}
		inner, ok := s.fields[name]
		if ok {
			fields[name] = r.conform(fields[name], inner, at.In(name), field)
			continue
		}
		delete(fields, name)
		fix := advice[name]
		if near, found := nearest.Name(name, known); fix == "" && found {
			fix = "perhaps " + near
		}
		if fix == "" {
			fix = "the fields are " + strings.Join(known, ", ")
		}
		r.wrong(at.Key(name), fault.Short(path), "unknown field "+fault.Quote(name), fix)
	}
}

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
