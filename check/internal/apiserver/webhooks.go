package apiserver

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/util/webhook"
)

// hook is what both kinds of webhooks have.
type hook struct {
	name              string
	client            admissionv1.WebhookClientConfig
	rules             []admissionv1.RuleWithOperations
	failure           *admissionv1.FailurePolicyType
	match             *admissionv1.MatchPolicyType
	namespace, object *metav1.LabelSelector
	sideEffects       *admissionv1.SideEffectClass
	timeout           *int32
	versions          []string
}

func validatingWebhooks(c *admissionv1.ValidatingWebhookConfiguration, _ Version) (out field.ErrorList) {
	for i, w := range c.Webhooks {
		out = append(out, hook{w.Name, w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.NamespaceSelector,
			w.ObjectSelector, w.SideEffects, w.TimeoutSeconds, w.AdmissionReviewVersions}.
			validate(field.NewPath("webhooks").Index(i))...)
	}
	return out
}

func mutatingWebhooks(c *admissionv1.MutatingWebhookConfiguration, _ Version) (out field.ErrorList) {
	for i, w := range c.Webhooks {
		at := field.NewPath("webhooks").Index(i)
		out = append(out, hook{w.Name, w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.NamespaceSelector,
			w.ObjectSelector, w.SideEffects, w.TimeoutSeconds, w.AdmissionReviewVersions}.validate(at)...)
		if p := w.ReinvocationPolicy; p != nil {
			out = append(out, oneOf(at.Child("reinvocationPolicy"), *p, admissionv1.IfNeededReinvocationPolicy,
				admissionv1.NeverReinvocationPolicy)...)
		}
	}
	return out
}

func (h hook) validate(at *field.Path) (out field.ErrorList) {
	out = append(out, utilvalidation.IsFullyQualifiedName(at.Child("name"), h.name)...)
	for i := range h.rules {
		out = append(out, webhookRule(&h.rules[i], at.Child("rules").Index(i))...)
	}
	if h.failure != nil {
		out = append(out, oneOf(at.Child("failurePolicy"), *h.failure, admissionv1.Fail, admissionv1.Ignore)...)
	}
	if h.match != nil {
		out = append(out, oneOf(at.Child("matchPolicy"), *h.match, admissionv1.Equivalent, admissionv1.Exact)...)
	}
	if h.sideEffects == nil {
		out = append(out, field.Required(at.Child("sideEffects"), "must specify one of None, NoneOnDryRun"))
	} else {
		out = append(out, oneOf(at.Child("sideEffects"), *h.sideEffects, admissionv1.SideEffectClassNone,
			admissionv1.SideEffectClassNoneOnDryRun)...)
	}
	if t := h.timeout; t != nil && (*t < 1 || *t > 30) {
		out = append(out, field.Invalid(at.Child("timeoutSeconds"), *t,
			"the timeout value must be between 1 and 30 seconds"))
	}
	out = append(out, selector(h.namespace, at.Child("namespaceSelector"))...)
	out = append(out, selector(h.object, at.Child("objectSelector"))...)
	if s := h.client.Service; s != nil {
		port := int32(443)
		if s.Port != nil {
			port = *s.Port
		}
		out = append(out, webhook.ValidateWebhookService(at.Child("clientConfig", "service"), s.Name, s.Namespace, s.Path,
			port)...)
	}
	return append(out, reviewVersions(h.versions, at.Child("admissionReviewVersions"))...)
}

func reviewVersions(versions []string, at *field.Path) (out field.ErrorList) {
	known := []string{"v1", "v1beta1"}
	if len(versions) == 0 {
		return append(out, field.Required(at, "must specify one of "+strings.Join(known, ", ")))
	}
	seen := names{}
	for i, v := range versions {
		if !seen.add(v) {
			out = append(out, field.Invalid(at.Index(i), v, "duplicate version"))
			continue
		}
		out = append(out, invalid(at.Index(i), v, utilvalidation.IsDNS1035Label(v))...)
	}
	if !seen[known[0]] && !seen[known[1]] {
		out = append(out, field.Invalid(at, versions, "must include at least one of "+strings.Join(known, ", ")))
	}
	return out
}

func webhookRule(r *admissionv1.RuleWithOperations, at *field.Path) (out field.ErrorList) {
	alone := func(name, what string, all []string) {
		if len(all) == 0 {
			out = append(out, field.Required(at.Child(name), ""))
		}
		if len(all) > 1 && slices.Contains(all, "*") {
			out = append(out, field.Invalid(at.Child(name), all, "if '*' is present, must not specify other "+what))
		}
	}
	var operations []string
	for i, o := range r.Operations {
		operations = append(operations, string(o))
		out = append(out, oneOf(at.Child("operations").Index(i), o, admissionv1.OperationAll, admissionv1.Connect,
			admissionv1.Create, admissionv1.Delete, admissionv1.Update)...)
	}
	alone("operations", "operations", operations)
	alone("apiGroups", "API groups", r.APIGroups)
	alone("apiVersions", "API versions", r.APIVersions)
	for i, v := range r.APIVersions {
		if v == "" {
			out = append(out, field.Required(at.Child("apiVersions").Index(i), ""))
		}
	}
	resources := at.Child("resources")
	if len(r.Resources) == 0 {
		out = append(out, field.Required(resources, ""))
	}
	for i, name := range r.Resources {
		if name == "" {
			out = append(out, field.Required(resources.Index(i), ""))
		}
	}
	if len(r.Resources) > 1 && slices.Contains(r.Resources, "*/*") {
		out = append(out, field.Invalid(resources, r.Resources, "if '*/*' is present, must not specify other resources"))
	}
	if r.Scope != nil {
		out = append(out, oneOf(at.Child("scope"), *r.Scope, admissionv1.AllScopes, admissionv1.ClusterScope,
			admissionv1.NamespacedScope)...)
	}
	return out
}
