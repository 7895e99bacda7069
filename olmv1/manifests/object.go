package manifests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/operator-bindery/bindery/internal/canon"
)

// Object is a rendered manifest.
type Object struct {
	APIVersion, Kind, Namespace, Name string
	// JSON is the object with sorted keys and without HTML escapes, on one line without its end.
	JSON json.RawMessage
}

// String returns KIND NAMESPACE/NAME.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Group returns the API group; it is empty for the core group.
func (o Object) Group() string {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil {
		return ""
	}
	return gv.Group
}

// newObject returns the manifest of a value of a Kubernetes type.
func newObject(apiVersion, kind, namespace, name string, value any) (Object, error) {
	text, err := json.Marshal(value)
	if err == nil {
		text, err = sortedJSON(text)
	}
	if err != nil {
		return Object{}, fmt.Errorf("%s %q: %w", kind, name, err)
	}
	return Object{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name, JSON: text}, nil
}

// jsonLimits are for what was read within limits already.
var jsonLimits = canon.Limits{MaxDocument: 1 << 30, MaxDepth: 10_000, MaxMembers: 1 << 30}

func sortedJSON(text []byte) (json.RawMessage, error) {
	return canon.AppendJSON(make([]byte, 0, len(text)), text, jsonLimits, nil)
}

// found is an object of a file: a CustomResourceDefinition in definition, with its JSON as it will be printed, or any
// other in object.
type found struct {
	object     *unstructured.Unstructured
	definition *definition
}

func (f found) kind() string {
	if f.definition != nil {
		return kindCRD
	}
	return f.object.GroupVersionKind().Kind
}

// objects calls visit with each object of a file: a stream of YAML or JSON documents, of which empty ones are skipped
// and lists are taken apart. The errors are those of Kubernetes' client library, which reads what the fast reader does
// not. With definitions, CustomResourceDefinitions need not be decoded.
func objects(name string, text []byte, definitions bool, visit func(found) error) error {
	all, ok := regular(text, definitions)
	if !ok {
		return slowObjects(name, text, func(u *unstructured.Unstructured) error { return visit(found{object: u}) })
	}
	for _, f := range all {
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// slowObjects is like objects, with the decoder of Kubernetes' client library.
func slowObjects(name string, text []byte, visit func(*unstructured.Unstructured) error) error {
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var raw runtime.RawExtension
		if err := docs.Decode(&raw); err == io.EOF { //nolint:errorlint // the decoder returns it unwrapped
			return nil
		} else if err != nil {
			return fmt.Errorf("error parsing %s: %w", name, err)
		}
		doc := bytes.TrimSpace(raw.Raw)
		if len(doc) == 0 || bytes.Equal(doc, []byte("null")) {
			continue
		}
		if err := object(name, doc, visit); err != nil {
			return err
		}
	}
}

// object visits the object, or the items of the list, of one document.
func object(name string, doc []byte, visit func(*unstructured.Unstructured) error) error {
	if nesting(doc) > maxDepth {
		return limit("%s is nested deeper than %d", name, maxDepth)
	}
	obj, _, err := unstructured.UnstructuredJSONScheme.Decode(doc, nil, nil)
	if err == nil {
		err = checkMetadata(doc)
	}
	if err != nil {
		return fmt.Errorf("unable to decode %q: %w", name, err)
	}
	if u, ok := obj.(*unstructured.Unstructured); ok && !u.IsList() {
		return visit(u)
	}
	return items(obj, visit)
}

// checkMetadata refuses metadata of other types than Kubernetes'.
func checkMetadata(doc []byte) error {
	type metadataOnlyObject struct { // the name is in errors
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
	}
	var typed metadataOnlyObject
	return utiljson.Unmarshal(doc, &typed)
}

// items visits the items of a list, and those of lists in it, after one another. All errors are reported.
func items(list runtime.Object, visit func(*unstructured.Unstructured) error) error {
	var flat []runtime.Object
	for queue := []runtime.Object{list}; len(queue) > 0; queue = queue[1:] {
		if !meta.IsListType(queue[0]) {
			flat = append(flat, queue[0])
			continue
		}
		inner, err := meta.ExtractList(queue[0])
		if err != nil {
			return err
		}
		if queue = append(queue, inner...); len(queue)+len(flat) > maxObjects {
			return limit("a list with more than %d items", maxObjects)
		}
	}
	var errs []error
	for _, o := range flat {
		u, err := typedItem(o)
		if err == nil {
			err = visit(u)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return utilerrors.NewAggregate(errs)
}

// typedItem returns an item of a list if it has a kind and a version.
func typedItem(o runtime.Object) (*unstructured.Unstructured, error) {
	u, ok := o.(*unstructured.Unstructured)
	var err error
	switch {
	case !ok:
		err = fmt.Errorf("cannot type %T", o)
	case u.GroupVersionKind().Kind == "":
		err = runtime.NewMissingKindErr("object has no kind field ")
	case u.GroupVersionKind().Version == "":
		err = runtime.NewMissingVersionErr("object has no apiVersion field")
	default:
		return u, nil
	}
	return nil, fmt.Errorf("unable to get type info from the object %q: %w", reflect.TypeOf(o), err)
}

// nesting returns how deep the objects and arrays of a JSON text are nested.
func nesting(text []byte) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// compact returns JSON as encoding/json writes it: without blanks, with HTML escapes.
func compact(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

// Parse reads rendered manifests: YAML or JSON documents, or lists of objects.
func Parse(name string, text []byte) ([]Object, error) {
	var out []Object
	err := objects(name, text, false, func(f found) error {
		u := f.object
		if len(out) >= maxObjects {
			return limit("more than %d objects", maxObjects)
		}
		o, err := newObject(u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName(), u.Object)
		out = append(out, o)
		return err
	})
	return out, err
}

// ParseDir reads the rendered manifests of a directory: its files *.yaml, *.yml, *.json and *.ndjson, in directories
// too, without kustomization files. The order is that of the names.
func ParseDir(fsys fs.FS) ([]Object, error) {
	f := &files{fsys: fsys}
	var out []Object
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if f.entries++; f.entries > maxEntries {
			return limit("more than %d files", maxEntries)
		}
		if e.IsDir() || !isManifest(path.Base(name)) {
			return nil
		}
		text, err := f.read(name)
		if err != nil {
			return err
		}
		more, err := Parse(name, text)
		if out = append(out, more...); len(out) > maxObjects {
			return limit("more than %d objects", maxObjects)
		}
		return err
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%w: no manifests", ErrInvalid)
	}
	return out, err
}

func isManifest(name string) bool {
	if strings.HasPrefix(name, ".") || strings.TrimSuffix(name, path.Ext(name)) == "kustomization" {
		return false
	}
	return slices.Contains([]string{".yaml", ".yml", ".json", ".ndjson"}, path.Ext(name))
}
