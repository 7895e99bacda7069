package manifests

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

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
