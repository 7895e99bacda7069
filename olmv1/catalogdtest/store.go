package catalogdtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/operator-bindery/bindery/declcfg"
)

// store writes the blobs of all files of a tree. The decoder is the one of catalogd, and not that of this project.
func store(w io.Writer, root fs.FS) error {
	names, err := files(root)
	if err != nil {
		return fmt.Errorf("error walking FBC root: %w", err)
	}
	types := map[string]string{} // the schema of each name in GraphQL
	var collision error
	for _, name := range names {
		err := decode(root, name, func(b *blob) error {
			if other, ok := types[b.graphql()]; ok && other != b.schema && b.schema != "" {
				both := []string{other, b.schema}
				slices.Sort(both)
				slices.Reverse(both)
				collision = fmt.Errorf("failed to pre-build GraphQL schema for catalog \"cat\": error building "+
					"GraphQL schema: type name collision: schemas %q and %q both sanitize to GraphQL type %q", both[0], both[1],
					b.graphql())
			}
			if len(b.text) == 0 { // a document of comments
				return nil
			}
			types[b.graphql()] = b.schema
			_, err := w.Write(append(b.text, '\n'))
			return err
		})
		if err != nil {
			return fmt.Errorf("error walking FBC root: %w", err)
		}
	}
	return collision
}

// files lists what is no directory, in lexical order, without what is ignored.
func files(root fs.FS) ([]string, error) {
	var names []string
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == declcfg.IgnoreFile {
			return err
		}
		ignored, err := declcfg.Ignored(root, name)
		if err == nil && !ignored {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// decode hands the blobs of a file to a function.
func decode(root fs.FS, name string, each func(*blob) error) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	for d := yaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		var b blob
		if err := d.Decode(&b); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := each(&b); err != nil {
			return err
		}
	}
}

// blob is one object of a catalog.
type blob struct {
	schema string
	text   []byte // with sorted keys
}

// UnmarshalJSON keeps the values as they are written and refuses keys of a catalog's objects that are no strings.
func (b *blob) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil || object == nil {
		return err
	}
	for _, key := range []string{"schema", "package", "name"} {
		value, ok := object[key]
		if !ok || value == nil {
			continue
		}
		s, ok := value.(string)
		if !ok {
			return fmt.Errorf("expected value for key %q to be a string, got %t: %v", key, value, value)
		}
		if key == "schema" {
			b.schema = s
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(object); err != nil {
		return err
	}
	b.text = bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	return nil
}

// graphql returns the name of the schema as a type of GraphQL.
func (b *blob) graphql() string {
	var name strings.Builder
	other := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	for _, part := range strings.FieldsFunc(b.schema, other) {
		name.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return name.String()
}
