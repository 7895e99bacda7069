package clitest

import (
	"encoding/json"
	"testing"
)

// ClusterFile decodes a recorded answer of a cluster.
func ClusterFile(t *testing.T, name string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(ReadFile(t, "../../../testdata/olmv1/cluster/"+name)), into); err != nil {
		t.Fatal(err)
	}
}
