package catalogdir

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/operator-bindery/bindery/internal/canon"
)

// maxPatchDepth is the depth to which key order is preserved and YAML is patched.
const maxPatchDepth = 32

// object is a JSON object with the order of its keys.
type object struct {
	keys   []string
	values map[string]json.RawMessage
}

// parseObject parses the top level of an object. ok is false if text is not an object or repeats a key.
func parseObject(text []byte) (object, bool) {
	o := object{values: map[string]json.RawMessage{}}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return o, false
	}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok || o.values[key] != nil {
			return o, false
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return o, false
		}
		o.keys, o.values[key] = append(o.keys, key), value
	}
	if _, err := d.Token(); err != nil {
		return o, false
	}
	_, err := d.Token()
	return o, errors.Is(err, io.EOF)
}

// array parses the top level of an array.
func array(text []byte) ([]json.RawMessage, bool) {
	var a []json.RawMessage
	err := json.Unmarshal(text, &a)
	return a, err == nil && a != nil
}

// inOrder sorts the keys now by their order in before. New keys are inserted at their position in now if the common
// keys have the same order, and appended otherwise.
func inOrder(before, now []string) []string {
	kept := slices.DeleteFunc(slices.Clone(before), func(key string) bool { return !slices.Contains(now, key) })
	common := slices.DeleteFunc(slices.Clone(now), func(key string) bool { return !slices.Contains(before, key) })
	if slices.Equal(kept, common) {
		return now
	}
	for _, key := range now {
		if !slices.Contains(kept, key) {
			kept = append(kept, key)
		}
	}
	return kept
}

// withKeyOrder writes the JSON text now, compact, with the keys of its objects in the order of before. An item of an
// array is ordered like the item it corresponds to, or else like the last one.
func withKeyOrder(before, now []byte, depth int) []byte {
	if depth > maxPatchDepth {
		return now
	}
	if was, ok := parseObject(before); ok {
		is, ok := parseObject(now)
		if !ok {
			return now
		}
		out := []byte{'{'}
		for n, key := range inOrder(was.keys, is.keys) {
			if n > 0 {
				out = append(out, ',')
			}
			quoted, _ := canon.Encode(key) // encoding a string cannot fail
			out = append(append(out, quoted...), ':')
			out = append(out, withKeyOrder(was.values[key], is.values[key], depth+1)...)
		}
		return append(out, '}')
	}
	was, ok := array(before)
	is, isArray := array(now)
	if !ok || !isArray || len(was) == 0 {
		return now
	}
	pairs := pair(was, is)
	out := []byte{'['}
	for n, item := range is {
		if n > 0 {
			out = append(out, ',')
		}
		like := len(was) - 1
		if pairs[n].old >= 0 {
			like = pairs[n].old
		}
		out = append(out, withKeyOrder(was[like], item, depth+1)...)
	}
	return append(out, ']')
}

// match pairs an item of an array with the old one; old is -1 for a new item.
type match struct {
	old  int
	same bool
}

// pair finds the old item of each item: an equal one, or else one with the same subject.
func pair(before, now []json.RawMessage) []match {
	texts := make(map[string][]int, len(before))
	subjects := make(map[string][]int, len(before))
	for n, item := range before {
		texts[canonical(item)] = append(texts[canonical(item)], n)
	}
	taken := make([]bool, len(before))
	pairs := make([]match, len(now))
	for n, item := range now {
		text := canonical(item)
		pairs[n].old = -1
		if at := texts[text]; len(at) > 0 {
			pairs[n] = match{at[0], true}
			taken[at[0]], texts[text] = true, at[1:]
		}
	}
	for n, item := range before {
		if subject := subjectOf(item); !taken[n] && subject != "" {
			subjects[subject] = append(subjects[subject], n)
		}
	}
	for n, item := range now {
		if pairs[n].old >= 0 {
			continue
		}
		if subject := subjectOf(item); len(subjects[subject]) > 0 {
			pairs[n].old = subjects[subject][0]
			subjects[subject] = subjects[subject][1:]
		}
	}
	return pairs
}

// subjectOf returns what an array item is about: a name, the reference of a deprecation, or the type of a property. It
// is empty for other items.
func subjectOf(item []byte) string {
	o, ok := parseObject(item)
	if !ok {
		return ""
	}
	for _, key := range []string{"name", "reference", "type"} {
		if value := o.values[key]; value != nil {
			return key + canonical(value)
		}
	}
	return ""
}

// canonical returns a JSON text with sorted keys and without white space.
func canonical(text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return string(text)
	}
	out, err := json.Marshal(value)
	if err != nil {
		return string(text)
	}
	return string(out)
}
