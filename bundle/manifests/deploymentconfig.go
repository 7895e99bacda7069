package manifests

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// deploymentConfig is what the configuration changes in deployments (OLMV1 section 3.8). nil changes nothing.
type deploymentConfig v1alpha1.SubscriptionConfig

// parseDeploymentConfig reads a deploymentConfig; nil and null are none.
func parseDeploymentConfig(text json.RawMessage) (*deploymentConfig, error) {
	var c *deploymentConfig
	if len(text) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, refusef("invalid deploymentConfig: failed to unmarshal deploymentConfig: %v", err)
	}
	return c, nil
}

// apply changes a deployment. Init containers are left alone.
func (c *deploymentConfig) apply(d *appsv1.Deployment) {
	if c == nil {
		return
	}
	pod := &d.Spec.Template.Spec
	for i := range pod.Containers {
		container := &pod.Containers[i]
		container.Env = overlaid(container.Env, c.Env, func(e corev1.EnvVar) string { return e.Name })
		container.EnvFrom = added(container.EnvFrom, c.EnvFrom)
		container.VolumeMounts = overlaid(container.VolumeMounts, c.VolumeMounts,
			func(m corev1.VolumeMount) string { return m.Name })
		if c.Resources != nil {
			container.Resources = *c.Resources
		}
	}
	pod.Volumes = overlaid(pod.Volumes, c.Volumes, func(v corev1.Volume) string { return v.Name })
	pod.Tolerations = added(pod.Tolerations, c.Tolerations)
	if c.NodeSelector != nil {
		pod.NodeSelector = c.NodeSelector
	}
	pod.Affinity = c.affinity(pod.Affinity)
	d.Annotations = below(d.Annotations, c.Annotations)
	d.Spec.Template.Annotations = below(d.Spec.Template.Annotations, c.Annotations)
}

// overlaid replaces the last item of the same name, and appends items of other names.
func overlaid[T any](items, more []T, name func(T) string) []T {
	at := make(map[string]int, len(items))
	for i, item := range items {
		at[name(item)] = i
	}
	for _, item := range more {
		if i, ok := at[name(item)]; ok {
			items[i] = item
		} else {
			items = append(items, item)
		}
	}
	return items
}

// added appends what is not there yet.
func added[T any](items, more []T) []T {
	for _, item := range more {
		if !slices.ContainsFunc(items, func(old T) bool { return reflect.DeepEqual(old, item) }) {
			items = append(items, item)
		}
	}
	return items
}

// below adds the annotations whose keys are not there yet.
func below(annotations, more map[string]string) map[string]string {
	if len(more) == 0 {
		return annotations
	}
	out := maps.Clone(more)
	maps.Copy(out, annotations)
	return out
}

// affinity replaces the parts of an affinity that are given, and takes away those that are given and empty.
func (c *deploymentConfig) affinity(old *corev1.Affinity) *corev1.Affinity {
	given := c.Affinity
	if given == nil {
		return old
	}
	if *given == (corev1.Affinity{}) {
		return nil
	}
	var out corev1.Affinity
	if old != nil {
		out = *old
	}
	if n := given.NodeAffinity; n != nil {
		out.NodeAffinity = unlessEmpty(n, emptyNodeAffinity(n))
	}
	if p := given.PodAffinity; p != nil {
		out.PodAffinity = unlessEmpty(p, emptyPodAffinity(p))
	}
	if p := given.PodAntiAffinity; p != nil {
		out.PodAntiAffinity = unlessEmpty(p, emptyPodAffinity((*corev1.PodAffinity)(p)))
	}
	if emptyNodeAffinity(out.NodeAffinity) && emptyPodAffinity(out.PodAffinity) &&
		emptyPodAffinity((*corev1.PodAffinity)(out.PodAntiAffinity)) {
		return nil
	}
	return &out
}

func unlessEmpty[T any](value *T, empty bool) *T {
	if empty {
		return nil
	}
	return value
}

// emptyPodAffinity reports whether an affinity or anti-affinity of pods says nothing; they have the same terms.
func emptyPodAffinity(p *corev1.PodAffinity) bool {
	return p == nil || len(p.RequiredDuringSchedulingIgnoredDuringExecution)+
		len(p.PreferredDuringSchedulingIgnoredDuringExecution) == 0
}

func emptyNodeAffinity(n *corev1.NodeAffinity) bool {
	if n == nil {
		return true
	}
	required := n.RequiredDuringSchedulingIgnoredDuringExecution
	return (required == nil || len(required.NodeSelectorTerms) == 0) &&
		len(n.PreferredDuringSchedulingIgnoredDuringExecution) == 0
}
