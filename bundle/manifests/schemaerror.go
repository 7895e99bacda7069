package manifests

import (
	"errors"
	"fmt"
	"strings"
)

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
