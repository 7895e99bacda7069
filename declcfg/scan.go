package declcfg

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// scanner walks over compact, valid JSON as package canon writes it. Anything else makes it fail, never guess: whoever
// uses it falls back to encoding/json, whose answer (or error) rules.
type scanner struct {
	b      []byte
	i      int
	failed bool
	odd    bool // a field that its schema does not define was passed over
}

func (s *scanner) fail() { s.failed = true }

func (s *scanner) peek() byte {
	if s.failed || s.i >= len(s.b) {
		return 0
	}
	return s.b[s.i]
}

func (s *scanner) expect(c byte) {
	if s.peek() != c {
		s.failed = true
		return
	}
	s.i++
}

// str reads a string.
func (s *scanner) str() string {
	raw := s.rawString()
	if raw == nil {
		return ""
	}
	inner := raw[1 : len(raw)-1]
	for _, c := range inner {
		if c == '\\' {
			var v string
			if json.Unmarshal(raw, &v) != nil {
				s.failed = true
			}
			return v
		}
	}
	return string(inner)
}

// rawString reads a string with its quotes.
func (s *scanner) rawString() []byte {
	if s.peek() != '"' {
		s.failed = true
		return nil
	}
	end := stringEnd(s.b, s.i)
	if end-s.i < 2 || s.b[end-1] != '"' {
		s.failed = true
		return nil
	}
	raw := s.b[s.i:end]
	s.i = end
	return raw
}

// value reads any value and returns its bytes.
func (s *scanner) value() []byte {
	start := s.i
	depth := 0
	for !s.failed && s.i < len(s.b) {
		switch s.b[s.i] {
		case '"':
			s.i = stringEnd(s.b, s.i)
			if depth == 0 {
				return s.b[start:s.i]
			}
		case '{', '[':
			depth++
			s.i++
		case '}', ']':
			if depth == 0 {
				if s.i == start {
					s.failed = true
					return nil
				}
				return s.b[start:s.i] // the end of what holds a bare number or word
			}
			depth--
			s.i++
			if depth == 0 {
				return s.b[start:s.i]
			}
		case ',':
			if depth == 0 {
				return s.b[start:s.i]
			}
			s.i++
		default:
			s.i++
		}
	}
	if start == s.i {
		s.failed = true
		return nil
	}
	return s.b[start:s.i]
}

// null reads a null, if there is one.
func (s *scanner) null() bool {
	if s.peek() == 'n' {
		s.value()
		return true
	}
	return false
}

// object calls member for each member of an object. member must read the value.
func (s *scanner) object(member func(key []byte)) {
	s.expect('{')
	if s.peek() == '}' {
		s.i++
		return
	}
	for !s.failed {
		raw := s.rawString()
		s.expect(':')
		if s.failed {
			return
		}
		member(raw[1 : len(raw)-1])
		if s.peek() == ',' {
			s.i++
			continue
		}
		s.expect('}')
		return
	}
}

// array calls element for each element of an array. element must read the value.
func (s *scanner) array(element func()) {
	s.expect('[')
	if s.peek() == ']' {
		s.i++
		return
	}
	for !s.failed {
		element()
		if s.peek() == ',' {
			s.i++
			continue
		}
		s.expect(']')
		return
	}
}

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
	s := &shape{kind: 'o', fields: fields}
	for name := range fields {
		s.names = append(s.names, name)
	}
	return s
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
	if s.null() {
		return !s.failed
	}
	switch sh.kind {
	case '*':
		s.value()
	case 's':
		s.rawString()
	case 'b':
		if c := s.peek(); c != 't' && c != 'f' {
			return false
		}
		s.value()
	case 'i':
		for i, c := range s.value() {
			if (c < '0' || c > '9') && !(c == '-' && i == 0) {
				return false
			}
		}
	case 'm':
		s.object(func([]byte) {
			if !s.null() {
				s.rawString()
			}
		})
	case 'a':
		s.array(func() {
			if !sh.elem.conforms(s) {
				s.fail()
			}
		})
	case 'o':
		s.object(func(key []byte) {
			field, ok := sh.fields[string(key)]
			switch {
			case ok:
				if !field.conforms(s) {
					s.fail()
				}
			case foldsTo(key, sh.names...):
				s.fail()
			default:
				s.value()
			}
		})
	}
	return !s.failed
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
