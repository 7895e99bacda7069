package upgrade

import "testing"

// A person reads how many schemas a list has, and not the values of a program.
func TestSentences(t *testing.T) {
	const schema = "&JSONSchemaProps{ID:,Required:[a],XValidations:[]ValidationRule{},}"
	for message, want := range map[string]string{
		"allowed oneOf schemas added: [" + schema + "]":                  "v1: ^.spec: oneOf: allowed oneOf schemas added: one schema",
		"allowed oneOf schemas removed: [" + schema + " " + schema + "]": "v1: ^.spec: oneOf: allowed oneOf schemas removed: 2 schemas",
		"new enum values: [a b]":                                         "v1: ^.spec: oneOf: new enum values: [a b]",
	} {
		if got := (RefusedChange{Version: "v1", Property: "^.spec", Check: "oneOf", Message: message}).Sentence(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
