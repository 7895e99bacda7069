package bundlecheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	crdv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/bundlefs"
)

const (
	kindCSV = "ClusterServiceVersion"
	kindCRD = "CustomResourceDefinition"

	csvVersion        = "operators.coreos.com/v1alpha1"
	crdVersion        = "apiextensions.k8s.io/v1"
	crdVersionV1beta1 = "apiextensions.k8s.io/v1beta1"

	ruleObjectInvalid = "object-invalid"
)

// object is an object of the manifests with the type that its kind's validators need; at most one of these is set.
type object struct {
	bundle.Object
	raw     *unstructured.Unstructured
	csv     *v1alpha1.ClusterServiceVersion
	crd     *crdv1.CustomResourceDefinition
	crdBeta *crdv1beta1.CustomResourceDefinition
}

// maxDefinitionNodes is the maximum number of JSON objects in all validated CustomResourceDefinitions. Kubernetes'
// validators need some 5 KB of memory for each, 250 MB for this number. Large real bundles have 8,000.
const maxDefinitionNodes = 50_000

// definitionNodes counts the JSON objects of the definitions, including braces in strings.
func (r *run) definitionNodes() (n int) {
	for _, o := range r.b.Objects {
		if o.Kind == kindCRD && o.First() {
			n += bytes.Count(o.JSON, []byte("{"))
		}
	}
	return n
}

// typed decodes the objects that are validated; one that cannot be decoded as its kind is an error.
func (r *run) typed() (out []object) {
	for _, o := range r.b.Objects {
		if o.First() && r.ctx.Err() == nil {
			out = append(out, r.typedOne(o))
		}
	}
	return out
}

func (r *run) typedOne(o bundle.Object) object {
	out := object{Object: o}
	raw := &unstructured.Unstructured{}
	if err := raw.UnmarshalJSON(o.JSON); err != nil {
		r.fail(ruleObjectInvalid, placeIn(o), "%s %q is no Kubernetes object: %v", o.Kind, o.Name, err)
		return out
	}
	out.raw = raw
	var err error
	switch {
	case o.Kind == kindCSV:
		out.csv, err = decode[v1alpha1.ClusterServiceVersion](o)
	case o.Kind == kindCRD && o.APIVersion == crdVersion:
		out.crd, err = decode[crdv1.CustomResourceDefinition](o)
	case o.Kind == kindCRD && o.APIVersion == crdVersionV1beta1:
		out.crdBeta, err = decode[crdv1beta1.CustomResourceDefinition](o)
	case o.Kind == kindCRD:
		err = fmt.Errorf("unsupported CRD version %s", o.APIVersion)
	default:
		r.metadataOf(o, false)
	}
	if err != nil {
		r.undecodable(o, err)
	}
	return out
}

// undecodable reports an object that cannot be decoded as its kind.
func (r *run) undecodable(o bundle.Object, err error) {
	if slices.ContainsFunc(r.b.Problems, func(p bundle.Problem) bool {
		return p.Field == "spec.release" && p.File == o.File
	}) {
		return // that is the error, which the library says without its place
	}
	path, text := bundlefs.TypeProblem(o.JSON, err)
	r.addFinding(finding{Problem: bundle.Problem{Severity: bundle.SeverityError, Rule: ruleObjectInvalid,
		Message: fmt.Sprintf("%s %q cannot be read: %s", o.Kind, o.Name, text)},
		opm: fmt.Sprintf("%s %q cannot be read: %v", o.Kind, o.Name, err), place: placeIn(o, path...)})
}

func decode[T any](o bundle.Object) (*T, error) {
	out := new(T)
	if err := json.Unmarshal(o.JSON, out); err != nil {
		return nil, err
	}
	return out, nil
}

// metadataOf checks the metadata of an object of another kind: the names of labels and annotations, and the namespace,
// which OLM chooses unless anywhere is set.
func (r *run) metadataOf(o bundle.Object, anywhere bool) {
	var v struct {
		metav1.TypeMeta
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(o.JSON, &v); err != nil {
		r.undecodable(o, err)
		return
	}
	namespace := v.Namespace
	v.Namespace = ""
	anyName := func(string, bool) []string { return nil }
	for _, e := range apivalidation.ValidateObjectMeta(&v.ObjectMeta, false, anyName, field.NewPath("metadata")) {
		r.fail("object-metadata", placeIn(o, bundlefs.FieldPath(e.Field)...), "error validating object metadata: %s",
			e.ErrorBody())
	}
	if namespace != "" && !anywhere {
		r.warn("namespace", placeIn(o, "metadata", "namespace"),
			"%s %q names the namespace %q; OLM installs into the operator's own", o.Kind, o.Name, namespace)
	}
}
