package manifests_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// No bundle makes it panic; Problems and Manifests agree; the two readers agree on what both accept.
func FuzzRead(f *testing.F) {
	for _, text := range []string{csv, "kind: List\nitems: [{kind: A, apiVersion: v1}]", "a: &a [*a]",
		"---\n---\nkind: n",
		"kind: ConfigMap\nmetadata: {name: 1.0}\ndata: {a: 1e3, b: 0x10, c: ~}", "kind: A\nkind: B",
		`{"kind":"CustomResourceDefinition","spec":{"versions":[{"schema":{"openAPIV3Schema":{"default":1.0}}}]}}`} {
		f.Add([]byte(text), []byte("properties: [{type: a, value: 1}]"))
	}
	f.Fuzz(func(t *testing.T, manifest, properties []byte) {
		if fast, ok := manifests.Regular(manifest); ok {
			slow, err := manifests.SlowObjects(manifest)
			if err != nil || !same(fast, slow) {
				t.Errorf("read otherwise: %v (%v), %v", fast, err, slow)
			}
		}
		b, err := manifests.Read(bundleOf(map[string]string{"manifests/b.yaml": string(manifest),
			"metadata/properties.yaml": string(properties)}))
		if err != nil {
			return
		}
		for _, s := range []manifests.Settings{
			{InstallNamespace: "ns", Certs: manifests.CertManager},
			{InstallNamespace: "ns", Gates: []manifests.Gate{manifests.SingleOwnNamespace}},
		} {
			objects, err := b.Manifests(s)
			if problems := b.Problems(s); (err == nil) != (len(problems) == 0) {
				t.Errorf("error %v, problems %v", err, problems)
			}
			for _, o := range objects {
				if !json.Valid(o.JSON) {
					t.Errorf("%s: %q", o, o.JSON)
				}
			}
			manifests.Phases(objects)
		}
	})
}

// same compares objects by their JSON: 1e3 may be a float for the one and an integer for the other.
func same(x, y any) bool {
	if reflect.DeepEqual(x, y) {
		return true
	}
	a, _ := json.Marshal(x)
	b, _ := json.Marshal(y)
	var u, v any
	return json.Unmarshal(a, &u) == nil && json.Unmarshal(b, &v) == nil && reflect.DeepEqual(u, v)
}

// No configuration makes it panic, and what the schema accepts can be applied or is refused with a message.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{`{"watchNamespace":"a"}`, `[1]`, "null", "deploymentConfig: {env: [{name: a}]}",
		`{"deploymentConfig":{"resources":{"limits":{"cpu":"x"}},"volumes":[{"name":1,"secret":{"items":[{}]}}]}}`,
		"a: b: c"} {
		f.Add([]byte(text))
	}
	b, err := manifests.Read(bundleOf(map[string]string{"manifests/a.yaml": `
kind: ClusterServiceVersion
spec:
  installModes: [{type: AllNamespaces, supported: true}, {type: OwnNamespace, supported: true}]
  install: {spec: {deployments: [{name: d, spec: {template: {spec: {containers: [{name: c, env: [{name: a}]}]}}}}]}}
`}))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, config []byte) {
		s := manifests.Settings{InstallNamespace: "ns", Certs: manifests.CertManager, Config: config,
			Gates: []manifests.Gate{manifests.SingleOwnNamespace, manifests.DeploymentConfig}}
		_, err := b.Manifests(s)
		if problems := b.Problems(s); (err == nil) != (len(problems) == 0) {
			t.Errorf("error %v, problems %v", err, problems)
		}
	})
}
