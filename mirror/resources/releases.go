package resources

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// addSignatures adds the ConfigMap with which a cluster verifies the releases that it is upgraded to, in both forms: the
// cluster reads every key that begins with the digest of the release.
func (m *maker) addSignatures() {
	if len(m.o.Signatures) == 0 {
		return
	}
	data := map[string][]byte{}
	for _, d := range slices.Sorted(maps.Keys(m.o.Signatures)) {
		for n, text := range m.o.Signatures[d] {
			data[fmt.Sprintf("%s-%s-%d", d.Algorithm(), d.Encoded(), n+1)] = text
		}
	}
	config := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{
		"name": "mirrored-release-signatures", "namespace": "openshift-config-managed", "annotations": m.annotations(),
		"labels": object{"release.openshift.io/verification-signatures": ""}}, "binaryData": data}
	text, err := json.Marshal(config)
	if err != nil {
		m.err = err
		return
	}
	m.add("signature-configmap.json", append(text, '\n'))
	m.add("signature-configmap.yaml", m.text(config))
}

// addUpdateService adds the object by which the update service of a cluster is installed.
func (m *maker) addUpdateService() {
	if m.o.GraphData.IsZero() {
		return
	}
	m.add("updateService.yaml", m.text(object{"apiVersion": "updateservice.operator.openshift.io/v1", "kind": "UpdateService",
		"metadata": object{"name": "update-service-oc-mirror", "namespace": "openshift-update-service",
			"annotations": m.annotations()},
		"spec": object{"replicas": 2, "releases": m.o.Releases.Repository(), "graphDataImage": m.o.GraphData.Name()}}))
}
