package bundlecheck

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/versions"
)

var conformaOnly = []rules.Profile{rules.Conforma}

func conformaRule(name, title, fix, data string) rules.Rule {
	return rules.Rule{ID: "olm." + name, Severity: rules.Error, Profiles: conformaOnly, Scopes: onBundles, Title: title,
		Fix: fix, Data: data}
}

// The rules of Conforma's package olm (https://conforma.dev/docs/policy/packages/release_olm.html) that need no release
// snapshot.
var (
	conformaVersion = conformaRule("csv_semver_format",
		"spec.version of the ClusterServiceVersion is a semantic version.", "write a version such as 1.2.3", "")
	conformaPinned = conformaRule("unpinned_references",
		"Each image that the ClusterServiceVersion names has a digest.",
		"name the image as REPOSITORY@sha256:DIGEST", "")
	conformaFeatures = conformaRule("feature_annotations_format",
		"Each feature annotation of the rule data is \"true\" or \"false\".", "add the annotation", "")
	conformaFeatureList = conformaRule("required_olm_features_annotations_provided",
		"The rule data has a list of feature annotations.", "add required_olm_features_annotations to the rule data",
		"")
	conformaSubscription = conformaRule("subscriptions_annotation_format",
		"The annotation operators.openshift.io/valid-subscription is a JSON list of different strings.",
		"write a list such as [\"OpenShift Platform Plus\"]", "")
	conformaRegistries = conformaRule("allowed_registries",
		"The name of each image begins with a prefix of the rule data.",
		"use an image of a permitted registry, or add its registry to the rule data",
		"allowed_olm_image_registry_prefixes")
	conformaMultiArch = conformaRule("olm_bundle_multi_arch", "A bundle image is one image, not an index of several.",
		"build it for one platform", "")
	conformaKinds = conformaRule("allowed_resource_kinds", "The kind of each manifest is permitted by the rule data.",
		"remove the manifest, or add its kind to the rule data", "allowed_olm_resource_kinds")
	conformaNetworkPolicy = conformaRule("required_network_policy_rbac_for_operands",
		"The operator may create, change and delete NetworkPolicies.",
		"permit create, delete, and update or patch, on networking.k8s.io/networkpolicies, or add the package and its "+
			"version to operator_network_policy_rbac_exceptions of the rule data", "")
)

// The rules of Conforma that compare with a release snapshot. The caller of [CheckRules] checks them.
var (
	RuleUnmapped = conformaRule("unmapped_references", "Each image is in the release snapshot or can be pulled.",
		"add the image to the snapshot, or push it", "")
	RuleSnapshotPinned = conformaRule("unpinned_snapshot_references",
		"The image has a digest in the release snapshot.", "add the digest", "")
	RuleSnapshotAccessible = conformaRule("inaccessible_snapshot_references",
		"Each image of the release snapshot can be pulled.", "push the image", "")
)

// SnapshotRules returns the rules that compare with a release snapshot.
func SnapshotRules() []rules.Rule {
	return []rules.Rule{RuleUnmapped, RuleSnapshotPinned, RuleSnapshotAccessible}
}

var conformaChecks = []rules.Check[*conformaSubject]{
	{Rules: []rules.Rule{conformaVersion}, Find: findSemver},
	{Rules: []rules.Rule{conformaPinned}, Find: findUnpinned},
	{Rules: []rules.Rule{conformaFeatures}, Find: findFeatures},
	{Rules: []rules.Rule{conformaFeatureList}, Find: findFeatureList},
	{Rules: []rules.Rule{conformaSubscription}, Find: findSubscription},
	{Rules: []rules.Rule{conformaRegistries}, Find: findRegistries},
	{Rules: []rules.Rule{conformaMultiArch}, Find: findMultiArch},
	{Rules: []rules.Rule{conformaKinds}, Find: findKinds},
	{Rules: []rules.Rule{conformaNetworkPolicy}, Find: findNetworkPolicy},
}

// conformaSubject is a bundle with the rule data.
type conformaSubject struct {
	*Subject
	data *rules.Data
	csvs []bundle.Object
}

// conforma runs Conforma's rules and says which cannot run.
func conforma(ctx context.Context, r *rules.Run, s Subject) error {
	c := &conformaSubject{Subject: &s, data: r.Data()}
	for _, o := range s.Bundle.Objects {
		if o.Kind == kindCSV {
			c.csvs = append(c.csvs, o)
		}
	}
	for _, check := range conformaChecks {
		rule := check.Rules[0]
		switch {
		case !r.Data().Has(rule.Data):
			r.NotRun("the rule data has no "+rule.Data, rule)
		case rule.ID == conformaMultiArch.ID && s.Image == nil:
			r.NotRun("needs an image, not a directory", rule)
		default:
			if err := rules.Each(ctx, r, []rules.Check[*conformaSubject]{check}, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// manifest decodes a ClusterServiceVersion.
func manifest(o bundle.Object) map[string]any {
	var out map[string]any
	if json.Unmarshal(o.JSON, &out) != nil {
		return nil // the JSON of a bundle that was read is valid
	}
	return out
}

func child(v any, path ...string) any {
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

func findSemver(_ context.Context, s *conformaSubject, emit rules.Emit) {
	for _, o := range s.csvs {
		version, ok := child(manifest(o), "spec", "version").(string)
		if !ok {
			version = "<MISSING>"
		}
		if _, err := versions.Parse(version); err != nil {
			emit(s.finding(placeIn(o, "spec", "version"), "spec.version",
				"The ClusterServiceVersion spec.version, %q, is not a valid semver", version))
		}
	}
}

// imageRef is an image that a ClusterServiceVersion names.
type imageRef struct {
	text, repository string
	pinned           bool
	// path is as Conforma writes it, steps where the value is.
	path  string
	steps []any
}

// isImage reports whether a part of an annotation names an image: it begins with a host.
func isImage(text string) bool {
	host, _, ok := strings.Cut(text, "/")
	if !ok || !strings.ContainsAny(host, ".:") || strings.Contains(text, "://") || len(text) > 1024 {
		return false
	}
	_, err := reference.ParseNormalizedNamed(text)
	return err == nil
}

// newImageRef takes a name apart, whether it is valid or not: it is in the place of an image.
func newImageRef(text, path string, steps []any) imageRef {
	text = strings.TrimSpace(text)
	repository, digest, _ := strings.Cut(text, "@")
	if at := strings.LastIndexByte(repository, ':'); at > strings.LastIndexByte(repository, '/') {
		repository = repository[:at]
	}
	return imageRef{text, repository, digest != "", path, steps}
}

// imageRefs returns the images that a ClusterServiceVersion names, from the places where Conforma looks for them.
func imageRefs(o bundle.Object) (out []imageRef) {
	m := manifest(o)
	add := func(v any, path string, steps ...any) {
		if text, ok := v.(string); ok && text != "" {
			out = append(out, newImageRef(text, path, steps))
		}
	}
	related, _ := child(m, "spec", "relatedImages").([]any)
	for i, r := range related {
		add(child(r, "image"), fmt.Sprintf("spec.relatedImages[%d].image", i), "spec", "relatedImages", i, "image")
	}
	add(child(m, "metadata", "annotations", "containerImage"), "annotations.containerImage", "metadata", "annotations",
		"containerImage")
	walkAnnotations(m, nil, 0, func(key, value string, steps []any) {
		for _, part := range strings.FieldsFunc(value,
			func(c rune) bool { return strings.ContainsRune(",; \t\n\r", c) }) {
			if isImage(part) {
				add(part, fmt.Sprintf("annotations[%q]", key), steps...)
			}
		}
	})
	deployments, _ := child(m, "spec", "install", "spec", "deployments").([]any)
	for d, deployment := range deployments {
		for _, list := range []string{"containers", "initContainers"} {
			containers, _ := child(deployment, "spec", "template", "spec", list).([]any)
			for c, container := range containers {
				path := fmt.Sprintf("spec.install.spec.deployments[%d (%q)].spec.template.spec.%s[%d (%q)]", d,
					nameOf(deployment), list, c, nameOf(container))
				steps := []any{"spec", "install", "spec", "deployments", d, "spec", "template", "spec", list, c}
				add(child(container, "image"), path+".image", append(slices.Clone(steps), "image")...)
				env, _ := child(container, "env").([]any)
				for e, v := range env {
					if name, _ := child(v, "name").(string); strings.HasPrefix(name, "RELATED_IMAGE_") {
						add(child(v, "value"), fmt.Sprintf("%s.env[%q]", path, name),
							append(slices.Clone(steps), "env", e, "value")...)
					}
				}
			}
		}
	}
	return out
}

func nameOf(v any) string {
	if name, ok := child(v, "name").(string); ok {
		return name
	}
	return "unnamed"
}

// maxWalk limits the depth of objects in which annotations are looked for.
const maxWalk = 100

// walkAnnotations calls each for every annotation of any metadata in a value.
func walkAnnotations(v any, steps []any, depth int, each func(key, value string, steps []any)) {
	if depth > maxWalk {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		annotations, _ := child(v, "metadata", "annotations").(map[string]any)
		for key, value := range annotations {
			if text, ok := value.(string); ok {
				each(key, text, append(slices.Clone(steps), "metadata", "annotations", key))
			}
		}
		for key, inner := range v {
			walkAnnotations(inner, append(slices.Clone(steps), key), depth+1, each)
		}
	case []any:
		for i, inner := range v {
			walkAnnotations(inner, append(slices.Clone(steps), i), depth+1, each)
		}
	}
}

// Images returns the names of the images that the bundle's ClusterServiceVersions name, each with its place.
func (s *Subject) Images() (out []rules.Finding) {
	for _, o := range s.Bundle.Objects {
		if o.Kind != kindCSV {
			continue
		}
		for _, r := range imageRefs(o) {
			f := s.finding(placeIn(o, r.steps...), canon.PathName(r.steps), "%s", "")
			f.Image = r.text
			out = append(out, f)
		}
	}
	return out
}

func findUnpinned(_ context.Context, s *conformaSubject, emit rules.Emit) {
	for _, o := range s.csvs {
		for _, r := range imageRefs(o) {
			if !r.pinned {
				emit(s.finding(placeIn(o, r.steps...), canon.PathName(r.steps), "The %q image reference is not pinned at %s.",
					r.text, r.path))
			}
		}
	}
}

func findRegistries(_ context.Context, s *conformaSubject, emit rules.Emit) {
	for _, o := range s.csvs {
		for _, r := range imageRefs(o) {
			if !hasPrefix(r.repository, s.data.ImagePrefixes) {
				emit(s.finding(placeIn(o, r.steps...), canon.PathName(r.steps),
					"The %q CSV image reference is not from an allowed registry.", r.text))
			}
		}
	}
}

func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

func findFeatures(_ context.Context, s *conformaSubject, emit rules.Emit) {
	for _, o := range s.csvs {
		annotations := child(manifest(o), "metadata", "annotations")
		for _, key := range s.data.Features {
			if v, _ := child(annotations, key).(string); v != "true" && v != "false" {
				steps := []any{"metadata", "annotations", key}
				emit(s.finding(placeIn(o, steps...), canon.PathName(steps),
					"The annotation %q is either missing or has an unexpected value", key))
			}
		}
	}
}

func findFeatureList(_ context.Context, s *conformaSubject, emit rules.Emit) {
	if len(s.data.Features) == 0 {
		emit(s.finding(place{}, "", "The rule data has no required_olm_features_annotations"))
	}
}

const annotationSubscription = "operators.openshift.io/valid-subscription"

func findSubscription(_ context.Context, s *conformaSubject, emit rules.Emit) {
	for _, o := range s.csvs {
		steps := []any{"metadata", "annotations", annotationSubscription}
		why := wrongSubscription(child(manifest(o), "metadata", "annotations", annotationSubscription))
		if why != "" {
			emit(s.finding(placeIn(o, steps...), canon.PathName(steps), "Value of %s annotation %s",
				annotationSubscription, why))
		}
	}
}

// wrongSubscription returns what is wrong with the annotation.
func wrongSubscription(v any) string {
	text, ok := v.(string)
	if !ok {
		return "is missing"
	}
	var list any
	if json.Unmarshal([]byte(text), &list) != nil {
		return "is not valid JSON"
	}
	items, ok := list.([]any)
	if !ok || len(items) == 0 {
		return "is not a list with at least one string"
	}
	seen := map[string]bool{}
	for _, i := range items {
		text, ok := i.(string)
		switch {
		case !ok:
			return "has an item that is not a string"
		case seen[text]:
			return fmt.Sprintf("has %q twice", text)
		}
		seen[text] = true
	}
	return ""
}

func findMultiArch(_ context.Context, s *conformaSubject, emit rules.Emit) {
	if s.Image.Index && len(s.csvs) > 0 {
		emit(s.finding(place{}, "", "The %q bundle image is a multi-arch reference.", s.Image.Name))
	}
}

func findKinds(_ context.Context, s *conformaSubject, emit rules.Emit) {
	for _, o := range s.Bundle.Objects {
		if !slices.Contains(s.data.Kinds, o.Kind) {
			emit(s.finding(placeIn(o, "kind"), "kind",
				"The %q manifest kind is not in the list of OLM allowed resource kinds.", o.Kind))
		}
	}
}

// findNetworkPolicy reports an operator that cannot manage the NetworkPolicies of its operands. As in the policy, one
// rule must permit all of it, and a ClusterServiceVersion without a version is not looked at.
func findNetworkPolicy(_ context.Context, s *conformaSubject, emit rules.Emit) {
	for _, o := range s.csvs {
		m := manifest(o)
		version, ok := child(m, "spec", "version").(string)
		if !ok || s.exceptedVersion(version) {
			continue
		}
		install := child(m, "spec", "install", "spec")
		if !managesNetworkPolicies(child(install, "clusterPermissions")) &&
			!managesNetworkPolicies(child(install, "permissions")) {
			steps := []any{"spec", "install", "spec"}
			emit(s.finding(placeIn(o, steps...), canon.PathName(steps), "Operator %q version %q is missing required "+
				"NetworkPolicy RBAC (networking.k8s.io/networkpolicies with create, delete, and update/patch)",
				s.Bundle.Package, version))
		}
	}
}

// exceptedVersion reports whether the rule data excepts a version of the package, of which two numbers count.
func (s *conformaSubject) exceptedVersion(version string) bool {
	parts := strings.Split(version, ".")
	return len(parts) >= 2 &&
		slices.Contains(s.data.NetworkPolicyExceptions[s.Bundle.Package], parts[0]+"."+parts[1])
}

func managesNetworkPolicies(permissions any) bool {
	has := func(rule any, field string, oneOf ...string) bool {
		values, _ := child(rule, field).([]any)
		return slices.ContainsFunc(values, func(v any) bool {
			text, ok := v.(string)
			return ok && slices.Contains(oneOf, text)
		})
	}
	list, _ := permissions.([]any)
	return slices.ContainsFunc(list, func(permission any) bool {
		granted, _ := child(permission, "rules").([]any)
		return slices.ContainsFunc(granted, func(rule any) bool {
			return has(rule, "apiGroups", "networking.k8s.io", "*") && has(rule, "resources", "networkpolicies", "*") &&
				has(rule, "verbs", "create", "*") && has(rule, "verbs", "delete", "*") &&
				has(rule, "verbs", "update", "patch", "*")
		})
	})
}
