package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
)

// The annotations that name a base image (OCI image specification, annotations).
const (
	annotationBaseName   = "org.opencontainers.image.base.name"
	annotationBaseDigest = "org.opencontainers.image.base.digest"
)

// labelConfigs is the label that names the directory of the catalog in an image.
const labelConfigs = "operators.operatorframework.io.index.configs.v1"

// Image is what rules know of the image that holds a catalog or bundle. The maps may be nil.
type Image struct {
	// Name is the image as it was named, Digest that of the manifest or index that the name refers to.
	Name   string
	Digest digest.Digest
	// Index reports whether it is an index; Platforms are those of its images, as os/architecture.
	Index     bool
	Platforms []string
	// Annotations are those of the manifest that is checked, completed by those of the index. Labels are those of its
	// configuration.
	Annotations, Labels map[string]string
	// BaseLabels are the labels of the base image, nil if it was not read.
	BaseLabels map[string]string
	// Programs counts the files of the image by the last part of their path, BasePrograms those of its base image; nil
	// if the layers were not read.
	Programs, BasePrograms map[string]int
	// Differences are the files of the catalog of which catalogd and container engines see something else.
	Differences []Finding
	// FBC is set if the image has the label of catalogs.
	FBC bool
}

// Base returns the name of the base image, and its digest; empty if the annotations have none.
func (i *Image) Base() (name string, d digest.Digest) {
	return i.Annotations[annotationBaseName], digest.Digest(i.Annotations[annotationBaseDigest])
}

// BaseReference returns the base image as REPOSITORY@DIGEST, or its name if the annotations have no digest, or nothing.
func (i *Image) BaseReference() string {
	name, d := i.Base()
	if name == "" || d.Validate() != nil {
		return name
	}
	repository, _ := splitTag(name)
	return repository + "@" + d.String()
}

// splitTag separates the tag from an image name; a digest is left out.
func splitTag(name string) (repository, tag string) {
	name, _, _ = strings.Cut(name, "@")
	if at := strings.LastIndexByte(name, ':'); at > strings.LastIndexByte(name, '/') {
		return name[:at], name[at+1:]
	}
	return name, ""
}

// imageSubject is an image with the rule data.
type imageSubject struct {
	*Image
	data *Data
	run  *Run
}

// onImages are the scopes of rules on images, which are in reports on what the image holds.
var onImages = []Scope{OnImage}

var imageChecks = []Check[imageSubject]{
	{[]Rule{{ID: "labels.required_labels", Severity: Error, Profiles: []Profile{Conforma}, Scopes: onImages,
		Title: "The image has the labels that the rule data requires, with allowed values.",
		Fix:   "set the label with --label KEY=VALUE when the image is built", Data: "required_labels"}},
		requiredLabels},
	{[]Rule{{ID: "labels.optional_labels", Severity: Warning, Profiles: []Profile{Conforma}, Scopes: onImages,
		Title: "The image has the labels that the rule data recommends.",
		Fix:   "set the label with --label KEY=VALUE when the image is built", Data: "optional_labels"}},
		optionalLabels},
	{[]Rule{{ID: "labels.deprecated_labels", Severity: Error, Profiles: []Profile{Conforma}, Scopes: onImages,
		Title: "The image has no label that the rule data calls deprecated.",
		Fix:   "use the label that replaces it", Data: "deprecated_labels"}}, deprecatedLabels},
	{[]Rule{{ID: "labels.disallowed_inherited_labels", Severity: Error, Profiles: []Profile{Conforma}, Scopes: onImages,
		Title: "A label that describes the image has another value than in the base image.",
		Fix:   "set the label with --label KEY=VALUE when the image is built", Data: "disallowed_inherited_labels"}},
		inheritedLabels},
	{[]Rule{{ID: "base_image_registries.base_image_permitted", Severity: Error, Profiles: []Profile{Conforma},
		Scopes: onImages, Title: "The name of the base image begins with a permitted prefix.",
		Fix:  "build on a permitted base image, or add its registry to the rule data",
		Data: "allowed_registry_prefixes"}}, basePermitted},
}

// CheckImage runs the rules on images; nil means that there is no image.
func (r *Run) CheckImage(ctx context.Context, i *Image) error {
	rules := RulesOf(imageChecks)
	if i == nil {
		r.NotRun("needs an image: a directory has no labels and no base", rules...)
		return nil
	}
	for _, c := range imageChecks {
		rule := c.Rules[0]
		key := rule.Data
		if i.FBC && strings.Contains(key, "_labels") && key != "deprecated_labels" {
			key = "fbc_" + key
		}
		switch {
		case !r.Data().Has(key):
			r.NotRun("the rule data has no "+key, rule)
		case rule.ID == "labels.disallowed_inherited_labels" && i.BaseLabels == nil:
			r.NotRun("needs the labels of the base image: --pull reads them", rule)
		default:
			if err := Each(ctx, r, []Check[imageSubject]{c}, imageSubject{i, r.Data(), r}); err != nil {
				return err
			}
		}
	}
	return nil
}

// list returns fbc, the list of the rule data for images of catalogs, if the image is one; else it returns image, the
// list for all others.
func (s imageSubject) list(image, fbc []label) []label {
	if s.FBC {
		return fbc
	}
	return image
}

func requiredLabels(_ context.Context, s imageSubject, emit Emit) {
	for _, l := range s.list(s.data.Required, s.data.FBCRequired) {
		value := s.Labels[l.Name]
		switch {
		case value == "":
			emit(Finding{Field: l.Name, Message: fmt.Sprintf("The required %q label is missing. Label description: %s",
				l.Name, l.Description)})
		case len(l.Values) > 0 && !slices.Contains(l.Values, value):
			emit(Finding{Field: l.Name,
				Message: fmt.Sprintf("The %q label has an unexpected %q value. Must be one of: %s",
					l.Name, value, strings.Join(l.Values, ", "))})
		}
	}
}

func optionalLabels(_ context.Context, s imageSubject, emit Emit) {
	for _, l := range s.list(s.data.Optional, s.data.FBCOptional) {
		if s.Labels[l.Name] == "" {
			emit(Finding{Field: l.Name, Message: fmt.Sprintf("The optional %q label is missing. Label description: %s",
				l.Name, l.Description)})
		}
	}
}

func deprecatedLabels(_ context.Context, s imageSubject, emit Emit) {
	for _, l := range s.data.Deprecated {
		if s.Labels[l.Name] != "" {
			emit(Finding{Field: l.Name, Message: fmt.Sprintf("The %q label is deprecated, replace with %q", l.Name,
				l.Replacement)})
		}
	}
}

func inheritedLabels(_ context.Context, s imageSubject, emit Emit) {
	for _, l := range s.list(s.data.Inherited, s.data.FBCInherited) {
		if value := s.Labels[l.Name]; value != "" && value == s.BaseLabels[l.Name] {
			emit(Finding{Field: l.Name,
				Message: fmt.Sprintf("The %q label should not be inherited from the parent image", l.Name)})
		}
	}
}

func basePermitted(_ context.Context, s imageSubject, emit Emit) {
	name, _ := s.Base()
	if name == "" {
		return // built from nothing: there is no base to be forbidden
	}
	if !slices.ContainsFunc(s.data.BasePrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
		emit(Finding{Field: annotationBaseName,
			Message: fmt.Sprintf("Base image %q is from a disallowed registry", name)})
	}
}
