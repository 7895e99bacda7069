package manifests

import (
	"bytes"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace returns the manifest of a namespace.
func Namespace(name string) (Object, error) {
	ns := corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name}}
	return newObject("v1", "Namespace", "", name, ns)
}

// objectIn decodes the members of an object; nothing and null have none.
func objectIn(text json.RawMessage, members *map[string]json.RawMessage) error {
	if len(text) == 0 || string(text) == "null" {
		return nil
	}
	return json.Unmarshal(text, members)
}

// indentless returns JSON on one line without HTML escapes.
func indentless(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Repeated returns the objects that an earlier one of the same group, kind, namespace and name precedes: the bundle
// has them twice, and the later one replaces the earlier.
func Repeated(objects []Object) []Object {
	seen := map[[4]string]bool{}
	var out []Object
	for _, o := range objects {
		key := [4]string{o.Group(), o.Kind, o.Namespace, o.Name}
		if seen[key] {
			out = append(out, o)
		}
		seen[key] = true
	}
	return out
}
