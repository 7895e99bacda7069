package imagemap

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/mirror/resources"
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

// RegistriesConf returns the registries.conf of [resources.RegistriesConf].
func RegistriesConf(mappings []Mapping, insecure bool) []byte {
	_, mirrors := repositories(mappings, both)
	return resources.RegistriesConf(mirrors, insecure)
}
