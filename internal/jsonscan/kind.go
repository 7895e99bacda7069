package jsonscan

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Kind returns the member "kind" of an object without decoding the object; empty if it has none that is a string.
func Kind(object []byte) string {
	dec := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return ""
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return ""
		}
		if name.String() != "kind" {
			if dec.SkipValue() != nil {
				return ""
			}
			continue
		}
		if kind, err := dec.ReadToken(); err == nil && kind.Kind() == '"' {
			return kind.String()
		}
		return ""
	}
	return ""
}
