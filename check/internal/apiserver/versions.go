package apiserver

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Version is the minor version of Kubernetes 1.
type Version int

// Current is the version that is assumed if none is given: the newest that this package has been compared with.
const Current Version = 36

// String returns the version as "1.36".
func (v Version) String() string { return "1." + strconv.Itoa(int(v)) }

var versionForm = regexp.MustCompile(`^v?1\.([1-9][0-9]{0,2})(\.[0-9]+)?$`)

// ParseVersion returns the version of a text such as 1.36, v1.36 or 1.36.3.
func ParseVersion(text string) (Version, error) {
	m := versionForm.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%.100q is no version of Kubernetes such as %s", text, Current)
	}
	n, err := strconv.Atoi(m[1])
	return Version(n), err
}

// MarshalText returns the version as "1.36".
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what [ParseVersion] reads.
func (v *Version) UnmarshalText(text []byte) (err error) {
	*v, err = ParseVersion(string(text))
	return err
}

// api is a version of an API with the kinds in it and the versions of Kubernetes that serve it: from Since, and before
// Removed unless that is 0. An API that was never served without a flag has Since and Removed of the same value.
type api struct {
	APIVersion     string
	Kinds          []string
	Since, Removed Version
	// Instead is the apiVersion that took its place.
	Instead string
}

var rbacKinds = []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}

// apis are the APIs of Kubernetes that have a kind which OLM v1 applies, by the deprecated API migration guide.
var apis = []api{
	{APIVersion: "v1", Kinds: []string{"ConfigMap", "Secret", "Service", "ServiceAccount"}},
	{APIVersion: "apps/v1", Kinds: []string{"Deployment"}, Since: 9},
	{APIVersion: "rbac.authorization.k8s.io/v1", Kinds: rbacKinds, Since: 8},
	{"rbac.authorization.k8s.io/v1beta1", rbacKinds, 6, 22, "rbac.authorization.k8s.io/v1"},
	{"rbac.authorization.k8s.io/v1alpha1", rbacKinds, 5, 5, "rbac.authorization.k8s.io/v1"},
	{APIVersion: "policy/v1", Kinds: []string{"PodDisruptionBudget"}, Since: 21},
	{"policy/v1beta1", []string{"PodDisruptionBudget"}, 5, 25, "policy/v1"},
	{APIVersion: "networking.k8s.io/v1", Kinds: []string{"NetworkPolicy"}, Since: 7},
	{"extensions/v1beta1", []string{"NetworkPolicy"}, 3, 16, "networking.k8s.io/v1"},
	{APIVersion: "scheduling.k8s.io/v1", Kinds: []string{"PriorityClass"}, Since: 14},
	{"scheduling.k8s.io/v1beta1", []string{"PriorityClass"}, 11, 22, "scheduling.k8s.io/v1"},
	{"scheduling.k8s.io/v1alpha1", []string{"PriorityClass"}, 8, 8, "scheduling.k8s.io/v1"},
	{APIVersion: "apiextensions.k8s.io/v1", Kinds: []string{"CustomResourceDefinition"}, Since: 16},
	{"apiextensions.k8s.io/v1beta1", []string{"CustomResourceDefinition"}, 7, 22, "apiextensions.k8s.io/v1"},
	{APIVersion: "admissionregistration.k8s.io/v1",
		Kinds: []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}, Since: 16},
	{"admissionregistration.k8s.io/v1beta1",
		[]string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}, 9, 22,
		"admissionregistration.k8s.io/v1"},
}

// builtin are the groups of Kubernetes itself: a kind that is not in apis is not served by them.
var builtin = []string{"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps",
	"authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io",
	"coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions", "flowcontrol.apiserver.k8s.io",
	"networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io",
	"storage.k8s.io"}

func groupOf(apiVersion string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

// State says whether a version of Kubernetes serves an API.
type State int

// The states of an API: it is served, not any more, not yet, or not at all.
const (
	Available State = iota
	Gone
	NotYet
	Never
)

// find returns the index of the API with a kind, or -1.
func find(apiVersion, kind string) int {
	return slices.IndexFunc(apis, func(a api) bool {
		return a.APIVersion == apiVersion && slices.Contains(a.Kinds, kind)
	})
}

// Availability says whether a cluster of the version serves a kind, or may serve it because it is no kind of Kubernetes
// itself, and for Gone and NotYet which version removed or brought it. kind is one that OLM applies.
func Availability(apiVersion, kind string, v Version) (State, Version) {
	if !slices.Contains(builtin, groupOf(apiVersion)) {
		return Available, 0
	}
	i := find(apiVersion, kind)
	if i < 0 || apis[i].Removed > 0 && apis[i].Since == apis[i].Removed {
		return Never, 0
	}
	switch a := apis[i]; {
	case a.Removed > 0 && v >= a.Removed:
		return Gone, a.Removed
	case v < a.Since:
		return NotYet, a.Since
	}
	return Available, 0
}

// Served returns the empty text if a cluster of the version serves a kind, or may serve it because it is no kind of
// Kubernetes itself; otherwise why not, and what to write instead. kind is one that OLM v1 applies.
func Served(apiVersion, kind string, v Version) (why, instead string) {
	state, since := Availability(apiVersion, kind, v)
	why = fmt.Sprintf("no matches for kind %q in version %q", kind, apiVersion)
	switch state {
	case Available:
		return "", ""
	case Gone:
		return why + fmt.Sprintf(": Kubernetes %s has removed it", since), apis[find(apiVersion, kind)].Instead
	case NotYet:
		for _, old := range apis {
			if old.Instead == apiVersion && slices.Contains(old.Kinds, kind) && v >= old.Since && v < old.Removed {
				instead = old.APIVersion
			}
		}
		return why + fmt.Sprintf(": Kubernetes %s brought it", since), instead
	}
	if i := find(apiVersion, kind); i >= 0 {
		return why, apis[i].Instead
	}
	for _, a := range apis {
		if a.Removed == 0 && slices.Contains(a.Kinds, kind) {
			return why, a.APIVersion
		}
	}
	return why, ""
}
