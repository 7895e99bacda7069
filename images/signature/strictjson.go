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

// object is a JSON object whose members are known to occur once, at any depth. What is wrong with it, or with an object
// in it, is kept for the end of the reading: the first error is that of all, and what is wrong is read as empty.
type object struct {
	members map[string]jsontext.Value
	at      string // where it is, for errors
	err     *error
}

// parseObject reads a JSON object. Two members of one name anywhere in it, another spelling of one of these names, and
// anything after the object are errors: programs differ in which of two members they take, and whether they tell
// "Subject" from "subject". A name may have two spellings, "mediaType|media_type", as in the JSON form of protocol
// buffers: the member has the first of them.
func parseObject(text []byte, names ...string) object {
	return object{err: new(error)}.parse("", text, names...)
}

// parse reads an object that is in another one.
func (o object) parse(at string, text []byte, names ...string) object {
	in := object{members: map[string]jsontext.Value{}, at: o.at + at, err: o.err}
	var all map[string]jsontext.Value
	if err := json.Unmarshal(text, &all); err != nil {
		in.invalid("%v", err)
	} else if all == nil {
		in.invalid("null in place of an object")
	}
	named := map[string]string{}
	for _, name := range names {
		spellings := strings.Split(name, "|")
		for _, spelling := range spellings {
			named[spelling] = spellings[0]
		}
	}
	for member, value := range all {
		name, known := named[member]
		if !known {
			name = member
			for spelling := range named {
				if strings.EqualFold(spelling, member) {
					in.invalid("the member %.60q is spelt %q", member, spelling)
				}
			}
		}
		if in.has(name) {
			in.invalid("the member %q is there in both spellings", name)
		}
		in.members[name] = value
	}
	return in
}

// fail keeps an error, unless there is one already.
func (o object) fail(err error) {
	if *o.err == nil && err != nil {
		*o.err = fmt.Errorf("%s%w", o.at, err)
	}
}

// invalid keeps an error of the class [fault.ErrInvalid].
func (o object) invalid(format string, args ...any) {
	o.fail(fmt.Errorf("%w: %s", fault.ErrInvalid, fmt.Sprintf(format, args...)))
}

func (o object) has(name string) bool {
	_, ok := o.members[name]
	return ok
}

// checkMembers returns the object, which must have these members and no others.
func (o object) checkMembers(names ...string) object {
	for member := range o.members {
		if !slices.Contains(names, member) {
			o.invalid("unknown member %.60q", member)
		}
	}
	for _, name := range names {
		if !o.has(name) {
			o.invalid("no member %q", name)
		}
	}
	return o
}

// text returns a member that is a string; empty if there is none.
func (o object) text(name string) (s string) {
	raw, ok := o.members[name]
	if !ok {
		return ""
	}
	if raw.Kind() != '"' {
		o.invalid("%s is no string", name)
	} else if err := json.Unmarshal(raw, &s); err != nil {
		o.invalid("%s: %v", name, err)
	}
	return s
}

// object returns a member that is an object.
func (o object) object(name string, names ...string) object {
	if !o.has(name) {
		o.invalid("no member %q", name)
		return object{err: o.err}
	}
	return o.parse(name+": ", o.members[name], names...)
}

// list returns the entries of a member that is an array; none if there is no such member. An array of more than most
// entries is an error.
func (o object) list(name string, most int) (entries []jsontext.Value) {
	raw, ok := o.members[name]
	if !ok {
		return nil
	}
	if raw.Kind() != '[' {
		o.invalid("%s is no list", name)
	} else if err := json.Unmarshal(raw, &entries); err != nil {
		o.invalid("%s: %v", name, err)
	}
	if len(entries) > most {
		o.fail(fmt.Errorf("%w: %s has %d entries (limit %d)", fault.ErrLimit, name, len(entries), most))
		return nil
	}
	return entries
}

// bytes returns a member that is a string in base64.
func (o object) bytes(name string) []byte {
	b, err := decodeBase64(o.text(name))
	if err != nil {
		o.fail(fmt.Errorf("%s: %w", name, err))
	}
	return b
}

// decodeBase64 decodes the standard or the URL alphabet.
func decodeBase64(s string) ([]byte, error) {
	trimmed := strings.TrimRight(s, "=")
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if b, err := e.DecodeString(trimmed); err == nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("%w: not base64", fault.ErrInvalid)
}
