package manifests

import (
	"fmt"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Bundle is a registry+v1 bundle as OLM v1 reads it. It is safe for concurrent use.
type Bundle struct {
	name    string // of the package
	csv     v1alpha1.ClusterServiceVersion
	csvFile string
	crds    []definition
	others  []other
}

// definition is a CustomResourceDefinition. Its fields are those of the v1 type, whatever apiVersion it has.
type definition struct {
	Object
	preservesUnknown bool // spec.preserveUnknownFields
	file             string
}

// other is an object that is neither a ClusterServiceVersion nor a CustomResourceDefinition, with all its fields.
type other struct {
	unstructured.Unstructured
	file string
}

// Package returns the name of the package that metadata/annotations.yaml declares; it may be empty.
func (b *Bundle) Package() string { return b.name }

// Name returns the metadata.name of the ClusterServiceVersion.
func (b *Bundle) Name() string { return b.csv.Name }

// Version returns the spec.version of the ClusterServiceVersion; it is empty if there is none.
func (b *Bundle) Version() string {
	if v := b.csv.Spec.Version.String(); v != "0.0.0" {
		return v
	}
	return ""
}

// SuggestedNamespace returns the namespace in which the ClusterServiceVersion wants to be installed: its annotation
// operatorframework.io/suggested-namespace, or PACKAGE-system. Said is true if the annotation is there.
func (b *Bundle) SuggestedNamespace() (namespace string, said bool) {
	if n := b.csv.Annotations["operatorframework.io/suggested-namespace"]; n != "" {
		return n, true
	}
	return b.name + "-system", false
}

// InstallModes returns the supported install modes, sorted.
func (b *Bundle) InstallModes() []string {
	modes := b.supportedModes()
	out := make([]string, len(modes))
	for i, m := range modes {
		out[i] = string(m)
	}
	return out
}

// HasWebhooks reports whether the bundle needs a certificate provider.
func (b *Bundle) HasWebhooks() bool { return len(b.csv.Spec.WebhookDefinitions) > 0 }

// The classes of errors of this package.
var (
	// ErrInvalid is the class of errors about bundles that OLM v1 refuses.
	ErrInvalid = fault.New(fault.Input, "OLM v1 refuses the bundle")
	// ErrForeign is the class of errors about a directory that has files of others.
	ErrForeign = fault.New(fault.Local, "the directory has other files")
)

// ReadError is a bundle that OLM v1 cannot read.
type ReadError struct {
	// File is the name in the bundle of the file that is wrong or missing; it is empty for the bundle as a whole.
	File string
	Err  error
}

// Error returns the message of operator-controller.
func (e *ReadError) Error() string { return e.Err.Error() }

// Unwrap returns [ErrInvalid] and the cause.
func (e *ReadError) Unwrap() []error { return []error{ErrInvalid, e.Err} }

// refusal is an error of operator-controller about a bundle, with its text.
type refusal struct{ text string }

func (e *refusal) Error() string { return e.text }
func (e *refusal) Unwrap() error { return ErrInvalid }

func refusef(format string, a ...any) error { return &refusal{fmt.Sprintf(format, a...)} }
