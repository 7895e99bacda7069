package apiserver

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// Errors are why an object is refused: Decode, or else Fields. Nothing is known if Unknown is set.
type Errors struct {
	// Decode is the error of decoding the object as its kind. Its text names types of Go.
	Decode error
	Fields field.ErrorList
	// Unknown is why it is not known whether the object is refused.
	Unknown string
}

// maxValues limits the values in an object that is validated: each may be wrong in several ways.
const maxValues = 50_000

// values returns about how many values a JSON text has.
func values(text []byte) (n int) {
	for i, quoted := 0, false; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		case ',', '{', '[':
			if !quoted {
				n++
			}
		}
	}
	return n
}

// Validate returns why the API server refuses an object, canonical JSON. What it knows of an apiVersion and a kind that
// are not among the current ones of Kubernetes itself is that objects have metadata. CustomResourceDefinitions are not
// validated.
func Validate(apiVersion, kind string, object []byte, v Version) Errors {
	if values(object) > maxValues {
		return Errors{Unknown: "the object is too large to be validated"}
	}
	switch apiVersion + " " + kind {
	case "v1 Service":
		return checkAs(object, v, serviceName(v), service)
	case "v1 ConfigMap":
		return checkAs(object, v, validation.NameIsDNSSubdomain, configMap)
	case "v1 Secret":
		return checkAs(object, v, validation.NameIsDNSSubdomain, secret)
	case "v1 ServiceAccount":
		return checkAs(object, v, validation.ValidateServiceAccountName,
			func(*corev1.ServiceAccount, Version) field.ErrorList { return nil })
	case "apps/v1 Deployment":
		return checkAs(object, v, validation.NameIsDNSSubdomain, deployment)
	case "rbac.authorization.k8s.io/v1 Role":
		return checkAs(object, v, pathSegment, func(r *rbacv1.Role, _ Version) field.ErrorList {
			return policyRules(r.Rules, true)
		})
	case "rbac.authorization.k8s.io/v1 ClusterRole":
		return checkAs(object, v, pathSegment, clusterRole)
	case "rbac.authorization.k8s.io/v1 RoleBinding":
		return checkAs(object, v, pathSegment, func(b *rbacv1.RoleBinding, _ Version) field.ErrorList {
			return binding(b.RoleRef, b.Subjects, true)
		})
	case "rbac.authorization.k8s.io/v1 ClusterRoleBinding":
		return checkAs(object, v, pathSegment, func(b *rbacv1.ClusterRoleBinding, _ Version) field.ErrorList {
			return binding(b.RoleRef, b.Subjects, false)
		})
	case "policy/v1 PodDisruptionBudget":
		return checkAs(object, v, nil, func(b *policyv1.PodDisruptionBudget, _ Version) field.ErrorList {
			return append(invalid(field.NewPath("metadata", "name"), b.Name, pathSegment(b.Name, false)),
				disruptionBudget(&b.Spec)...)
		})
	case "scheduling.k8s.io/v1 PriorityClass":
		return checkAs(object, v, validation.NameIsDNSSubdomain,
			func(c *schedulingv1.PriorityClass, _ Version) field.ErrorList {
				return priorityClass(c)
			})
	case "networking.k8s.io/v1 NetworkPolicy":
		return checkAs(object, v, validation.NameIsDNSSubdomain,
			func(p *networkingv1.NetworkPolicy, _ Version) field.ErrorList {
				return networkPolicy(&p.Spec)
			})
	case "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration":
		return checkAs(object, v, validation.NameIsDNSSubdomain, validatingWebhooks)
	case "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration":
		return checkAs(object, v, validation.NameIsDNSSubdomain, mutatingWebhooks)
	case "apiextensions.k8s.io/v1 CustomResourceDefinition", "apiextensions.k8s.io/v1beta1 CustomResourceDefinition":
		return Errors{}
	}
	return checkAs(object, v, validation.NameIsDNSSubdomain,
		func(*metav1.PartialObjectMetadata, Version) field.ErrorList { return nil })
}

// checkAs decodes an object as the API server does, and validates its metadata, unless there is no rule for its
// name, and the rest.
func checkAs[T any, P interface {
	*T
	metav1.Object
}](object []byte, v Version, name validation.ValidateNameFunc, rest func(P, Version) field.ErrorList) Errors {
	typed := P(new(T))
	if err := kjson.UnmarshalCaseSensitivePreserveInts(object, typed); err != nil {
		// This decoder says where it is in its text only.
		if plain := json.Unmarshal(object, P(new(T))); plain != nil {
			err = plain
		}
		return Errors{Decode: err}
	}
	// OLM v1 chooses the namespace, and the managed fields and the rest of a server are dropped.
	typed.SetNamespace("")
	typed.SetManagedFields(nil)
	var out field.ErrorList
	if name != nil {
		out = validation.ValidateObjectMetaAccessor(typed, false, name, field.NewPath("metadata"))
	}
	return Errors{Fields: slices.Concat(out, rest(typed, v))}
}

// names are those that occurred.
type names map[string]bool

func (n names) add(name string) bool {
	if n[name] {
		return false
	}
	n[name] = true
	return true
}

func invalid(path *field.Path, value any, messages []string) (out field.ErrorList) {
	for _, m := range messages {
		out = append(out, field.Invalid(path, value, m))
	}
	return out
}

// oneOf refuses a value that is not among those that are supported, which are in the order of the message.
func oneOf[T ~string](path *field.Path, value T, supported ...T) field.ErrorList {
	if slices.Contains(supported, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, supported)}
}
