package rules

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Data is the rule data: what an installation of a pipeline demands. The keys are those of Conforma's rule data; those
// of Konflux' tasks, which have their values in scripts, begin with fbc_.
type Data struct {
	// ImagePrefixes are how the names of images begin that a bundle may refer to.
	ImagePrefixes []string `yaml:"allowed_olm_image_registry_prefixes,omitempty"`
	// Kinds are the kinds of manifests that a bundle may have.
	Kinds []string `yaml:"allowed_olm_resource_kinds,omitempty"`
	// Features are the annotations that must be "true" or "false".
	Features []string `yaml:"required_olm_features_annotations,omitempty"`
	// BasePrefixes are how the names of base images begin.
	BasePrefixes []string `yaml:"allowed_registry_prefixes,omitempty"`

	Required      []Label  `yaml:"required_labels,omitempty"`
	Optional      []Label  `yaml:"optional_labels,omitempty"`
	Deprecated    []Label  `yaml:"deprecated_labels,omitempty"`
	Inherited     []Label  `yaml:"disallowed_inherited_labels,omitempty"`
	FBCRequired   []Label  `yaml:"fbc_required_labels,omitempty"`
	FBCOptional   []Label  `yaml:"fbc_optional_labels,omitempty"`
	FBCInherited  []Label  `yaml:"fbc_disallowed_inherited_labels,omitempty"`
	FBCBaseImages []string `yaml:"fbc_base_images,omitempty"`
	// FBCBundlePrefixes are how the names of bundle images in a catalog begin.
	FBCBundlePrefixes []string `yaml:"fbc_bundle_registry_prefixes,omitempty"`
}

// Label is a label that images should have or not have.
type Label struct {
	Name        string   `yaml:"name"`
	Description string   `yaml:"description,omitempty"`
	Replacement string   `yaml:"replacement,omitempty"` // of a deprecated label
	Values      []string `yaml:"values,omitempty"`      // that a required label may have; empty: any
	EffectiveOn string   `yaml:"effective_on,omitempty"`
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

// ReadData reads rule data from YAML or JSON: the keys, or a map rule_data with them. A key that is given replaces the
// built-in value. Keys that this program does not use are accepted, since the file is that of a whole policy, unless
// they begin with fbc_ or allowed_olm_ and are thus meant for it.
func ReadData(r io.Reader, name string) (*Data, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxDataFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxDataFile {
		return nil, fmt.Errorf("%s: larger than %d bytes", name, maxDataFile)
	}
	keys := map[string]any{}
	if err := loosely(text, &keys); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d := builtin()
	if inner, ok := keys["rule_data"].(map[string]any); ok {
		var outer struct {
			Data *Data `yaml:"rule_data,omitempty"`
		}
		outer.Data, keys = d, inner
		err = loosely(text, &outer)
	} else {
		err = loosely(text, d)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var errs []error
	for key := range keys {
		meant := strings.HasPrefix(key, "fbc_") || strings.HasPrefix(key, "allowed_olm_")
		if meant && !isDataKey(key) {
			errs = append(errs, fmt.Errorf("%s: there is no rule data %q", name, key))
		}
	}
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
	key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
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
