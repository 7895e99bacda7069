package upgrade

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Judge says for which changes from one definition, as JSON, to another of the same name OLM v1 refuses an upgrade. The
// error says why that is not known.
type Judge func(ctx context.Context, name string, from, to []byte) ([]RefusedChange, error)

// RefusedChange is a change of a definition that OLM v1 refuses.
type RefusedChange struct {
	// Version is the version of the definition in which it is, "v1 -> v2" if it is between two that are served, or empty
	// for the definition as a whole.
	Version string `json:"version,omitempty"`
	// Property is the path of the property with ^ for the root, as ^.spec.size; empty for the definition as a whole.
	Property string `json:"property,omitempty"`
	// Check is the name of the check.
	Check string `json:"check"`
	// Message says what changes.
	Message string `json:"message"`
}

// String returns the line of operator-controller's message.
func (c RefusedChange) String() string {
	if c.Version == "" {
		return c.Check + ": " + c.Message
	}
	return c.Version + ": " + c.Property + ": " + c.Check + ": " + c.Message
}

// Sentence is String for people: of schemas that operator-controller writes as Go values it says how many there are.
func (c RefusedChange) Sentence() string {
	const schema = "&JSONSchemaProps{"
	head, list, ok := strings.Cut(c.String(), "["+schema)
	if !ok {
		return head
	}
	if n := 1 + strings.Count(list, " "+schema); n > 1 {
		return fmt.Sprintf("%s%d schemas", head, n)
	}
	return head + "one schema"
}

// Compare orders changes by version, property, check and message.
func (c RefusedChange) Compare(o RefusedChange) int {
	return cmp.Or(cmp.Compare(c.Version, o.Version), cmp.Compare(c.Property, o.Property), cmp.Compare(c.Check, o.Check),
		cmp.Compare(c.Message, o.Message))
}

// verdict is what OLM v1 says of a definition.
type verdict struct {
	changes []RefusedChange
	unknown string // why OLM v1's answer is not known
}

// verdict returns what OLM v1 says of an object in place of another one, which is about definitions alone. The error is
// that of the context.
func (judge Judge) verdict(ctx context.Context, from, to item) (v verdict, err error) {
	const version = "apiextensions.k8s.io/v1"
	switch {
	case judge == nil || !isDefinition(to.Object):
	case from.content["apiVersion"] != version || to.content["apiVersion"] != version:
		v.unknown = "it looks at definitions of " + version
	default:
		if v.changes, err = judge(ctx, to.Name, from.text, to.text); err != nil {
			v.unknown = err.Error()
		}
	}
	return v, context.Cause(ctx)
}

// checked are the attributes that have a check of their own; a change of any other one is refused as such.
var checked = []string{"type", "enum", "default", "required", "maximum", "maxItems", "maxLength", "maxProperties",
	"minimum", "minItems", "minLength", "minProperties", "pattern", "nullable", "oneOf"}

const unhandled = "unhandled" // the check for all other attributes

// markRefused marks the details for which OLM v1 refuses the upgrade.
func (v *VersionChange) markRefused(all []RefusedChange) {
	for i := range v.Details {
		d := &v.Details[i]
		if d.Field == "" {
			continue // OLM v1 compares only fields of schemas
		}
		check, _, _ := strings.Cut(d.Attribute, ".")
		if check, _, _ = strings.Cut(check, "["); !slices.Contains(checked, check) {
			check = unhandled
		}
		d.Refused = isRefused(all, v.Name, d.Field, check)
	}
}

// isRefused reports whether a check refuses a field of a version. A change in the values of a map is one of the field
// that has the map, too.
func isRefused(all []RefusedChange, version, field, check string) bool {
	has := func(field, check string) bool {
		property := propertyOf(field)
		return slices.ContainsFunc(all, func(c RefusedChange) bool {
			return c.Version == version && c.Property == property && c.Check == check
		})
	}
	outer, _, inMap := strings.Cut(field, "{}")
	return has(field, check) || inMap && has(outer, unhandled)
}

// removes reports whether OLM v1 refuses that a field is removed.
func removes(all []RefusedChange, version, field string) bool {
	end := " : " + version + "." + propertyOf(field)
	return slices.ContainsFunc(all, func(c RefusedChange) bool {
		return c.Check == "existingFieldRemoval" && strings.HasSuffix(c.Message, end)
	})
}

// retypes reports whether OLM v1 refuses that a field has another type.
func retypes(all []RefusedChange, version, field string) bool {
	return isRefused(all, version, field, "type")
}

// demands reports whether OLM v1 refuses that a field is required.
func demands(all []RefusedChange, version, field string) bool {
	outer, name := "", field
	if i := strings.LastIndexByte(field, '.'); i >= 0 {
		outer, name = field[:i], field[i+1:]
	}
	return isRefused(all, version, outer, "required") && slices.ContainsFunc(all, func(c RefusedChange) bool {
		_, list, _ := strings.Cut(strings.TrimSuffix(c.Message, "]"), "[")
		return c.Check == "required" && c.Version == version && slices.Contains(strings.Fields(list), name)
	})
}

// propertyOf returns the path of a field as OLM v1 has it.
func propertyOf(field string) string {
	if field == "" || field == "^" {
		return "^"
	}
	path := strings.NewReplacer("[]", ".items", "{}", ".additionalProperties").Replace(field)
	if strings.HasPrefix(path, ".") {
		return "^" + path
	}
	return "^." + path
}
