package apiserver

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scheduling validates where a pod may run.
func scheduling(spec *corev1.PodSpec, path *field.Path) (out field.ErrorList) {
	for i := range spec.Tolerations {
		out = append(out, toleration(&spec.Tolerations[i], path.Child("tolerations").Index(i))...)
	}
	for i := range spec.TopologySpreadConstraints {
		at := path.Child("topologySpreadConstraints").Index(i)
		out = append(out, validateSpread(&spec.TopologySpreadConstraints[i], at)...)
	}
	a, path := spec.Affinity, path.Child("affinity")
	if a == nil {
		return out
	}
	if n := a.NodeAffinity; n != nil {
		at := path.Child("nodeAffinity")
		if n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			terms := n.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			at := at.Child(required, "nodeSelectorTerms")
			if len(terms) == 0 {
				out = append(out, field.Required(at, "must have at least one node selector term"))
			}
			for i := range terms {
				out = append(out, nodeTerm(&terms[i], at.Index(i))...)
			}
		}
		for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			p, at := &n.PreferredDuringSchedulingIgnoredDuringExecution[i], at.Child(preferred).Index(i)
			out = append(out, weight(p.Weight, at)...)
			out = append(out, nodeTerm(&p.Preference, at.Child("preference"))...)
		}
	}
	if p := a.PodAffinity; p != nil {
		out = append(out, podTerms(p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAffinity"))...)
	}
	if p := a.PodAntiAffinity; p != nil {
		out = append(out, podTerms(p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAntiAffinity"))...)
	}
	return out
}

// The fields of affinities.
const (
	required  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferred = "preferredDuringSchedulingIgnoredDuringExecution"
)

func toleration(t *corev1.Toleration, at *field.Path) (out field.ErrorList) {
	if t.Key != "" {
		out = append(out, v1validation.ValidateLabelName(t.Key, at.Child("key"))...)
	} else if t.Operator != corev1.TolerationOpExists {
		out = append(out, field.Invalid(at.Child("operator"), t.Operator,
			"operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		out = append(out, field.Invalid(at.Child("effect"), t.Effect,
			"effect must be 'NoExecute' when `tolerationSeconds` is set"))
	}
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		if wrong := utilvalidation.IsValidLabelValue(t.Value); len(wrong) > 0 {
			out = append(out, field.Invalid(at.Child("operator"), t.Value, strings.Join(wrong, ";")))
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			out = append(out, field.Invalid(at.Child("operator"), *t, "value must be empty when `operator` is 'Exists'"))
		}
	case "Lt", "Gt": // a gate of clusters since 1.35
	default:
		out = append(out, field.NotSupported(at.Child("operator"), t.Operator, []corev1.TolerationOperator{
			corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
	if t.Effect != "" {
		out = append(out, oneOf(at.Child("effect"), t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
			corev1.TaintEffectNoExecute)...)
	}
	return out
}

func validateSpread(c *corev1.TopologySpreadConstraint, at *field.Path) (out field.ErrorList) {
	if c.MaxSkew <= 0 {
		out = append(out, field.Invalid(at.Child("maxSkew"), c.MaxSkew, "must be greater than zero"))
	}
	if c.TopologyKey == "" {
		out = append(out, field.Required(at.Child("topologyKey"), "can not be empty"))
	}
	out = append(out, oneOf(at.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, corev1.DoNotSchedule,
		corev1.ScheduleAnyway)...)
	if c.MinDomains != nil && *c.MinDomains <= 0 {
		out = append(out, field.Invalid(at.Child("minDomains"), *c.MinDomains, "must be greater than zero"))
	}
	for _, p := range []struct {
		name  string
		value *corev1.NodeInclusionPolicy
	}{{"nodeAffinityPolicy", c.NodeAffinityPolicy}, {"nodeTaintsPolicy", c.NodeTaintsPolicy}} {
		if p.value != nil {
			out = append(out, oneOf(at.Child(p.name), *p.value, corev1.NodeInclusionPolicyHonor,
				corev1.NodeInclusionPolicyIgnore)...)
		}
	}
	return append(out, selector(c.LabelSelector, at.Child("labelSelector"))...)
}

func weight(n int32, at *field.Path) field.ErrorList {
	if n >= 1 && n <= 100 {
		return nil
	}
	return field.ErrorList{field.Invalid(at.Child("weight"), n, "must be in the range 1-100")}
}

var nodeOperators = []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn,
	corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt}

func nodeTerm(t *corev1.NodeSelectorTerm, path *field.Path) (out field.ErrorList) {
	for i, r := range t.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		switch r.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			if len(r.Values) == 0 {
				out = append(out, field.Required(at.Child("values"), "must be specified when `operator` is 'In' or 'NotIn'"))
			}
		case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
			if len(r.Values) > 0 {
				out = append(out, field.Forbidden(at.Child("values"),
					"may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
			}
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			if len(r.Values) != 1 {
				out = append(out, field.Required(at.Child("values"),
					"must be specified single value when `operator` is 'Lt' or 'Gt'"))
			}
		}
		if !slices.Contains(nodeOperators, r.Operator) {
			out = append(out, field.Invalid(at.Child("operator"), r.Operator, "not a valid selector operator"))
		}
		out = append(out, v1validation.ValidateLabelName(r.Key, at.Child("key"))...)
		for j, value := range r.Values {
			out = append(out, invalid(at.Child("values").Index(j), value, utilvalidation.IsValidLabelValue(value))...)
		}
	}
	for i, r := range t.MatchFields {
		at := path.Child("matchFields").Index(i)
		switch r.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			if len(r.Values) != 1 {
				out = append(out, field.Required(at.Child("values"),
					"must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
			}
		default:
			out = append(out, field.Invalid(at.Child("operator"), r.Operator, "not a valid selector operator"))
		}
		if r.Key != metav1.ObjectNameField {
			out = append(out, field.Invalid(at.Child("key"), r.Key, "not a valid field selector key"))
			continue
		}
		for j, name := range r.Values {
			out = append(out, invalid(at.Child("values").Index(j), name, validation.NameIsDNSSubdomain(name, false))...)
		}
	}
	return out
}

func podTerms(terms []corev1.PodAffinityTerm, weighted []corev1.WeightedPodAffinityTerm, path *field.Path) (
	out field.ErrorList) {
	for i := range terms {
		out = append(out, podTerm(&terms[i], path.Child(required).Index(i))...)
	}
	for i := range weighted {
		w, at := &weighted[i], path.Child(preferred).Index(i)
		out = append(out, weight(w.Weight, at)...)
		out = append(out, podTerm(&w.PodAffinityTerm, at.Child("podAffinityTerm"))...)
	}
	return out
}

func podTerm(t *corev1.PodAffinityTerm, at *field.Path) (out field.ErrorList) {
	out = append(out, selector(t.LabelSelector, at.Child("labelSelector"))...)
	out = append(out, selector(t.NamespaceSelector, at.Child("namespaceSelector"))...)
	for _, name := range t.Namespaces {
		out = append(out, invalid(at.Child("namespace"), name, validation.ValidateNamespaceName(name, false))...)
	}
	if t.TopologyKey == "" {
		return append(out, field.Required(at.Child("topologyKey"), "can not be empty"))
	}
	return append(out, v1validation.ValidateLabelName(t.TopologyKey, at.Child("topologyKey"))...)
}
