package upgrade

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/operator-bindery/bindery/internal/fault"
)

// compareFields appends the fields in which two values differ. Lists whose items have distinct names are compared by
// name, others of the same length item by item, and others as a whole.
func compareFields(out []fieldChange, path string, from, to any) []fieldChange {
	// Collections are not compared before their parts are: that takes the square of the depth.
	switch before := from.(type) {
	case map[string]any:
		if after, ok := to.(map[string]any); ok {
			return compareMaps(out, path, before, after, fieldOf)
		}
	case []any:
		after, ok := to.([]any)
		if !ok {
			break
		}
		x, named := byName(before)
		y, alsoNamed := byName(after)
		if named && alsoNamed && len(before)+len(after) > 0 {
			return compareMaps(out, path, x, y, itemOf)
		}
		if len(before) == len(after) {
			for i := range before {
				out = compareFields(out, itemOf(path, fmt.Sprint(i)), before[i], after[i])
			}
			return out
		}
	}
	if reflect.DeepEqual(from, to) {
		return out
	}
	return append(out, fieldChange{path, text(from), text(to)})
}

// absent is the value of a field that is not there; null is another one.
type absent struct{}

// compareMaps compares the values of two maps by key, sorted.
func compareMaps(out []fieldChange, path string, before, after map[string]any,
	at func(path, key string) string) []fieldChange {
	keys := slices.Collect(maps.Keys(before))
	for k := range after {
		if _, ok := before[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		x, ok := before[k]
		if !ok {
			x = absent{}
		}
		y, ok := after[k]
		if !ok {
			y = absent{}
		}
		out = compareFields(out, at(path, k), x, y)
	}
	return out
}

// maxPath is how many bytes of a path are kept; a digest of the rest makes it distinct.
const maxPath = 512

func fieldOf(path, key string) string {
	if path == "" {
		return shortened(key)
	}
	return shortened(path + "." + key)
}

func itemOf(path, key string) string { return shortened(path + "[" + key + "]") }

// shortened bounds a path: many fields may be below a name of megabytes.
func shortened(path string) string {
	if len(path) <= maxPath {
		return path
	}
	return fmt.Sprintf("%s%x", fault.Clip(path, maxPath/2), sha256.Sum256([]byte(path)))
}

// byName returns the items of a list by their field name, if all have distinct ones.
func byName(list []any) (map[string]any, bool) {
	out := map[string]any{}
	for _, v := range list {
		object, _ := v.(map[string]any)
		name, ok := object["name"].(string)
		if _, twice := out[name]; !ok || twice {
			return nil, false
		}
		out[name] = v
	}
	return out, true
}

// text returns a value as JSON; nil if it is absent.
func text(v any) json.RawMessage {
	if _, ok := v.(absent); ok {
		return nil
	}
	out, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return out
}
