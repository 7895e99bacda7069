package apiserver

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// selector validates a selector of labels; nil is valid.
func selector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return v1validation.ValidateLabelSelector(s, v1validation.LabelSelectorValidationOptions{}, path)
}

func disruptionBudget(spec *policyv1.PodDisruptionBudgetSpec) (out field.ErrorList) {
	path := field.NewPath("spec")
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		out = append(out, field.Invalid(path, field.OmitValueType{}, "minAvailable and maxUnavailable cannot be both set"))
	}
	out = append(out, numberOrPercent(spec.MinAvailable, path.Child("minAvailable"))...)
	out = append(out, numberOrPercent(spec.MaxUnavailable, path.Child("maxUnavailable"))...)
	return append(out, selector(spec.Selector, path.Child("selector"))...)
}

func numberOrPercent(n *intstr.IntOrString, path *field.Path) (out field.ErrorList) {
	switch {
	case n == nil:
	case n.Type == intstr.Int && n.IntVal < 0:
		out = append(out, field.Invalid(path, int64(n.IntVal), "must be greater than or equal to 0"))
	case n.Type == intstr.String:
		out = invalid(path, *n, utilvalidation.IsValidPercent(n.StrVal))
		var percent int
		if _, err := fmt.Sscanf(n.StrVal, "%d%%", &percent); err == nil && len(out) == 0 && percent > 100 {
			out = append(out, field.Invalid(path, *n, "must not be greater than 100%"))
		}
	}
	return out
}

// systemClasses are the priority classes of Kubernetes, with their values.
var systemClasses = map[string]int32{"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}

func priorityClass(c *schedulingv1.PriorityClass) (out field.ErrorList) {
	const maximum = 1_000_000_000
	if value, system := systemClasses[c.Name]; strings.HasPrefix(c.Name, "system-") {
		why := ""
		switch {
		case !system:
			why = fmt.Sprintf("%v is not a known system priority class", c.Name)
		case c.Value != value:
			why = fmt.Sprintf("value of %v PriorityClass must be %v", c.Name, value)
		case c.GlobalDefault:
			why = fmt.Sprintf("globalDefault of %v PriorityClass must be %v", c.Name, false)
		}
		if why != "" {
			out = append(out, field.Forbidden(field.NewPath("metadata", "name"),
				"priority class names with 'system-' prefix are reserved for system use only. error: "+why))
		}
	} else if c.Value > maximum {
		out = append(out, field.Forbidden(field.NewPath("value"),
			fmt.Sprintf("maximum allowed value of a user defined priority is %d", maximum)))
	}
	if p := c.PreemptionPolicy; p != nil && *p != "" {
		out = append(out, oneOf(field.NewPath("preemptionPolicy"), *p, corev1.PreemptLowerPriority, corev1.PreemptNever)...)
	}
	return out
}

func networkPolicy(spec *networkingv1.NetworkPolicySpec) (out field.ErrorList) {
	path := field.NewPath("spec")
	out = append(out, selector(&spec.PodSelector, path.Child("podSelector"))...)
	rule := func(at *field.Path, ports []networkingv1.NetworkPolicyPort, word string, peers []networkingv1.NetworkPolicyPeer) {
		for i := range ports {
			out = append(out, networkPort(&ports[i], at.Child("ports").Index(i))...)
		}
		for i := range peers {
			out = append(out, networkPeer(&peers[i], at.Child(word).Index(i))...)
		}
	}
	for i, r := range spec.Ingress {
		rule(path.Child("ingress").Index(i), r.Ports, "from", r.From)
	}
	for i, r := range spec.Egress {
		rule(path.Child("egress").Index(i), r.Ports, "to", r.To)
	}
	types := path.Child("policyTypes")
	if len(spec.PolicyTypes) > 2 {
		return append(out, field.Invalid(types, spec.PolicyTypes, "may not specify more than two policyTypes"))
	}
	for i, t := range spec.PolicyTypes {
		out = append(out, oneOf(types.Index(i), t, networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)...)
	}
	return out
}

func networkPort(p *networkingv1.NetworkPolicyPort, at *field.Path) (out field.ErrorList) {
	if p.Protocol != nil {
		out = append(out, oneOf(at.Child("protocol"), *p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP,
			corev1.ProtocolSCTP)...)
	}
	switch {
	case p.Port == nil && p.EndPort != nil:
		out = append(out, field.Invalid(at.Child("endPort"), *p.EndPort, "may not be specified when `port` is not specified"))
	case p.Port == nil:
	case p.Port.Type == intstr.String && p.EndPort != nil:
		out = append(out, field.Invalid(at.Child("endPort"), *p.EndPort, "may not be specified when `port` is non-numeric"))
		fallthrough
	case p.Port.Type == intstr.String:
		out = append(out, portOrName(at.Child("port"), *p.Port)...)
	default:
		out = append(out, portOrName(at.Child("port"), *p.Port)...)
		if p.EndPort != nil && *p.EndPort < p.Port.IntVal {
			out = append(out, field.Invalid(at.Child("endPort"), p.Port.IntVal, "must be greater than or equal to `port`"))
		}
	}
	return out
}

func networkPeer(p *networkingv1.NetworkPolicyPeer, at *field.Path) (out field.ErrorList) {
	out = append(out, selector(p.PodSelector, at.Child("podSelector"))...)
	out = append(out, selector(p.NamespaceSelector, at.Child("namespaceSelector"))...)
	switch {
	case p.PodSelector == nil && p.NamespaceSelector == nil && p.IPBlock == nil:
		out = append(out, field.Required(at, "must specify a peer"))
	case p.IPBlock != nil && (p.PodSelector != nil || p.NamespaceSelector != nil):
		out = append(out, field.Forbidden(at, "may not specify both ipBlock and another peer"))
	}
	return out
}
