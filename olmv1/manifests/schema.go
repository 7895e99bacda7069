package manifests

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// shape is as much of a JSON schema (draft 7) as the configuration of bundles needs. A full implementation would be
// linked for it, and build its tables when the program starts.
type shape struct {
	types                []string // empty: any
	required             []string
	properties           map[string]*shape
	closed               bool   // no other properties
	additional           *shape // of other properties
	items                *shape
	allOf, anyOf, oneOf  []*shape
	ref                  *shape // if set, the other fields are not used
	minLength, maxLength int    // in characters; 0: no limit
	pattern              string
	format               string
}

// namespacePattern is that of watchNamespace.
const namespacePattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"

var namespaceRegexp = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(namespacePattern) })

// violation is what is wrong with a value, with the violations that it consists of.
type violation struct {
	at     []string // path of the value
	rule   rule
	causes []*violation

	got    string   // the type of the value
	want   []string // types, or names of properties
	length int
	limit  int
	err    error  // why the value does not have the format
	text   string // the value that should have the format
	name   string // the name of the format
}

// rule is a keyword of the schema.
type rule int

const (
	ruleType rule = iota
	ruleFormat
	ruleRef
	ruleGroup // several violations of one schema
	ruleRequired
	ruleClosed
	ruleMinLength
	ruleMaxLength
	rulePattern
	ruleAllOf
	ruleAnyOf
	ruleOneOf
)

// checker checks a value against a schema.
type checker struct{ installNamespace string }

// check returns what is wrong with a value; nil: nothing. The order is that of the reference implementation, except
// that properties are sorted.
func (c checker) check(s *shape, v any, at []string) *violation {
	if s.ref != nil {
		return c.reference(s.ref, v, at)
	}
	got := typeOf(v)
	if !s.allows(got, v) {
		return &violation{at: at, rule: ruleType, got: got, want: s.types}
	}
	if err := c.format(s.format, v); err != nil {
		text, _ := v.(string)
		return &violation{at: at, rule: ruleFormat, text: text, name: s.format, err: err}
	}
	var found []*violation
	switch v := v.(type) {
	case map[string]any:
		found = c.object(s, v, at)
	case []any:
		found = c.array(s, v, at)
	case string:
		found = checkText(s, v, at)
	}
	found = append(found, c.combined(s, v, at)...)
	switch len(found) {
	case 0:
		return nil
	case 1:
		return found[0]
	default:
		return &violation{at: at, rule: ruleGroup, causes: found}
	}
}

func (c checker) reference(s *shape, v any, at []string) *violation {
	inner := c.check(s, v, at)
	switch {
	case inner == nil:
		return nil
	case inner.rule == ruleGroup:
		return &violation{at: at, rule: ruleRef, causes: inner.causes}
	default:
		return &violation{at: at, rule: ruleRef, causes: []*violation{inner}}
	}
}

func (c checker) object(s *shape, v map[string]any, at []string) []*violation {
	var found []*violation
	var missing, unknown []string
	for _, name := range s.required {
		if _, ok := v[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		found = append(found, &violation{at: at, rule: ruleRequired, want: missing})
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		inner := cmp.Or(s.properties[name], s.additional)
		if inner == nil {
			if s.closed {
				unknown = append(unknown, name)
			}
			continue
		}
		if wrong := c.check(inner, v[name], pathInside(at, name)); wrong != nil {
			found = append(found, wrong)
		}
	}
	if len(unknown) > 0 {
		found = append(found, &violation{at: at, rule: ruleClosed, want: unknown})
	}
	return found
}

// pathInside returns the path of a part of a value.
func pathInside(at []string, name string) []string { return append(slices.Clone(at), name) }

func (c checker) array(s *shape, v []any, at []string) []*violation {
	if s.items == nil {
		return nil
	}
	var found []*violation
	for i, item := range v {
		if wrong := c.check(s.items, item, pathInside(at, strconv.Itoa(i))); wrong != nil {
			found = append(found, wrong)
		}
	}
	return found
}

func checkText(s *shape, v string, at []string) []*violation {
	var found []*violation
	n := utf8.RuneCountInString(v)
	if s.minLength > 0 && n < s.minLength {
		found = append(found, &violation{at: at, rule: ruleMinLength, length: n, limit: s.minLength})
	}
	if s.maxLength > 0 && n > s.maxLength {
		found = append(found, &violation{at: at, rule: ruleMaxLength, length: n, limit: s.maxLength})
	}
	if s.pattern != "" && !namespaceRegexp().MatchString(v) {
		found = append(found, &violation{at: at, rule: rulePattern})
	}
	return found
}

// combined checks all of, any of, and one of several schemas. At most one of those of oneOf can match a value, as they
// are for different types.
func (c checker) combined(s *shape, v any, at []string) []*violation {
	failed := func(all []*shape) []*violation {
		var out []*violation
		for _, one := range all {
			if wrong := c.check(one, v, at); wrong != nil {
				out = append(out, wrong)
			}
		}
		return out
	}
	var found []*violation
	if wrong := failed(s.allOf); len(wrong) > 0 {
		found = append(found, &violation{at: at, rule: ruleAllOf, causes: wrong})
	}
	if wrong := failed(s.anyOf); len(wrong) > 0 && len(wrong) == len(s.anyOf) {
		found = append(found, &violation{at: at, rule: ruleAnyOf, causes: wrong})
	}
	if wrong := failed(s.oneOf); len(wrong) > 0 && len(wrong) == len(s.oneOf) {
		found = append(found, &violation{at: at, rule: ruleOneOf, causes: wrong})
	}
	return found
}

// format checks the formats that have a meaning; others are not checked.
func (c checker) format(name string, v any) error {
	text, ok := v.(string)
	switch {
	case name == ownFormat || name == singleFormat:
		if !ok && c.installNamespace != "" {
			return errors.New("value must be a string")
		}
		return namespaceFormat(name, text, c.installNamespace)
	case name == "date-time" && ok:
		_, err := time.Parse(time.RFC3339, text)
		return err
	default:
		return nil
	}
}

// typeOf returns the name of the type of a value that encoding/json decoded.
func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// allows reports whether a value has one of the types. A number without a fraction is an integer.
func (s *shape) allows(got string, v any) bool {
	if len(s.types) == 0 || slices.Contains(s.types, got) {
		return true
	}
	n, ok := v.(float64)
	return ok && slices.Contains(s.types, "integer") && n == math.Trunc(n)
}

// checkSchema returns what is wrong with a configuration, in operator-controller's words.
func checkSchema(s *shape, content any, installNamespace string) error {
	wrong := checker{installNamespace}.check(s, content, nil)
	if wrong == nil {
		return nil
	}
	top := []*violation{wrong}
	if wrong.rule == ruleGroup {
		top = wrong.causes
	}
	lines := sentences(top)
	if len(lines) == 1 {
		return errors.New(lines[0])
	}
	return fmt.Errorf("multiple errors found:\n  - %s", strings.Join(lines, "\n  - "))
}

// sentences returns a line for each violation and for those that it consists of. Of a reference with one cause, the
// cause is left out: operator-controller shows them so.
func sentences(all []*violation) []string {
	var lines []string
	for _, v := range all {
		lines = append(lines, v.sentence())
		if v.rule != ruleRef || len(v.causes) > 1 {
			lines = append(lines, sentences(v.causes)...)
		}
	}
	return lines
}

func (v *violation) sentence() string {
	field := fieldPath(v.at)
	switch v.rule {
	case ruleRequired:
		if name := quotedName(v.want[0]); name != "" {
			return fmt.Sprintf("required field %q is missing", name)
		}
		return "required field is missing"
	case ruleClosed:
		if name := quotedName(v.want[0]); name != "" {
			return fmt.Sprintf("unknown field %q", name)
		}
		return "unknown field"
	case ruleType:
		what := fmt.Sprintf("got %s, want %s", v.got, strings.Join(v.want, " or "))
		switch {
		case field == "":
			return "invalid type: " + what
		case v.got == "null":
			return fmt.Sprintf("required field %q is missing", field)
		}
		return fmt.Sprintf("invalid type for field %q: %s", field, what)
	case ruleFormat:
		what := fmt.Sprintf("%s is not valid %s: %v", quoted(v.text), v.name, v.err)
		if field == "" {
			return "invalid format: " + what
		}
		return fmt.Sprintf("invalid format for field %q: %s", field, what)
	case ruleAnyOf:
		if field == "" {
			return "invalid value"
		}
		return fmt.Sprintf("invalid value for field %q", field)
	case ruleMinLength:
		return fmt.Sprintf("field %q must have minimum length of %d (len=%d)", field, v.limit, v.length)
	case ruleMaxLength:
		return fmt.Sprintf("field %q must have maximum length of %d (len=%d)", field, v.limit, v.length)
	case rulePattern:
		return fmt.Sprintf("field %q must match pattern %q", field, namespacePattern)
	case ruleAllOf:
		return "'allOf' failed"
	case ruleOneOf:
		return "'oneOf' failed, none matched"
	default: // ruleRef, ruleGroup
		return "validation failed"
	}
}

// fieldPath returns the path of a value: names joined by dots.
func fieldPath(at []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var path strings.Builder
	for _, name := range at {
		path.WriteString("/" + escape.Replace(name))
	}
	return strings.ReplaceAll(strings.TrimPrefix(path.String(), "/"), "/", ".")
}

// quoted returns a text in single quotes.
func quoted(text string) string {
	q := fmt.Sprintf("%q", text)
	q = strings.ReplaceAll(q, `\"`, `"`)
	q = strings.ReplaceAll(q, "'", `\'`)
	return "'" + q[1:len(q)-1] + "'"
}

// quotedName returns what stands between the first two single quotes of the name in single quotes.
func quotedName(name string) string {
	name, _, _ = strings.Cut(quoted(name)[1:], "'")
	return name
}
