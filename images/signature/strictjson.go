package signature

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/operator-bindery/bindery/internal/fault"
)

// object is a JSON object whose members are known to occur once, at any depth.
type object map[string]jsontext.Value

// parseObject reads a JSON object. Two members of one name anywhere in it, another spelling of one of these names, and
// anything after the object are errors: programs differ in which of two members they take, and whether they tell
// "Subject" from "subject".
func parseObject(text []byte, names ...string) (object, error) {
	var o object
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, fmt.Errorf("%w: %v", fault.ErrInvalid, err)
	}
	if o == nil {
		return nil, fmt.Errorf("%w: null in place of an object", fault.ErrInvalid)
	}
	for member := range o {
		if slices.Contains(names, member) {
			continue
		}
		at := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, member) })
		if at >= 0 {
			return nil, fmt.Errorf("%w: the member %.60q is spelt %q", fault.ErrInvalid, member, names[at])
		}
	}
	return o, nil
}

// only returns an error if the object has other members than these, or not all of them.
func (o object) only(names ...string) error {
	for member := range o {
		if !slices.Contains(names, member) {
			return fmt.Errorf("%w: unknown member %.60q", fault.ErrInvalid, member)
		}
	}
	for _, name := range names {
		if _, ok := o[name]; !ok {
			return fmt.Errorf("%w: no member %q", fault.ErrInvalid, name)
		}
	}
	return nil
}

// text returns a member that is a string; empty if there is none.
func (o object) text(name string) (string, error) {
	raw, ok := o[name]
	if !ok {
		return "", nil
	}
	if raw.Kind() != '"' {
		return "", fmt.Errorf("%w: %s is no string", fault.ErrInvalid, name)
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("%w: %s: %v", fault.ErrInvalid, name, err)
	}
	return s, nil
}

// object returns a member that is an object.
func (o object) object(name string, names ...string) (object, error) {
	raw, ok := o[name]
	if !ok {
		return nil, fmt.Errorf("%w: no member %q", fault.ErrInvalid, name)
	}
	inner, err := parseObject(raw, names...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return inner, nil
}

// list returns a member that is an array of at most so many entries.
func (o object) list(name string, most int) ([]jsontext.Value, error) {
	raw, ok := o[name]
	if !ok {
		return nil, nil
	}
	if raw.Kind() != '[' {
		return nil, fmt.Errorf("%w: %s is no list", fault.ErrInvalid, name)
	}
	var entries []jsontext.Value
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, fmt.Errorf("%w: %s: %v", fault.ErrInvalid, name, err)
	}
	if len(entries) > most {
		return nil, fmt.Errorf("%w: %s has %d entries (limit %d)", fault.ErrLimit, name, len(entries), most)
	}
	return entries, nil
}

// bytes returns a member that is a string in base64, in the standard or the URL alphabet.
func (o object) bytes(name string) ([]byte, error) {
	s, err := o.text(name)
	if err != nil {
		return nil, err
	}
	b, err := decodeBase64(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

func decodeBase64(s string) ([]byte, error) {
	trimmed := strings.TrimRight(s, "=")
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if b, err := e.DecodeString(trimmed); err == nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("%w: not base64", fault.ErrInvalid)
}
