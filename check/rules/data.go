package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/operator-bindery/bindery/check/openshift"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/shape"
)

// Data is the rule data: what an installation of a pipeline demands. The keys are those of Conforma's rule data; those
// of Konflux' tasks, which have their values in scripts, begin with fbc_, and those about versions of OpenShift with
// openshift_.
type Data struct {
	// ImagePrefixes are how the names of images begin that a bundle may refer to.
	ImagePrefixes []string `json:"allowed_olm_image_registry_prefixes,omitempty"`
	// Kinds are the kinds of manifests that a bundle may have.
	Kinds []string `json:"allowed_olm_resource_kinds,omitempty"`
	// Features are the annotations that must be "true" or "false".
	Features []string `json:"required_olm_features_annotations,omitempty"`
	// NetworkPolicyExceptions are the packages that need no permission to manage NetworkPolicies, each with the
	// versions, as "1.2", of which this is true.
	NetworkPolicyExceptions map[string][]string `json:"operator_network_policy_rbac_exceptions,omitempty"`
	// BasePrefixes are how the names of base images begin.
	BasePrefixes []string `json:"allowed_registry_prefixes,omitempty"`

	Required      []label  `json:"required_labels,omitempty"`
	Optional      []label  `json:"optional_labels,omitempty"`
	Deprecated    []label  `json:"deprecated_labels,omitempty"`
	Inherited     []label  `json:"disallowed_inherited_labels,omitempty"`
	FBCRequired   []label  `json:"fbc_required_labels,omitempty"`
	FBCOptional   []label  `json:"fbc_optional_labels,omitempty"`
	FBCInherited  []label  `json:"fbc_disallowed_inherited_labels,omitempty"`
	FBCBaseImages []string `json:"fbc_base_images,omitempty"`
	// FBCBundlePrefixes are how the names of bundle images in a catalog begin.
	FBCBundlePrefixes []string `json:"fbc_bundle_registry_prefixes,omitempty"`

	// Kubernetes is that of versions of OpenShift which the program does not know.
	Kubernetes []kubernetesIn `json:"openshift_kubernetes,omitempty"`
	// Indices are the versions of OpenShift for which an organization has an index, in place of the built-in ones.
	Indices map[string][]openshift.Version `json:"openshift_indices,omitempty"`
}

// kubernetesIn is the Kubernetes in a version of OpenShift. It is an entry of a list, since YAML reads a key 4.20 that is
// not in quotes as 4.2.
type kubernetesIn struct {
	OpenShift  openshift.Version    `json:"openshift"`
	Kubernetes openshift.Kubernetes `json:"kubernetes"`
}

// OpenShift returns what is known of the versions of OpenShift. The data may be nil.
func (d *Data) OpenShift() *openshift.Table {
	if d == nil {
		return openshift.NewTable(nil, nil)
	}
	kubernetes := map[openshift.Version]openshift.Kubernetes{}
	for _, k := range d.Kubernetes {
		kubernetes[k.OpenShift] = k.Kubernetes
	}
	return openshift.NewTable(kubernetes, d.Indices)
}

// label is a label that images should have or not have.
type label struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Replacement string   `json:"replacement,omitempty"` // of a deprecated label
	Values      []string `json:"values,omitempty"`      // the values that a required label may have; empty: any
	EffectiveOn string   `json:"effective_on,omitempty"`
}

// maxDataFile limits the bytes of a file of rule data.
const maxDataFile = 4 << 20

// builtin returns what the public scripts and policies have; the rest is of each installation.
func builtin() *Data {
	return &Data{
		Features: []string{
			"features.operators.openshift.io/disconnected",
			"features.operators.openshift.io/fips-compliant",
			"features.operators.openshift.io/proxy-aware",
			"features.operators.openshift.io/cnf",
			"features.operators.openshift.io/cni",
			"features.operators.openshift.io/csi",
			"features.operators.openshift.io/tls-profiles",
			"features.operators.openshift.io/token-auth-aws",
			"features.operators.openshift.io/token-auth-azure",
			"features.operators.openshift.io/token-auth-gcp",
		},
		FBCBaseImages: []string{
			"registry.redhat.io/openshift4/ose-operator-registry",
			"registry.redhat.io/openshift4/ose-operator-registry-rhel9",
			"registry.redhat.io/openshift5/ose-operator-registry",
			"registry.redhat.io/openshift5/ose-operator-registry-rhel9",
			"brew.registry.redhat.io/rh-osbs/openshift-ose-operator-registry-rhel9",
		},
		FBCBundlePrefixes: []string{"registry.redhat.io/", "registry.stage.redhat.io/"},
	}
}

// dataShape is the shape of a file of rule data: the keys, or rule_data with them.
var dataShape = func() *shape.Shape {
	fields := shape.FieldsOf[Data]()
	fields["rule_data"] = shape.Open(shape.FieldsOf[Data]())
	return shape.Open(fields)
}()

// ReadData reads rule data from YAML or JSON: the keys, or a map rule_data with them. A key that is given replaces the
// built-in value. Keys that this program does not use are accepted, since the file is that of a whole policy, unless
// they begin with fbc_, openshift_ or allowed_olm_ and are thus meant for it.
func ReadData(r io.Reader, file string) (*Data, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxDataFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxDataFile {
		return nil, fmt.Errorf("%s: larger than %d bytes", file, maxDataFile)
	}
	doc, err := shape.Read(bytes.NewReader(text), dataShape, shape.Options{File: file})
	if err != nil {
		return nil, err
	}
	outer := struct {
		Data *Data `json:"rule_data"`
	}{builtin()}
	content, d := doc.JSON, outer.Data
	if inner := jsonscan.Member(doc.JSON, "rule_data"); shape.Of(inner) == shape.Mapping {
		content, err = inner, doc.Decode(&outer)
	} else {
		err = doc.Decode(d)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var errs []error
	for i, k := range d.Kubernetes {
		if (k.OpenShift == openshift.Version{} || k.Kubernetes == 0) {
			errs = append(errs, fmt.Errorf("%s: openshift_kubernetes[%d] needs openshift and kubernetes", file, i))
		}
	}
	jsonscan.Members(content, func(key, _ []byte) bool {
		name := string(key)
		meant := strings.HasPrefix(name, "fbc_") || strings.HasPrefix(name, "openshift_") ||
			strings.HasPrefix(name, "allowed_olm_")
		if meant && !isDataKey(name) {
			errs = append(errs, fmt.Errorf("%s: there is no rule data %q", file, name))
		}
		return len(errs) < maxWaiverErrors
	})
	return d, errors.Join(errs...)
}

// isDataKey reports whether the program uses a key of the rule data.
func isDataKey(key string) bool {
	t := reflect.TypeFor[Data]()
	for i := range t.NumField() {
		if dataKey(t.Field(i)) == key {
			return true
		}
	}
	return false
}

// dataKey returns the key of a field of the rule data.
func dataKey(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key
}

// Has reports whether the rule data of a key was given, or is built in. The empty key needs none.
func (d *Data) Has(key string) bool {
	v := reflect.ValueOf(d).Elem()
	for i := range v.NumField() {
		if dataKey(v.Type().Field(i)) == key {
			return !v.Field(i).IsNil()
		}
	}
	return true
}
