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

// Text returns the objects of the phases, one after the other. byPhase adds a comment to the YAML above the first object
// of each phase.
func (f Format) Text(phases []Phase, byPhase bool) ([]byte, error) {
	var objects []Object
	titles := map[int]string{} // by the first object of a phase
	for i, p := range phases {
		titles[len(objects)] = fmt.Sprintf("phase %d of %d: %s", i+1, len(phases), p.Name)
		objects = append(objects, p.Objects...)
	}
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
		if title := titles[i]; byPhase && title != "" {
			out = fmt.Appendf(out, "# %s\n", title)
		}
		var err error
		if out, err = yamlout.AppendWithin(out, o.JSON, &budget); err != nil {
			return nil, fmt.Errorf("%s: %w", o, err)
		}
	}
	return out, nil
}
