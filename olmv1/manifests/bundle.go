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

// ErrInvalid is the class of errors about bundles that OLM v1 refuses.
var ErrInvalid = fault.New(fault.Input, "OLM v1 refuses the bundle")

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

// Applied is an object that a cluster gets, with where in the bundle it comes from.
type Applied struct {
	Object
	// File is the file with the object or with the ClusterServiceVersion from which it is generated; it is empty if the
	// bundle has no files, see [FromObjects]. Path is the place in the ClusterServiceVersion of what it is generated
	// from; nil for an object of the bundle.
	File string
	Path []any
}

// origin is where an object comes from. If given is set, the object is in the file; else it is generated from the
// ClusterServiceVersion in the file.
type origin struct {
	file  string
	given bool
}

// Applied returns the objects that a cluster would get from the bundle, in the order of [Bundle.Manifests], also if its
// install modes or the configuration do not allow it to be installed. If a validator refuses the bundle, or if its
// objects cannot be generated, they are those in the bundle's files alone.
func (b *Bundle) Applied(s Settings) []Applied {
	c, err := b.configuration(s)
	if err != nil {
		c = configuration{}
	}
	targets, err := b.targets(s.InstallNamespace, c.targets)
	if err != nil {
		targets = []string{""}
	}
	var g *generation
	if err = b.validate(); err == nil {
		g, err = b.generation(RenderOptions{InstallNamespace: s.InstallNamespace, Certs: s.Certs,
			DeploymentConfig: c.deployment}, targets)
	}
	if err != nil {
		g = &generation{Bundle: b, namespace: s.InstallNamespace}
		for _, d := range b.crds {
			g.from = origin{d.file, true}
			if g.append(d.Object) != nil {
				return nil
			}
		}
		if g.addOthers() != nil {
			return nil
		}
	}
	out := make([]Applied, len(g.objects))
	for i, object := range g.objects {
		out[i] = Applied{Object: object, File: g.origins[i].file}
		if !g.origins[i].given {
			out[i].Path = b.source(object)
		}
	}
	return out
}

// source returns the place in the ClusterServiceVersion of what an object is generated from.
func (b *Bundle) source(o Object) []any {
	switch o.Kind {
	case "Deployment":
		for i, d := range b.deployments() {
			if d.Name == o.Name {
				return []any{"spec", "install", "spec", "deployments", i}
			}
		}
	case "Service", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		return []any{"spec", "webhookdefinitions"}
	}
	return []any{"spec", "install", "spec"}
}
