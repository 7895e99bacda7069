package template

import (
	"fmt"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Type is a type of template as commands name it.
type Type string

// The types of templates.
const (
	Basic       Type = "basic"
	Semver      Type = "semver"
	Substitutes Type = "substitutes"
)

// The values of a template's root field "schema".
const (
	schemaBasic       = "olm.template.basic"
	schemaSemver      = "olm.semver"
	schemaSubstitutes = "olm.template.substitutes"
)

// Types returns all types in the order of their names.
func Types() []Type { return []Type{Basic, Semver, Substitutes} }

// schema returns the value of the root field "schema" of templates of the type; empty for an unknown type.
func (t Type) schema() string {
	switch t {
	case Basic:
		return schemaBasic
	case Semver:
		return schemaSemver
	case Substitutes:
		return schemaSubstitutes
	}
	return ""
}

// ParseType returns the type with that name; case matters.
func ParseType(name string) (Type, error) {
	for _, t := range Types() {
		if name == string(t) {
			return t, nil
		}
	}
	return "", fmt.Errorf("invalid template type %q, must be one of: %v", name, Types())
}

// Schemas returns the schemas of templates, in the order of [Types].
func Schemas() (schemas []string) {
	for _, t := range Types() {
		schemas = append(schemas, t.schema())
	}
	return schemas
}

// typeOf returns the type of templates with a schema; case matters.
func typeOf(schema string) (Type, error) {
	for _, t := range Types() {
		if schema == t.schema() {
			return t, nil
		}
	}
	return "", fmt.Errorf("unknown template schema: %s", fault.Short(schema))
}
