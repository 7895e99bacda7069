package bundlecheck

import (
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	apierrors "github.com/operator-framework/api/pkg/validation/errors"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/operator-bindery/bindery/bundle"
)

// Validator is an optional validator with the name by which it is selected.
type Validator struct{ Name, Usage string }

// optional is an optional validator: either one of the library, called with the whole bundle or, if each is set, with
// each object, or one of this package.
type optional struct {
	Validator
	library interfaces.Validator
	each    bool
	own     func(r *run, csv object)
}

// optionals returns the optional validators. The library's validator for multiple architectures is not among them
// because it starts a container engine.
func optionals() []optional {
	return []optional{
		{Validator{"alpha-deprecated-apis", "APIs that newer clusters have removed"},
			validation.AlphaDeprecatedAPIsValidator, false, nil},
		{Validator{"bundle-objects", "disruption budgets, priority classes and roles"}, validation.ObjectValidator,
			true, nil},
		{Validator{"community", "what community operators need for OpenShift"}, validation.CommunityOperatorValidator,
			false, nil},
		{Validator{"good-practices", "good practices: names, resource requests, channels, descriptions"},
			validation.GoodPracticesValidator, false, nil},
		{Validator{"image-digests", "images that are named by tag and not by digest"}, nil, false, (*run).imageDigests},
		{Validator{"multiarch", "labels of architectures against the deployments' node affinity"}, nil, false,
			(*run).architectures},
		{Validator{"operatorhub",
			"what OperatorHub.io needs: operatorhub/v2, standardcapabilities and standardcategories"},
			//lint:ignore SA1019 opm's users know it by this name
			validation.OperatorHubValidator, false, nil},
		{Validator{"operatorhub/v2", "what OperatorHub.io needs of the description"}, validation.OperatorHubV2Validator,
			false, nil},
		{Validator{"standardcapabilities", "the capability level is one of OperatorHub.io's"},
			validation.StandardCapabilitiesValidator, false, nil},
		{Validator{"standardcategories", "the categories are those of OperatorHub.io"},
			validation.StandardCategoriesValidator, false, nil},
	}
}

// Validators returns the optional validators, sorted by name.
func Validators() (out []Validator) {
	for _, v := range optionals() {
		out = append(out, v.Validator)
	}
	return out
}

// frameworkSuite is operator-sdk's name for the validators of the Operator Framework.
const frameworkSuite = "operatorframework"

// SDKValidator is a validator that operator-sdk has.
type SDKValidator struct {
	Name   string // operator-sdk's; it is the label "name", too
	Suite  string // the label "suite", or empty
	Select string // the name in [Options]
	Usage  string
}

// SDKValidators returns operator-sdk's optional validators, those of version 1.36 and of later ones, in its order.
func SDKValidators() []SDKValidator {
	all := []SDKValidator{{"operatorhubv2", frameworkSuite, "operatorhub/v2", ""},
		{"capabilities", frameworkSuite, "standardcapabilities", ""}, {"categories", frameworkSuite, "standardcategories", ""},
		{"operatorhub", "", "operatorhub", ""}, {"community", "", "community", ""},
		{"alpha-deprecated-apis", frameworkSuite, "alpha-deprecated-apis", ""},
		{"good-practices", frameworkSuite, "good-practices", ""}, {"multiarch", "", "multiarch", ""}}
	known := Validators()
	for i := range all {
		all[i].Usage = known[slices.IndexFunc(known, func(v Validator) bool { return v.Name == all[i].Select })].Usage
	}
	return all
}

// SelectByLabels returns the names of the optional validators that operator-sdk selects by labels: name=NAME, or
// suite=operatorframework, in the syntax of Kubernetes. A selector that no validator matches is an error.
func SelectByLabels(selector string) ([]string, error) {
	s, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	var selected, names []string
	for _, v := range SDKValidators() {
		names = append(names, v.Name)
		set := labels.Set{"name": v.Name}
		if v.Suite != "" {
			set["suite"] = v.Suite
		}
		if !s.Empty() && s.Matches(set) {
			selected = append(selected, v.Select)
		}
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("selector %q does not match any validator labels: they are suite=%s, and name=NAME with one of %q",
			selector, frameworkSuite, names)
	}
	return selected, nil
}

// validators runs the library's validators that opm runs and those that were selected.
func (r *run) validators(objects []object) {
	var tasks []func()
	csv := object{}
	// All library's validators of whole bundles have one copy, and run one after the other.
	var whole []func(*manifests.Bundle)
	for _, o := range objects {
		switch {
		case o.crd != nil || o.crdBeta != nil:
			if len(o.JSON) <= maxObject { // a larger object is refused already
				tasks = append(tasks, func() { r.definition(o) })
			}
		case o.csv != nil && csv.csv == nil:
			csv = o
		}
	}
	if csv.csv != nil {
		tasks = append(tasks,
			func() {
				r.results("csv", csv, validation.ClusterServiceVersionValidator.Validate(csv.csv.DeepCopy()), false)
			},
			func() {
				in := r.manifests(csv, objects)
				for _, validate := range whole {
					r.guard(func() { validate(in) })
				}
				// This package compares the sizes and the owned definitions itself, in more detail.
				in.CSV.Spec.CustomResourceDefinitions.Owned, in.V1CRDs, in.V1beta1CRDs = nil, nil, nil
				in.Size, in.CompressedSize = 1, 1
				// opm does not run this one, and accepts bundles that it refuses.
				r.results("bundle", csv, validation.BundleValidator.Validate(in), !r.o.SDK)
			})
	}
	for _, v := range optionals() {
		if slices.Contains(r.o.Select, v.Name) {
			if v.each || v.own != nil {
				tasks = append(tasks, r.optional(v, csv, objects)...)
			} else {
				whole = append(whole, func(in *manifests.Bundle) { r.results(v.Name, csv, v.library.Validate(in, r.values()), false) })
			}
		}
	}
	r.parallel(tasks)
}

// optional returns the tasks of a selected validator of objects, or of one of this package.
func (r *run) optional(v optional, csv object, objects []object) (tasks []func()) {
	switch {
	case v.each:
		return []func(){func() {
			for _, o := range objects {
				if o.raw != nil {
					r.results(v.Name, o, v.library.Validate(o.raw.DeepCopy()), false)
				}
			}
		}}
	case csv.csv == nil:
		return nil // this validates the ClusterServiceVersion, whose absence has been reported
	}
	return []func(){func() { v.own(r, csv) }}
}

// values are the options of the library's validators.
func (r *run) values() map[string]string {
	values := map[string]string{}
	if r.o.KubernetesVersion != "" {
		values["k8s-version"] = r.o.KubernetesVersion
	}
	if r.o.IndexPath != "" {
		values["index-path"] = r.o.IndexPath
	}
	return values
}

// manifests converts the bundle to the library's type, a copy that the library may change.
func (r *run) manifests(csv object, objects []object) *manifests.Bundle {
	out := &manifests.Bundle{
		Name: csv.csv.Name, Package: r.b.Package, Channels: slices.Clone(r.b.Channels),
		DefaultChannel: r.b.DefaultChannel,
		CSV:            csv.csv.DeepCopy(), Size: r.size.Plain, CompressedSize: r.size.Encoded,
	}
	for _, o := range objects {
		if o.raw == nil {
			continue
		}
		out.Objects = append(out.Objects, o.raw.DeepCopy())
		if o.crd != nil {
			out.V1CRDs = append(out.V1CRDs, o.crd.DeepCopy())
		}
		if o.crdBeta != nil {
			out.V1beta1CRDs = append(out.V1beta1CRDs, o.crdBeta.DeepCopy())
		}
	}
	for _, d := range r.b.Dependencies {
		out.Dependencies = append(out.Dependencies, &manifests.Dependency{Type: d.Type, Value: string(d.Value)})
	}
	return out
}

// results adds the results of a library's validator for an object; mild turns errors into warnings.
func (r *run) results(validator string, about object, results []apierrors.ManifestResult, mild bool) {
	for _, result := range results {
		for _, e := range slices.Concat(result.Errors, result.Warnings) {
			if e.Type == apierrors.ErrorDeprecatedValidator {
				continue // it is about the validator, not about the bundle
			}
			e.Detail = settled(e.Detail)
			f := finding{
				Problem: bundle.Problem{Severity: bundle.SeverityError,
					Rule: validator + "/" + ruleName(string(e.Type)), Message: libraryText(e, about)},
				opm:   libraryOpm(e, about),
				place: placeIn(about.Object, libraryPath(validator, e)...),
			}
			if mild || e.Level != apierrors.LevelError {
				f.Severity = bundle.SeverityWarning
			}
			r.addFinding(f)
		}
	}
}
