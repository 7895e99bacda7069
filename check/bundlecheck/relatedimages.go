package bundlecheck

import (
	"path"
	"slices"
	"strings"

	"go.podman.io/image/v5/docker/reference"
	corev1 "k8s.io/api/core/v1"
)

// relatedImages finds images that only an environment variable or an argument of a container names. A mirror of the
// catalog copies relatedImages and the containers' images, and would miss those.
func (r *run) relatedImages(objects []object) {
	for _, o := range objects {
		if o.csv == nil {
			continue
		}
		known := map[string]bool{}
		for _, image := range o.csv.Spec.RelatedImages {
			known[image.Image] = true
		}
		specs := o.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
		for _, d := range specs {
			for _, c := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
				known[c.Image] = true
			}
		}
		for i, d := range specs {
			pod := []any{"spec", "install", "spec", "deployments", i, "spec", "template", "spec"}
			for list, containers := range map[string][]corev1.Container{"initContainers": d.Spec.Template.Spec.InitContainers, "containers": d.Spec.Template.Spec.Containers} {
				for n, c := range containers {
					here := append(slices.Clone(pod), list, n)
					r.unrelated(o, c, here, known)
				}
			}
		}
	}
}

// unrelated checks one container.
func (r *run) unrelated(o object, c corev1.Container, here []any, known map[string]bool) {
	const hint = "is not in spec.relatedImages: a mirrored catalog will lack it"
	for n, e := range c.Env {
		if looksLikeImage(e.Value, strings.HasPrefix(e.Name, "RELATED_IMAGE_")) && !known[e.Value] {
			r.warn("related-image", placeIn(o.Object, append(slices.Clone(here), "env", n)...),
				"the image %q, which the environment variable %s of the container %q names, %s", e.Value, e.Name,
				c.Name, hint)
		}
	}
	for _, list := range []struct {
		key  string
		args []string
	}{{"command", c.Command}, {"args", c.Args}} {
		for n, arg := range list.args {
			value := arg
			if _, v, ok := strings.Cut(arg, "="); ok {
				value = v
			}
			if looksLikeImage(value, false) && !known[value] {
				r.warn("related-image", placeIn(o.Object, append(slices.Clone(here), list.key, n)...),
					"the image %q, which an argument of the container %q names, %s", value, c.Name, hint)
			}
		}
	}
}

// looksLikeImage reports whether a value is an image reference: it has a registry, a path, and a tag or digest. If the
// variable's name says that it is an image, any reference counts.
func looksLikeImage(value string, sure bool) bool {
	if value == "" || len(value) > 1024 || strings.Contains(value, "://") {
		return false
	}
	named, err := reference.ParseNormalizedNamed(value)
	if err != nil {
		return false
	}
	if sure {
		return true
	}
	host, rest, ok := strings.Cut(value, "/")
	if !ok || reference.IsNameOnly(named) || !(strings.ContainsAny(host, ".:") || host == "localhost") {
		return false
	}
	// ghcr.io/some/thing:8080 is an image; 10.0.0.1:53/udp and file.txt/a are not.
	return strings.ContainsFunc(host, func(c rune) bool { return 'a' <= c && c <= 'z' }) && path.Ext(rest) != ".sock"
}
