// Package schemas has the JSON Schemas of the files that bindery reads and writes, and of its answers in JSON. A test
// of the command makes them of the types that it encodes and decodes; see docs/reference/schemas.md.
package schemas

import (
	"embed"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
)

//go:embed *.json
var files embed.FS

// Schema is what is known of a schema without reading it all.
type Schema struct {
	// Name is that by which the schema is asked for.
	Name string `json:"name"`
	// Title says in a few words what the schema describes, Description says more.
	Title       string `json:"title"`
	Description string `json:"description"`
	// ID is the address at which the schema is published.
	ID string `json:"id"`
}

// Names returns the names of all schemas, sorted.
func Names() []string {
	found, err := fs.Glob(files, "*.json")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	names := make([]string, 0, len(found))
	for _, file := range found {
		names = append(names, strings.TrimSuffix(file, ".json"))
	}
	slices.Sort(names)
	return names
}

// Text returns the text of a schema; false if there is none of this name.
func Text(name string) ([]byte, bool) {
	text, err := files.ReadFile(name + ".json")
	return text, err == nil
}

// All returns what is known of all schemas, by name.
func All() ([]Schema, error) {
	var all []Schema
	for _, name := range Names() {
		text, _ := Text(name)
		s := Schema{Name: name}
		var top struct {
			ID          string `json:"$id"`
			Title       string `json:"title"`
			Description string `json:"description"`
		}
		if err := json.Unmarshal(text, &top); err != nil {
			return nil, err
		}
		s.ID, s.Title, s.Description = top.ID, top.Title, top.Description
		all = append(all, s)
	}
	return all, nil
}
