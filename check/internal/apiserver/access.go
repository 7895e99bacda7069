package apiserver

import (
	"cmp"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	v1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func pathSegment(name string, _ bool) []string { return content.IsPathSegmentName(name) }

func clusterRole(r *rbacv1.ClusterRole, _ Version) field.ErrorList {
	out := policyRules(r.Rules, false)
	if a := r.AggregationRule; a != nil {
		at := field.NewPath("aggregationRule", "clusterRoleSelectors")
		if len(a.ClusterRoleSelectors) == 0 {
			out = append(out,
				field.Required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
		}
		for i := range a.ClusterRoleSelectors {
			out = append(out, v1validation.ValidateLabelSelector(&a.ClusterRoleSelectors[i],
				v1validation.LabelSelectorValidationOptions{}, at.Index(i))...)
		}
	}
	return out
}

func policyRules(rules []rbacv1.PolicyRule, namespaced bool) (out field.ErrorList) {
	for i, r := range rules {
		at := field.NewPath("rules").Index(i)
		if len(r.Verbs) == 0 {
			out = append(out, field.Required(at.Child("verbs"), "verbs must contain at least one value"))
		}
		if len(r.NonResourceURLs) > 0 {
			if namespaced {
				out = append(out, field.Invalid(at.Child("nonResourceURLs"), r.NonResourceURLs,
					"namespaced rules cannot apply to non-resource URLs"))
			}
			if len(r.APIGroups) > 0 || len(r.Resources) > 0 || len(r.ResourceNames) > 0 {
				out = append(out, field.Invalid(at.Child("nonResourceURLs"), r.NonResourceURLs,
					"rules cannot apply to both regular resources and non-resource URLs"))
			}
			continue
		}
		if len(r.APIGroups) == 0 {
			out = append(out, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(r.Resources) == 0 {
			out = append(out, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
	return out
}

func binding(ref rbacv1.RoleRef, subjects []rbacv1.Subject, namespaced bool) (out field.ErrorList) {
	at := field.NewPath("roleRef")
	out = append(out, oneOf(at.Child("apiGroup"), cmp.Or(ref.APIGroup, rbacv1.GroupName), rbacv1.GroupName)...)
	kinds := []string{"ClusterRole"}
	if namespaced {
		kinds = []string{"Role", "ClusterRole"}
	}
	out = append(out, oneOf(at.Child("kind"), ref.Kind, kinds...)...)
	if ref.Name == "" {
		out = append(out, field.Required(at.Child("name"), ""))
	} else {
		out = append(out, invalid(at.Child("name"), ref.Name, pathSegment(ref.Name, false))...)
	}
	for i, s := range subjects {
		at := field.NewPath("subjects").Index(i)
		if s.Name == "" {
			out = append(out, field.Required(at.Child("name"), ""))
		}
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			if s.Name != "" {
				out = append(out, invalid(at.Child("name"), s.Name, validation.ValidateServiceAccountName(s.Name, false))...)
			}
			if s.APIGroup != "" {
				out = append(out, field.NotSupported(at.Child("apiGroup"), s.APIGroup, []string{""}))
			}
			if !namespaced && s.Namespace == "" {
				out = append(out, field.Required(at.Child("namespace"), ""))
			}
		case rbacv1.UserKind, rbacv1.GroupKind:
			out = append(out, oneOf(at.Child("apiGroup"), cmp.Or(s.APIGroup, rbacv1.GroupName), rbacv1.GroupName)...)
		default:
			out = append(out, oneOf(at.Child("kind"), s.Kind, rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind)...)
		}
	}
	return out
}
