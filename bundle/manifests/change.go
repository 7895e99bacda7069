package manifests

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace returns the manifest of a namespace.
func Namespace(name string) (Object, error) {
	ns := corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name}}
	return newObject("v1", "Namespace", "", name, ns)
}

// WithOwner returns the objects with the labels that OLM adds to what a ClusterExtension of this name owns.
func WithOwner(objects []Object, extension string) ([]Object, error) {
	return relabelled(objects, map[string]string{labelOwnerKind: "ClusterExtension", labelOwnerName: extension})
}

// The labels of what a ClusterExtension owns (OLMV1 section 3.7).
const (
	labelOwnerKind = "olm.operatorframework.io/owner-kind"
	labelOwnerName = "olm.operatorframework.io/owner-name"
)

// Owner returns the name of the ClusterExtension that the labels of [WithOwner] name; empty without these.
func (o Object) Owner() string {
	var content struct {
		Metadata struct {
			Labels map[string]any `json:"labels"`
		} `json:"metadata"`
	}
	if json.Unmarshal(o.JSON, &content) != nil {
		return ""
	}
	owner, _ := content.Metadata.Labels[labelOwnerName].(string)
	return owner
}

// relabelled returns copies of the objects with more labels.
func relabelled(objects []Object, labels map[string]string) ([]Object, error) {
	out := make([]Object, len(objects))
	for i, o := range objects {
		var top map[string]json.RawMessage
		if err := json.Unmarshal(o.JSON, &top); err != nil {
			return nil, fmt.Errorf("%s: %w", o, err)
		}
		metadata, all := map[string]json.RawMessage{}, map[string]json.RawMessage{}
		if err := objectIn(top["metadata"], &metadata); err != nil {
			return nil, fmt.Errorf("%s: metadata: %w", o, err)
		}
		if err := objectIn(metadata["labels"], &all); err != nil {
			return nil, fmt.Errorf("%s: labels: %w", o, err)
		}
		for k, v := range labels {
			text, err := indentless(v)
			if err != nil {
				return nil, err
			}
			all[k] = text
		}
		var err error
		if metadata["labels"], err = indentless(all); err != nil {
			return nil, err
		}
		if top["metadata"], err = indentless(metadata); err != nil {
			return nil, err
		}
		text, err := indentless(top)
		if err == nil {
			text, err = sortedJSON(text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o, err)
		}
		o.JSON = text
		out[i] = o
	}
	return out, nil
}

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
