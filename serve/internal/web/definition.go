package web

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// How much of a definition is shown.
const (
	maxDefinition = 4 << 20 // bytes; clusters take no larger ones
	maxDefined    = 100
	maxFields     = 5000 // of a version
	maxFieldDepth = 24   // fields within fields
	maxFieldText  = 600  // characters of a description or value
)

// noAnchor are the characters that the anchor of a field does not have.
var noAnchor = regexp.MustCompile(`[^A-Za-z0-9.-]`)

// definitionLink links to the fields of a version of a CustomResourceDefinition, or of the stored one.
func (p *page) definitionLink(b *declcfg.Bundle, m *manifest, version, text string) {
	p.a(p.manifestAddress("definition", b, m, version, "crd", m.name, "version", version), text)
}

// kindLink shows the kind of an API, with a link to its fields if the catalog has its definition.
func (p *page) kindLink(b *declcfg.Bundle, all []manifest, k property.GVK) {
	for i := range all {
		if m := &all[i]; m.defines == k.Kind && m.group == k.Group && k.Kind != "" {
			p.definitionLink(b, m, k.Version, name(k.Kind))
			return
		}
	}
	p.emit("{}", name(k.Kind))
}

// versionsOf returns the versions of a definition in canonical JSON. Those of apiextensions.k8s.io/v1beta1 may have one
// schema together, and the name of a single one may be in the field "version".
func versionsOf(definition []byte) (versions, schemas [][]byte) {
	common := jsonscan.Member(definition, "spec", "validation", "openAPIV3Schema")
	jsonscan.Elements(jsonscan.Member(definition, "spec", "versions"), func(version []byte) bool {
		schema := jsonscan.Member(version, "schema", "openAPIV3Schema")
		if schema == nil {
			schema = common
		}
		versions, schemas = append(versions, version), append(schemas, schema)
		return len(versions) <= maxDefined
	})
	if version := jsonscan.Member(definition, "spec", "version"); len(versions) == 0 && version != nil {
		only := slices.Concat([]byte(`{"name":`), version, []byte(`,"served":true,"storage":true}`))
		return [][]byte{only}, [][]byte{common}
	}
	return versions, schemas
}

func isTrue(object []byte, member string) bool {
	return string(jsonscan.Member(object, member)) == "true"
}

var definitionPage = manifestPage("Fields of",
	func(p *page, m *manifest) bool {
		return m.defines != "" && (m.name == p.query.Get("crd") || m.at == p.query.Get("file"))
	}, (*page).definition)

// definition shows the fields of a version of a CustomResourceDefinition. That is read as canonical JSON, in which
// members are sorted and found without decoding: what is not shown takes no memory.
func (p *page) definition(b *declcfg.Bundle, m *manifest) {
	text, _ := canon.AppendJSON(nil, m.text, canon.Limits{MaxDocument: maxDefinition}, nil)
	versions, schemas := versionsOf(text)
	at := slices.IndexFunc(versions,
		func(v []byte) bool { return jsonscan.TextAt(v, "name") == p.query.Get("version") })
	if at < 0 {
		at = max(0, slices.IndexFunc(versions, func(v []byte) bool { return isTrue(v, "storage") }))
	}
	p.emit(`<h1>{}</h1><p class="id">{} · {} · `, name(m.defines), name(m.name),
		name(cmp.Or(jsonscan.TextAt(text, "spec", "scope"), "no scope")))
	p.fileLink(b, m, "manifest")
	p.emit("</p>\n<h2>Versions</h2>")
	for i, v := range versions {
		if i == maxDefined {
			p.emit(`<p>More versions are not shown.</p>`)
			break
		}
		version := jsonscan.TextAt(v, "name")
		p.emit(`<p>`)
		p.definitionLink(b, m, version, name(version))
		if i == at {
			p.emit(` <span class="tag main">shown here</span>`)
		}
		for _, use := range []string{"served", "storage", "deprecated"} {
			if isTrue(v, use) {
				p.emit(` <span class="tag">{}</span>`, use)
			}
		}
		p.emit(" {}</p>\n", optional(jsonscan.TextAt(v, "deprecationWarning")))
	}
	p.emit(`<h2>Fields</h2><div class="fields">`)
	t := fieldTree{page: p, ids: map[string]bool{}}
	if len(versions) > 0 {
		t.fields(readSchema(schemas[at]), t.id(strings.ToLower(m.defines), jsonscan.TextAt(versions[at], "name")), 0)
	}
	if t.shown == 0 {
		p.emit(`<p>The definition has no fields, or none that can be read.</p>`)
	}
	p.emit("</div>\n")
	p.left(t.left, "field")
}

// schema has the members of a schema that pages show. They are found in one pass: those with the fields are long.
type schema struct {
	text                                            []byte
	kind, format, description                       []byte
	properties, required, items, additional, number []byte
	rules                                           [][2][]byte // members of rules, with their values
}

func readSchema(text []byte) *schema {
	s := &schema{text: text}
	jsonscan.Members(text, func(key, value []byte) bool {
		switch string(key) {
		case "additionalProperties":
			s.additional = value
		case "description":
			s.description = value
		case "format":
			s.format = value
		case "items":
			s.items = value
		case "properties":
			s.properties = value
		case "required":
			s.required = value
		case "type":
			s.kind = value
		case "x-kubernetes-int-or-string":
			s.number = value
		default:
			if rules[string(key)] != "" {
				s.rules = append(s.rules, [2][]byte{key, value})
			}
		}
		return true
	})
	return s
}

func (s *schema) intOrString() bool { return string(s.number) == "true" }

func (s *schema) hasFields() bool { return len(s.properties) > len("{}") }

// typeName returns the type of a schema in words, and the schema whose fields it has: that of the elements of lists and
// maps.
func (s *schema) typeName() (string, *schema) {
	prefix, elements := "list of ", s.items
	if elements == nil && !s.hasFields() && string(s.additional) != "false" {
		prefix, elements = "map of ", s.additional
	}
	if elements != nil {
		of, within := readSchema(elements).typeName()
		return prefix + of, within
	}
	text := cmp.Or(jsonscan.TextAt(s.kind), "any")
	if s.intOrString() {
		text = "integer or string"
	}
	if format := jsonscan.TextAt(s.format); format != "" {
		text += " (" + format + ")"
	}
	return text, s
}

// fieldTree is the tree of the fields of a version being written.
type fieldTree struct {
	*page
	ids         map[string]bool
	shown, left int
}

// id returns the anchor of a field within another one, unique on the page.
func (t *fieldTree) id(path, key string) string {
	id := noAnchor.ReplaceAllString(path+"."+clip(key, 80), "_")
	base := id[:min(len(id), 240)]
	for n := len(t.ids); t.ids[id] || len(id) > 250; n++ {
		id = base + "_" + strconv.Itoa(n)
	}
	t.ids[id] = true
	return id
}

func (t *fieldTree) hasRoom() bool { return t.shown < maxFields && t.hasSpace() }

// fields shows the fields of an object. Those beyond the limits are counted.
func (t *fieldTree) fields(s *schema, path string, depth int) {
	if depth == maxFieldDepth && s.hasFields() && t.hasRoom() {
		t.emit(`<p class="faint">The fields below are not shown.</p>`)
	}
	if depth == maxFieldDepth {
		return
	}
	required, list := map[string]bool{}, t.hasRoom()
	if list {
		t.emit("<ul>\n")
		jsonscan.Elements(s.required, func(key []byte) bool {
			required[string(key)] = true
			return true
		})
	}
	jsonscan.Members(s.properties, func(key, value []byte) bool {
		quoted := `"` + string(key) + `"`
		text, _ := jsonscan.Text([]byte(quoted))
		switch {
		case depth == 0 && slices.Contains([]string{"apiVersion", "kind", "metadata"}, text): // in every object
		case t.hasRoom():
			t.field(text, readSchema(value), required[quoted], t.id(path, text), depth)
		default:
			t.left++
			_, within := readSchema(value).typeName()
			t.fields(within, "", depth+1)
		}
		return true
	})
	if list {
		t.emit("</ul>\n")
	}
}

// field shows a field: one with fields can be folded.
func (t *fieldTree) field(key string, s *schema, required bool, id string, depth int) {
	t.shown++
	kind, within := s.typeName()
	parent := within.hasFields()
	t.emit(`<li id="{}"><a href="#{}" aria-label="Link to {}">#</a>`, id, id, name(key))
	switch {
	case parent && depth == 0 && key == "spec":
		t.emit(`<details open><summary>`)
	case parent:
		t.emit(`<details><summary>`)
	default:
		t.emit(`<div>`)
	}
	t.emit(`<code>{}</code> <span class="type">{}</span>`, name(key), name(kind))
	if required {
		t.emit(` <span class="tag">required</span>`)
	}
	if parent {
		t.emit("</summary>")
	}
	if about := cmp.Or(jsonscan.TextAt(s.description), jsonscan.TextAt(within.description)); about != "" {
		t.emit(`<p>{}</p>`, lines(clip(about, maxFieldText)))
	}
	t.rules(s)
	if within != s {
		t.rules(within)
	}
	if parent {
		t.fields(within, id, depth+1)
		t.emit("</details></li>\n")
	} else {
		t.emit("</div></li>\n")
	}
}

// rules are what else a schema says about a value; those with a colon are shown with what they say.
var rules = map[string]string{"default": "Default:", "enum": "One of:", "pattern": "Pattern:", "minimum": "Minimum:",
	"maximum": "Maximum:", "minLength": "Minimum length:", "maxLength": "Maximum length:", "minItems": "Minimum items:",
	"maxItems": "Maximum items:", "nullable": "May be null.", "x-kubernetes-embedded-resource": "A whole object.",
	"x-kubernetes-preserve-unknown-fields": "Other fields are kept.", "oneOf": "Matches exactly one of several forms.",
	"anyOf": "Matches one of several forms.", "allOf": "Matches several forms at once.",
	"not": "Does not match a certain form.", "x-kubernetes-validations": "Has rules in CEL."}

func (t *fieldTree) rules(s *schema) {
	for _, rule := range s.rules {
		key, value := rule[0], rule[1]
		text := rules[string(key)]
		switch {
		case strings.HasSuffix(text, ":"):
			t.emit(`<p class="faint">{} <code>{}</code></p>`, text, lines(clip(string(value), maxFieldText)))
		case string(value) != "false" && !(string(key) == "anyOf" && s.intOrString()):
			t.emit(`<p class="faint">{}</p>`, text)
		}
	}
}
