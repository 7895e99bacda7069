package imagemap

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"
)

// Lines formats the mappings one per line, SOURCE=DESTINATION, as "oc image mirror -f" reads them.
func Lines(mappings []Mapping) []byte {
	var b bytes.Buffer
	for _, m := range mappings {
		fmt.Fprintf(&b, "%s=%s\n", m.Source, m.Destination)
	}
	return b.Bytes()
}

// repositories returns the destinations of each source repository, both sorted.
func repositories(mappings []Mapping, which func(Mapping) bool) (names []string, mirrors map[string][]string) {
	mirrors = map[string][]string{}
	for _, m := range mappings {
		if which(m) && !slices.Contains(mirrors[m.from], m.to) {
			mirrors[m.from] = append(mirrors[m.from], m.to)
		}
	}
	return slices.Sorted(maps.Keys(mirrors)), mirrors
}

func byDigest(m Mapping) bool { return m.digest }
func byTag(m Mapping) bool    { return !m.digest }
func both(Mapping) bool       { return true }

// object is a configuration of a cluster.
type object struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   metadata       `json:"metadata"`
	Spec       map[string]any `json:"spec"`
}

type metadata struct {
	Name string `json:"name"`
}

type mirrorOf struct {
	Mirrors []string `json:"mirrors"`
	Source  string   `json:"source"`
}

func cluster(apiVersion, kind, name, list string, mappings []Mapping, which func(Mapping) bool) ([]byte, error) {
	names, mirrors := repositories(mappings, which)
	items := make([]mirrorOf, 0, len(names))
	for _, from := range names {
		items = append(items, mirrorOf{mirrors[from], from})
	}
	return yaml.Marshal(object{apiVersion, kind, metadata{name}, map[string]any{list: items}})
}

// DigestMirrorSet returns an ImageDigestMirrorSet in YAML, for the images that are pulled by digest.
func DigestMirrorSet(name string, mappings []Mapping) ([]byte, error) {
	return cluster("config.openshift.io/v1", "ImageDigestMirrorSet", name, "imageDigestMirrors", mappings, byDigest)
}

// TagMirrorSet returns an ImageTagMirrorSet in YAML, for the images that are pulled by tag.
func TagMirrorSet(name string, mappings []Mapping) ([]byte, error) {
	return cluster("config.openshift.io/v1", "ImageTagMirrorSet", name, "imageTagMirrors", mappings, byTag)
}

// ContentSourcePolicy returns an ImageContentSourcePolicy in YAML, the predecessor of ImageDigestMirrorSet.
func ContentSourcePolicy(name string, mappings []Mapping) ([]byte, error) {
	return cluster("operator.openshift.io/v1alpha1", "ImageContentSourcePolicy", name, "repositoryDigestMirrors",
		mappings, byDigest)
}

// RegistriesConf returns a registries.conf with which podman and bindery pull images from the mirror, and from the
// source if the mirror does not have them. insecure allows plain HTTP and any certificate for the mirror.
func RegistriesConf(mappings []Mapping, insecure bool) []byte {
	var b bytes.Buffer
	names, mirrors := repositories(mappings, both)
	for i, from := range names {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[[registry]]\nprefix = %q\nlocation = %q\n", from, from)
		for _, to := range mirrors[from] {
			fmt.Fprintf(&b, "\n[[registry.mirror]]\nlocation = %q\n", to)
			if insecure {
				b.WriteString("insecure = true\n")
			}
		}
	}
	return b.Bytes()
}
