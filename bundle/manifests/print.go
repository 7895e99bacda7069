package manifests

import (
	"encoding/json"
	"fmt"

	"github.com/operator-bindery/bindery/internal/indented"
	"github.com/operator-bindery/bindery/internal/yamlout"
)

// Format is how objects are written.
type Format string

const (
	// YAML is a stream of documents, each after a line "---".
	YAML Format = "yaml"
	// JSON is one object: a List of version v1.
	JSON Format = "json"
	// NDJSON is an object on each line, with sorted keys.
	NDJSON Format = "ndjson"
)

// Formats returns the names of the formats.
func Formats() []string { return []string{string(YAML), string(JSON), string(NDJSON)} }

// Text returns the objects in a format. With a title, which returns a line for the first object of a group, the YAML
// has it as a comment; nil: none.
func Text(objects []Object, f Format, title func(i int) string) ([]byte, error) {
	var out []byte
	switch f {
	case JSON:
		list := map[string]any{"apiVersion": "v1", "kind": "List", "items": []json.RawMessage{}}
		items := make([]json.RawMessage, len(objects))
		for i, o := range objects {
			items[i] = o.JSON
		}
		list["items"] = items
		return indented.Encode(list, "    ")
	case NDJSON:
		for _, o := range objects {
			out = append(append(out, o.JSON...), '\n')
		}
		return out, nil
	}
	var budget indented.Budget
	for i, o := range objects {
		out = append(out, "---\n"...)
		if title != nil && title(i) != "" {
			out = fmt.Appendf(out, "# %s\n", title(i))
		}
		var err error
		if out, err = yamlout.AppendWithin(out, o.JSON, &budget); err != nil {
			return nil, fmt.Errorf("%s: %w", o, err)
		}
	}
	return out, nil
}

// Ordered returns the objects of all phases, one after the other, and a title for the first object of each.
func Ordered(phases []Phase) (objects []Object, title func(i int) string) {
	titles := map[int]string{}
	for i, p := range phases {
		titles[len(objects)] = fmt.Sprintf("phase %d of %d: %s", i+1, len(phases), p.Name)
		objects = append(objects, p.Objects...)
	}
	return objects, func(i int) string { return titles[i] }
}
