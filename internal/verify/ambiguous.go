package verify

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/operator-bindery/bindery/internal/fault"
)

// members are the names in manifests, indexes and descriptors that decide what an image consists of.
var members = []string{"schemaVersion", "mediaType", "artifactType", "config", "layers", "manifests", "subject",
	"digest", "size", "urls", "data", "platform", "os", "architecture", "variant", "annotations"}

// Unambiguous returns an error for the text of a manifest that has a member twice, at any depth, or one of the members
// that decide what an image consists of in another spelling. Programs differ in which of two members they take, and
// whether they tell "Manifests" from "manifests": the image that one of them has verified would not be the one that
// another runs. Names of annotations are free.
func Unambiguous(text []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowInvalidUTF8(true))
	if err := unambiguous(dec, false); err != nil {
		return fmt.Errorf("%w: ambiguous manifest: %w", fault.ErrInvalid, err)
	}
	return nil
}

// unambiguous reads one value. free tells that the names in it are free. The decoder refuses duplicates.
func unambiguous(dec *jsontext.Decoder, free bool) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case '{':
		for dec.PeekKind() != '}' {
			token, err := dec.ReadToken()
			if err != nil {
				return err
			}
			name := token.String()
			if !free && !slices.Contains(members, name) {
				for _, m := range members {
					if strings.EqualFold(m, name) {
						return fmt.Errorf("the member %.60q is spelt %q", name, m)
					}
				}
			}
			if err := unambiguous(dec, free || name == "annotations"); err != nil {
				return err
			}
		}
	case '[':
		for dec.PeekKind() != ']' {
			if err := unambiguous(dec, free); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = dec.ReadToken() // the end
	return err
}
