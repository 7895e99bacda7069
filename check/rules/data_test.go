package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/check/openshift"
)

func TestDataOnOpenShift(t *testing.T) {
	d, err := ReadData(strings.NewReader(`
openshift_kubernetes: [{openshift: "4.23", kubernetes: "1.36"}, {openshift: v5.0, kubernetes: v1.36.2}]
openshift_indices: {community-operators: ["4.20", v4.9, 4.23.0], acme: ["4.17"]}
`), "data.yaml")
	if err != nil {
		t.Fatal(err)
	}
	table := d.OpenShift()
	newer, _ := table.Kubernetes(openshift.Version{Major: 5})
	known, _ := table.Kubernetes(openshift.Version{Major: 4, Minor: 22})
	if got, want := fmt.Sprint(table.Indices(openshift.Community), table.Indices("acme"), len(table.Indices(openshift.Marketplace)), newer,
		known), "[4.9 4.20 4.23] [4.17] 10 1.36 1.35"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for text, want := range map[string]string{
		`openshift_kubernetes: [{openshift: "4", kubernetes: "1.36"}]`:  `"4" is no version of OpenShift`,
		`openshift_kubernetes: [{openshift: 4.20, kubernetes: "1.36"}]`: `write it in quotes: "4.20"`,
		`openshift_kubernetes: [{openshift: "4.23", kubernetes: 1.36}]`: `write it in quotes: "1.36"`,
		`openshift_kubernetes: [{openshift: "4.23", kubernetes: "36"}]`: `"36" is no version of Kubernetes`,
		`openshift_kubernetes: [{openshift: "4.23"}]`:                   `needs openshift and kubernetes`,
		`openshift_indices: {acme: [4.20]}`:                             `write it in quotes: "4.20"`,
		`openshift_indices: {acme: ["4.20", "x"]}`:                      `"x" is no version of OpenShift`,
		`openshift_indexes: {acme: ["4.20"]}`:                           `there is no rule data "openshift_indexes"`,
	} {
		if _, err := ReadData(strings.NewReader(text), "data.yaml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
