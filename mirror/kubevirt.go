package mirror

import (
	"slices"

	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/releases/payload"
)

// machines are the names that boot images have for the architectures of releases.
var machines = map[string]string{"amd64": "x86_64", "s390x": "s390x"}

// componentsOf are the images of a release that an image set asks for: all components, and the boot images of virtual
// machines if they are wanted, of which a release for a single architecture takes its own. The architecture is empty if
// it is not known. The result tells whether there is a boot image.
func componentsOf(p *imageset.Platform, architecture string, names *payload.Payload) (list []payload.Component, booting bool) {
	list = slices.Clone(names.Components)
	keys := kubeVirtKeys(p)
	for _, key := range keys {
		ref, ok := names.KubeVirt[key]
		if !ok || architecture != "" && architecture != "multi" && key != machines[architecture] {
			continue
		}
		name := "kube-virt-container"
		if len(keys) > 1 {
			name += "-" + key
		}
		list, booting = append(list, payload.Component{Name: name, Image: ref}), true
	}
	return list, booting
}

// kubeVirtKeys are the architectures of the boot images that an image set asks for.
func kubeVirtKeys(p *imageset.Platform) (keys []string) {
	if !p.KubeVirt {
		return nil
	}
	all := []string{machines["amd64"], machines["s390x"]}
	add := func(architecture string) {
		if key := machines[architecture]; key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, of := range p.Platforms {
		add(of.Architecture)
	}
	for _, of := range p.Architectures {
		if of == "multi" {
			return all
		}
		add(of)
	}
	switch {
	case len(keys) > 0:
		return keys
	case len(p.Platforms) > 0:
		return all
	}
	return all[:1]
}
