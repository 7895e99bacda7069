package bundle_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// clusterDefaults are what an API server adds to a job, at its place.
const clusterDefaults = `{"spec": {"completionMode": "NonIndexed", "completions": 1, "manualSelector": false,
	"parallelism": 1, "podReplacementPolicy": "TerminatingOrFailed", "template": {"spec": {
		"containers": [{"imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log"}],
		"initContainers": [{"imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log"},
			{"terminationMessagePath": "/dev/termination-log"}],
		"dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30,
		"serviceAccount": "99e0a105de42906e5bf1dde2fff4bae81293ae97ed6f14206cc2489aaae2829"}}}}`

// withDefaults adds values to a value where it has none.
func withDefaults(value, defaults any) any {
	switch d := defaults.(type) {
	case map[string]any:
		object := value.(map[string]any)
		for name, of := range d {
			if object[name] == nil {
				object[name] = of
			} else {
				object[name] = withDefaults(object[name], of)
			}
		}
	case []any:
		list := value.([]any)
		for i, of := range d {
			list[i] = withDefaults(list[i], of)
		}
	}
	return value
}

// The objects are those that OLM's main branch created on a cluster, but for the defaults of the API server and the
// owners that only a cluster knows.
func TestBundleUnpackJobRecorded(t *testing.T) {
	var list struct{ Items []map[string]any }
	text := clitest.Done(t, t.TempDir(), "bindery", "bundle", "unpack-job", "127.0.0.1:46450/acme/widget-bundle:v1.1.0",
		"--opm-image", "example.com/opm:v1", "--util-image", "example.com/olm:v1", "--user", "0", "-o", "json",
		"--catalog-source", "bserve:986dac23-84e2-43af-9a7d-7231a367d909")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	for _, got := range list.Items {
		kind := got["kind"].(string)
		if kind == "ServiceAccount" { // it is in the recorded binding and job
			continue
		}
		var want, defaults map[string]any
		if err := errors.Join(json.Unmarshal([]byte(clitest.ReadFile(t, "../../../testdata/olmv1/cluster/v0-unpack-"+
			strings.ToLower(kind)+".json")), &want), json.Unmarshal([]byte(clusterDefaults), &defaults)); err != nil {
			t.Fatal(err)
		}
		if kind == "Job" {
			withDefaults(got, defaults)
		}
		if kind != "ConfigMap" {
			delete(want["metadata"].(map[string]any), "ownerReferences")
		}
		if !reflect.DeepEqual(got, want) {
			a, _ := json.MarshalIndent(got, "", " ")
			b, _ := json.MarshalIndent(want, "", " ")
			t.Errorf("got %s\nwant %s", a, b)
		}
	}
}
