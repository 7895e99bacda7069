package openshift

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/bundle"
)

// read returns the bundle of a ClusterServiceVersion's further lines, with files by name.
func read(t *testing.T, annotation, annotations, spec string, files map[string]string) *bundle.Bundle {
	t.Helper()
	fsys := fstest.MapFS{
		"manifests/demo.clusterserviceversion.yaml": {Data: []byte(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: demo.v1.0.0
` + annotations + `spec:
  version: 1.0.0
` + spec)},
		"metadata/annotations.yaml": {Data: []byte(`annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: demo
  operators.operatorframework.io.bundle.channels.v1: stable
` + annotation)},
	}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	b, err := bundle.Read(t.Context(), fsys, bundle.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func object(apiVersion, kind string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: one}\n", apiVersion, kind)
}

func TestWhichVersionsTakeABundle(t *testing.T) {
	properties := func(list string) string { return "  annotations:\n    olm.properties: '" + list + "'\n" }
	for name, c := range map[string]struct {
		annotation, annotations, spec string
		files                         map[string]string
		want                          string
	}{
		"nothing declared": {want: "4.12 to 4.22"},
		"a range of versions": {annotation: "  com.redhat.openshift.versions: v4.14-v4.17\n",
			want: `4.14 to 4.17; before 4.14, from 4.18 on: com.redhat.openshift.versions is "v4.14-v4.17"`},
		"one version": {annotation: "  com.redhat.openshift.versions: =v4.14\n",
			want: `4.14; before 4.14, from 4.15 on: com.redhat.openshift.versions is "=v4.14"`},
		"no range": {annotation: "  com.redhat.openshift.versions: latest\n",
			want: `no version; all: com.redhat.openshift.versions: "latest" does not select versions of OpenShift: ` +
				"write v4.12 for 4.12 and later, =v4.12, or v4.12-v4.14"},
		"minKubeVersion":          {spec: "  minKubeVersion: 1.30.0\n", want: "4.17 to 4.22; before 4.17: spec.minKubeVersion is 1.30.0"},
		"minKubeVersion with a v": {spec: "  minKubeVersion: v1.25.0\n", want: "4.12 to 4.22"},
		"minKubeVersion with a patch": {spec: "  minKubeVersion: 1.26.3\n", want: "4.13 to 4.22; 4.12: spec.minKubeVersion is 1.26.3; " +
			"4.13: a release with Kubernetes 1.26.3 or later is needed"},
		"minKubeVersion of two numbers": {spec: "  minKubeVersion: \"1.25\"\n",
			want: `no version; all: spec.minKubeVersion "1.25" is no version of three numbers, and OLM never installs the bundle`},
		"an API that is gone": {files: map[string]string{"manifests/pdb.yaml": object("policy/v1beta1", "PodDisruptionBudget")},
			want: "no version; all: policy/v1beta1 PodDisruptionBudget is gone since Kubernetes 1.25"},
		"an API that is gone of a kind that OLM creates as v1": {files: map[string]string{
			"manifests/role.yaml": object("rbac.authorization.k8s.io/v1beta1", "ClusterRole")}, want: "4.12 to 4.22"},
		"an API that is no API": {files: map[string]string{"manifests/pdb.yaml": object("policy/v2", "PodDisruptionBudget")},
			want: "no version; all: policy/v2 PodDisruptionBudget is no API of Kubernetes"},
		"a network policy": {files: map[string]string{"manifests/np.yaml": object("networking.k8s.io/v1", "NetworkPolicy")},
			want: "4.12 to 4.22; before 4.20: NetworkPolicy is installed from 4.12.81, 4.13.61, 4.14.57, 4.15.58, 4.16.48, 4.17.39, " +
				"4.18.23, 4.19.10 on"},
		"a console plugin": {files: map[string]string{"manifests/cp.yaml": object("console.openshift.io/v1", "ConsolePlugin")},
			want: "4.20 to 4.22; before 4.20: its OLM installs no ConsolePlugin"},
		"a kind of opm alone": {files: map[string]string{"manifests/pm.yaml": object("monitoring.coreos.com/v1", "PodMonitor")},
			want: "no version; all: its OLM installs no PodMonitor"},
		"the second document of a file": {files: map[string]string{"manifests/np.yaml": object("v1", "Service") + "---\n" + object("v1", "Pod")},
			want: "4.12 to 4.22"},
		"a last version": {annotations: properties(`[{"type": "olm.maxOpenShiftVersion", "value": "4.20"}]`),
			want: "4.12 to 4.22; from 4.20 on: as olm.maxOpenShiftVersion is 4.20, a cluster with the bundle does not " +
				"update to its next minor version"},
		"a last version in properties.yaml": {files: map[string]string{
			"metadata/properties.yaml": "properties:\n- {type: olm.maxOpenShiftVersion, value: \"4.21\"}\n"},
			want: "4.12 to 4.22; from 4.21 on: as olm.maxOpenShiftVersion is 4.21, a cluster with the bundle does not " +
				"update to its next minor version"},
		"a last version that is a number": {annotations: properties(`[{"type": "olm.maxOpenShiftVersion", "value": 4.20}]`),
			want: "4.12 to 4.22; all: as olm.maxOpenShiftVersion is 4.2, a cluster with the bundle does not update to its next minor version"},
		"a last version that is a release later": {annotations: properties(`[{"type": "olm.maxOpenShiftVersion", "value": "5.0"}]`),
			want: "4.12 to 4.22"},
		"a last version that is a patch": {annotations: properties(`[{"type": "olm.maxOpenShiftVersion", "value": "4.20.1"}]`),
			want: `4.12 to 4.22; all: as olm.maxOpenShiftVersion is "4.20.1", no minor version, a cluster with the bundle does ` +
				"not update to its next minor version"},
		"two last versions": {annotations: properties(`[{"type": "olm.maxOpenShiftVersion", "value": "4.20"},
      {"type": "olm.maxOpenShiftVersion", "value": "4.21"}]`),
			want: "4.12 to 4.22; all: as there are several properties olm.maxOpenShiftVersion, a cluster with the bundle does " +
				"not update to its next minor version"},
		"several reasons": {annotation: "  com.redhat.openshift.versions: v4.13\n", spec: "  minKubeVersion: 1.28.0\n",
			want: `4.15 to 4.22; 4.12: com.redhat.openshift.versions is "v4.13"; before 4.15: spec.minKubeVersion is 1.28.0`},
	} {
		t.Run(name, func(t *testing.T) {
			table := NewTable(nil, nil)
			got := Of(read(t, c.annotation, c.annotations, c.spec, c.files), table, table.Indices(Community))
			if got.Text != c.want {
				t.Errorf("got  %s\nwant %s", got.Text, c.want)
			}
			if got.Package != "demo" || got.Bundle != "demo.v1.0.0" || len(got.Versions) != 11 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestNoVersionTakesWhatIsNoOperator(t *testing.T) {
	table := NewTable(nil, nil)
	for want, b := range map[string]*bundle.Bundle{
		"no version; all: the bundle has no ClusterServiceVersion":                {MediaType: bundle.RegistryV1},
		`no version; all: OLM v0 installs no bundle of the media type "plain+v0"`: {MediaType: bundle.PlainV0},
	} {
		if got := Of(b, table, table.Indices(Community)); got.Text != want {
			t.Errorf("got %s, want %s", got.Text, want)
		}
	}
}

func TestVersionsBeforeAndAfterTheTable(t *testing.T) {
	b := read(t, "", "", "  minKubeVersion: 1.30.0\n", map[string]string{"manifests/crd.yaml": strings.Replace(
		object("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"), "one", "ones.example.com", 1)})
	got := Of(b, NewTable(nil, nil), []Version{{4, 8}, {4, 9}, {4, 24}})
	want := "4.24; before 4.24: spec.minKubeVersion is 1.30.0; 4.9: apiextensions.k8s.io/v1beta1 CustomResourceDefinition is gone " +
		"since Kubernetes 1.22; from 4.24 on: its Kubernetes is not known: add it to the rule data openshift_kubernetes"
	if got.Text != want {
		t.Errorf("got  %s\nwant %s", got.Text, want)
	}
	if got := Of(b, NewTable(nil, nil), nil); got.Text != "not known: there is no index" || got.Versions == nil {
		t.Errorf("%+v", got)
	}
}
