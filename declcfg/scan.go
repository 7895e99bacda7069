package declcfg

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// scanner reads blobs.
type scanner struct {
	jsonscan.Scanner
	odd bool // a field that its schema does not define was passed over
}

func newScanner(b []byte) scanner { return scanner{Scanner: jsonscan.NewScanner(b)} }

// foldsTo reports whether a key that is not name is read as name by encoding/json, which ignores case. A key with an
// escape in it may be anything.
func foldsTo(key []byte, names ...string) bool {
	for _, c := range key {
		if c == '\\' || c >= utf8.RuneSelf {
			return true
		}
	}
	for _, name := range names {
		if len(key) == len(name) && strings.EqualFold(string(key), name) {
			return true
		}
	}
	return false
}

// shape is what a value must look like to be read into a type by encoding/json. It lets the values of properties be
// checked without being decoded: on a 20 MB catalog that is most of the work of a validation.
type shape struct {
	kind   byte // 's' string, 'b' bool, 'i' integer, 'o' object, 'm' map of strings, 'a' array, '*' anything
	fields map[string]*shape
	names  []string
	elem   *shape
}

var (
	stringShape = &shape{kind: 's'}
	boolShape   = &shape{kind: 'b'}
	anyShape    = &shape{kind: '*'}
	mapShape    = &shape{kind: 'm'}
)

func objectShape(fields map[string]*shape) *shape {
	return &shape{kind: 'o', fields: fields, names: slices.Collect(maps.Keys(fields))}
}

func stringsShape(names ...string) map[string]*shape {
	fields := map[string]*shape{}
	for _, name := range names {
		fields[name] = stringShape
	}
	return fields
}

func arrayShape(elem *shape) *shape { return &shape{kind: 'a', elem: elem} }

// conforms reports whether the value that s is at has the shape, and reads it. False means "not seen at a glance".
func (sh *shape) conforms(s *scanner) bool {
	if s.Null() {
		return !s.Failed()
	}
	switch sh.kind {
	case '*':
		s.Value()
	case 's':
		s.RawString()
	case 'b':
		if c := s.Peek(); c != 't' && c != 'f' {
			return false
		}
		s.Value()
	case 'i':
		for i, c := range s.Value() {
			if (c < '0' || c > '9') && !(c == '-' && i == 0) {
				return false
			}
		}
	case 'm':
		s.Object(func([]byte) {
			if !s.Null() {
				s.RawString()
			}
		})
	case 'a':
		s.Array(func() {
			if !sh.elem.conforms(s) {
				s.Fail()
			}
		})
	case 'o':
		s.Object(func(key []byte) {
			field, ok := sh.fields[string(key)]
			switch {
			case ok:
				if !field.conforms(s) {
					s.Fail()
				}
			case foldsTo(key, sh.names...):
				s.Fail()
			default:
				s.Value()
			}
		})
	}
	return !s.Failed()
}

// shapeOf maps the property types that are read as a Go type to the shape of that type.
var shapeOf = func() map[string]*shape {
	resources := arrayShape(objectShape(stringsShape("name", "kind", "version")))
	descriptor := stringsShape("path", "displayName", "description")
	descriptor["x-descriptors"] = arrayShape(stringShape)
	descriptor["value"] = anyShape
	descriptors := arrayShape(objectShape(descriptor))
	description := func(names ...string) *shape {
		f := stringsShape(names...)
		f["resources"] = resources
		f["statusDescriptors"], f["specDescriptors"], f["actionDescriptors"] = descriptors, descriptors, descriptors
		return objectShape(f)
	}
	definitions := func(elem *shape) *shape {
		return objectShape(map[string]*shape{"owned": arrayShape(elem), "required": arrayShape(elem)})
	}
	apiService := description("name", "group", "version", "kind", "deploymentName", "displayName", "description")
	apiService.fields["containerPort"] = &shape{kind: 'i'}
	apiService.names = append(apiService.names, "containerPort")

	csv := stringsShape("description", "displayName", "maturity", "minKubeVersion")
	csv["annotations"], csv["labels"] = mapShape, mapShape
	csv["apiServiceDefinitions"] = definitions(apiService)
	csv["crdDescriptions"] = definitions(description("name", "version", "kind", "displayName", "description"))
	csv["installModes"] = arrayShape(objectShape(map[string]*shape{"type": stringShape, "supported": boolShape}))
	csv["keywords"] = arrayShape(stringShape)
	csv["links"] = arrayShape(objectShape(stringsShape("name", "url")))
	csv["maintainers"] = arrayShape(objectShape(stringsShape("name", "email")))
	csv["nativeAPIs"] = arrayShape(objectShape(stringsShape("group", "version", "kind")))
	csv["provider"] = objectShape(stringsShape("name", "url"))

	gvk := objectShape(stringsShape("group", "kind", "version"))
	return map[string]*shape{
		PropertyPackage:         objectShape(stringsShape("packageName", "version", "release")),
		PropertyPackageRequired: objectShape(stringsShape("packageName", "versionRange")),
		PropertyGVK:             gvk,
		PropertyGVKRequired:     gvk,
		PropertyCSVMetadata:     objectShape(csv),
	}
}()
