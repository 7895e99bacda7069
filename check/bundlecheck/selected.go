package bundlecheck

import (
	"maps"
	"slices"
	"strings"

	"go.podman.io/image/v5/docker/reference"
	corev1 "k8s.io/api/core/v1"
)

// imageDigests warns about images with a tag: a tag can move, and a mirror by digest cannot contain it.
func (r *run) imageDigests(csv object) {
	byTag := func(image string, path ...any) {
		named, err := reference.ParseNormalizedNamed(image)
		if err != nil {
			return // another validator reports it
		}
		if _, ok := named.(reference.Digested); !ok {
			r.warn("image-digests", placeIn(csv.Object, path...), "the image %q is not named by its digest", image)
		}
	}
	for i, image := range csv.csv.Spec.RelatedImages {
		byTag(image.Image, "spec", "relatedImages", i, "image")
	}
	for i, d := range csv.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		pod := []any{"spec", "install", "spec", "deployments", i, "spec", "template", "spec"}
		for n, c := range d.Spec.Template.Spec.InitContainers {
			byTag(c.Image, append(slices.Clone(pod), "initContainers", n, "image")...)
		}
		for n, c := range d.Spec.Template.Spec.Containers {
			byTag(c.Image, append(slices.Clone(pod), "containers", n, "image")...)
		}
	}
}

// architectures compares the labels in which the operator declares where it runs with the node affinity of its
// deployments. It does not read the images.
func (r *run) architectures(csv object) {
	for _, what := range []struct{ label, node, otherwise string }{
		{"operatorframework.io/arch.", "kubernetes.io/arch", "amd64"},
		{"operatorframework.io/os.", "kubernetes.io/os", "linux"},
	} {
		declared := map[string]bool{}
		for label, value := range csv.csv.Labels {
			if name, ok := strings.CutPrefix(label, what.label); ok && value == "supported" {
				declared[name] = true
			}
		}
		here := []any{"metadata", "labels"}
		if len(declared) == 0 {
			r.warn("multiarch", placeIn(csv.Object, here...),
				"no label %sNAME=supported: the operator is offered on %s only", what.label, what.otherwise)
			declared[what.otherwise] = true
		}
		for i, d := range csv.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
			allowed, ok := affinity(d.Spec.Template.Spec, what.node)
			place := placeIn(csv.Object, "spec", "install", "spec", "deployments", i, "spec", "template", "spec")
			if !ok {
				r.warn("multiarch", place, "the deployment %q does not say by node affinity on which %s it runs",
					d.Name, what.node)
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(declared)) {
				if !slices.Contains(allowed, name) {
					r.fail("multiarch", place,
						"the label %s%s says that the operator runs there, and the node affinity of the deployment "+
							"%q forbids it", what.label, name, d.Name)
				}
			}
			for _, name := range allowed {
				if !declared[name] {
					r.warn("multiarch", place, "the deployment %q runs on %s, and there is no label %s%s=supported",
						d.Name, name, what.label, name)
				}
			}
		}
	}
}

// affinity returns the values of a node label that a pod requires; ok is false if it requires none.
func affinity(pod corev1.PodSpec, label string) (values []string, ok bool) {
	if pod.Affinity == nil || pod.Affinity.NodeAffinity == nil ||
		pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil, false
	}
	for _, term := range pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key == label && e.Operator == corev1.NodeSelectorOpIn {
				values, ok = append(values, e.Values...), true
			}
		}
	}
	slices.Sort(values)
	return slices.Compact(values), ok
}
