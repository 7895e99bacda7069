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

// Repeated returns the places of the objects that an earlier one of the same group, kind, namespace and name precedes,
// each with the place of the first such.
func Repeated(objects []Object) map[int]int {
	first, out := map[[4]string]int{}, map[int]int{}
	for i, o := range objects {
		key := [4]string{o.Group(), o.Kind, o.Namespace, o.Name}
		if earlier, twice := first[key]; twice {
			out[i] = earlier
			continue
		}
		first[key] = i
	}
	return out
}
