package helmtemplate

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Capabilities are what templates see of the cluster.
type Capabilities struct {
	KubeVersion KubeVersion
	APIVersions VersionSet
	HelmVersion HelmVersion
}

// Copy returns a copy.
func (c *Capabilities) Copy() *Capabilities { d := *c; return &d }

// KubeVersion is a version of Kubernetes.
type KubeVersion struct{ Version, Major, Minor string }

// String returns the version.
func (v *KubeVersion) String() string { return v.Version }

// GitVersion returns the version.
func (v *KubeVersion) GitVersion() string { return v.Version }

// HelmVersion is the version of Helm whose rules hold.
type HelmVersion struct{ Version, GitCommit, GitTreeState, GoVersion string }

// VersionSet are APIs of a cluster.
type VersionSet []string

// Has reports whether the cluster has an API.
func (s VersionSet) Has(api string) bool { return slices.Contains(s, api) }

// apiVersions returns the APIs of Kubernetes that the library knows.
func apiVersions() VersionSet {
	return strings.Fields(`v1 admissionregistration.k8s.io/v1 admissionregistration.k8s.io/v1alpha1
		admissionregistration.k8s.io/v1beta1 internal.apiserver.k8s.io/v1alpha1 apps/v1 apps/v1beta1 apps/v1beta2
		authentication.k8s.io/v1 authentication.k8s.io/v1alpha1 authentication.k8s.io/v1beta1
		authorization.k8s.io/v1 authorization.k8s.io/v1beta1 autoscaling/v1 autoscaling/v2 batch/v1 batch/v1beta1
		certificates.k8s.io/v1 certificates.k8s.io/v1beta1 certificates.k8s.io/v1alpha1
		coordination.k8s.io/v1alpha2 coordination.k8s.io/v1beta1 coordination.k8s.io/v1 discovery.k8s.io/v1
		discovery.k8s.io/v1beta1 events.k8s.io/v1 events.k8s.io/v1beta1 extensions/v1beta1
		flowcontrol.apiserver.k8s.io/v1 flowcontrol.apiserver.k8s.io/v1beta1 flowcontrol.apiserver.k8s.io/v1beta2
		flowcontrol.apiserver.k8s.io/v1beta3 networking.k8s.io/v1 networking.k8s.io/v1beta1 node.k8s.io/v1
		node.k8s.io/v1alpha1 node.k8s.io/v1beta1 policy/v1 policy/v1beta1 rbac.authorization.k8s.io/v1
		rbac.authorization.k8s.io/v1beta1 rbac.authorization.k8s.io/v1alpha1 resource.k8s.io/v1
		resource.k8s.io/v1beta2 resource.k8s.io/v1beta1 resource.k8s.io/v1alpha3 scheduling.k8s.io/v1alpha2
		scheduling.k8s.io/v1beta1 scheduling.k8s.io/v1 storage.k8s.io/v1beta1 storage.k8s.io/v1
		storage.k8s.io/v1alpha1 storagemigration.k8s.io/v1beta1 apiextensions.k8s.io/v1beta1 apiextensions.k8s.io/v1`)
}

func capabilities(o Options) (*Capabilities, error) {
	text := o.KubeVersion
	if text == "" {
		text = DefaultKubeVersion
	}
	v, err := version.ParseGeneric(text)
	if err != nil {
		return nil, fmt.Errorf("%w: the version of Kubernetes %q: %w", errInvalid, text, err)
	}
	return &Capabilities{
		KubeVersion{"v" + v.String(), strconv.Itoa(int(v.Major())), strconv.Itoa(int(v.Minor()))},
		append(apiVersions(), o.APIVersions...),
		HelmVersion{Version: "v3.21", GoVersion: runtime.Version()},
	}, nil
}
