package manifests_test

import (
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// checkSqueezed compares the definitions of a file with what their type prints.
func checkSqueezed(t *testing.T, name string, text []byte) (fast, slow int) {
	t.Helper()
	printed, others := manifests.Squeezed(text)
	if len(printed) == 0 {
		return 0, others
	}
	all, err := manifests.SlowObjects(text)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	var want []string
	for _, u := range all {
		if u.GroupVersionKind().Kind != "CustomResourceDefinition" {
			continue
		}
		typed, err := manifests.Typed(u)
		if err != nil && others == 0 {
			t.Errorf("%s: %v", name, err)
		}
		want = append(want, typed)
	}
	if others == 0 && strings.Join(printed, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n%q\n%q", name, printed, want)
	}
	return len(printed), others
}

// Definitions that are not decoded are printed as their type prints them, and these are nearly all.
func TestSqueezed(t *testing.T) {
	fast, slow := 0, 0
	for name, files := range whole(t).bundles {
		for file, f := range files {
			if strings.HasPrefix(file, "manifests/") && !f.Mode.IsDir() {
				x, y := checkSqueezed(t, name+"/"+file, f.Data)
				fast, slow = fast+x, slow+y
			}
		}
	}
	if t.Logf("%d fast, %d slow", fast, slow); slow > fast/20 {
		t.Error("too many are slow")
	}
}

const crdHead = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",` +
	`"metadata":{"name":"a","creationTimestamp":null},`

var oddDefinitions = []string{
	crdHead + `"spec":null}`,
	crdHead + `"spec":{"unknown":{"a":[1]},"versions":[]},"status":{}}`,
	crdHead +
		`"spec":{"names":{"categories":[],"shortNames":["b"],"plural":null},"scope":"","preserveUnknownFields":false}}`,
	crdHead +
		`"spec":{"versions":[{"name":"v1","served":true,"schema":{"openAPIV3Schema":{"properties":{},"required":[],` +
		`"nullable":false,"maximum":10,"minimum":0,"maxLength":0,"enum":[null,"a<b",1,{"z":1,"a":2}],"default":null,` +
		`"additionalProperties":false,"items":{},"x-kubernetes-int-or-string":false,"description":""}}}]}}`,
	crdHead +
		`"spec":{"versions":[{"additionalPrinterColumns":[{"jsonPath":".a","name":"b","type":"string","priority":0}],` +
		`"subresources":{"status":{},"scale":{"specReplicasPath":"a"}}}],` +
		`"conversion":{"strategy":"None","webhook":null}}}`,
	crdHead + `"spec":{"versions":[{"schema":{"openAPIV3Schema":{"additionalProperties":true,"properties":{"a":{` +
		`"additionalProperties":{"type":"string"},"default":{"a":[0.5]},"multipleOf":0.1}}}}}]}}`,
	crdHead +
		`"spec":{"versions":[{"schema":{"openAPIV3Schema":{"maxLength":1e3,"items":[{}],` +
		`"dependencies":{"a":["b"]}}}}]}}`,
	`{"kind":"CustomResourceDefinition","metadata":{"creationTimestamp":"2024-01-01T00:00:00Z","labels":{}},` +
		`"status":{"storedVersions":["v1"],` +
		`"conditions":[{"type":"a","status":"True","lastTransitionTime":null}]}}`,
	`{"kind":"CustomResourceDefinition"}`, `{"apiVersion":null}`,
	`{"kind":"CustomResourceDefinition","status":{"conditions":[{"type":"a"},{"zz":1}]}}`,
}

func TestSqueezedOddities(t *testing.T) {
	for _, text := range oddDefinitions {
		checkSqueezed(t, text, []byte(text))
	}
}

// The fast reader never prints a definition in another way than its type, nor one that the type refuses.
func FuzzSqueezed(f *testing.F) {
	for _, text := range oddDefinitions {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { checkSqueezed(t, "", text) })
}
