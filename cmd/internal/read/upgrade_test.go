package read

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/olmv1/manifests"
	"github.com/operator-bindery/bindery/olmv1/safety"
	"github.com/operator-bindery/bindery/olmv1/upgrade"
)

// parse reads manifests of one line each, in flow style.
func parse(t testing.TB, lines ...string) []upgrade.Manifest {
	t.Helper()
	objects, err := manifests.Parse("test", []byte(strings.Join(lines, "\n---\n")))
	if err != nil {
		t.Fatal(err)
	}
	return toCompare(objects)
}

// account binds a role with rules to the service account ns/sa, for a namespace or for the cluster.
func account(name, namespace, rules string) []string {
	kind, meta := "ClusterRole", "{name: "+name+"}"
	if namespace != "" {
		kind, meta = "Role", "{name: "+name+", namespace: "+namespace+"}"
	}
	const version = "apiVersion: rbac.authorization.k8s.io/v1\nkind: "
	return []string{
		version + kind + "\nmetadata: " + meta + "\nrules: " + rules,
		version + kind + "Binding\nmetadata: " + meta +
			"\nsubjects: [{kind: ServiceAccount, namespace: ns, name: sa}]\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: " + kind + ", name: " + name + "}",
	}
}

func rule(groups, resources, verbs string) string {
	return fmt.Sprintf("{apiGroups: [%s], resources: [%s], verbs: [%s]}", groups, resources, verbs)
}

func crd(name, versions string) string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name +
		"}\nspec: {versions: [" + versions + "]}"
}

func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		from, to []string
		want     string
	}{
		"nothing": {account("a", "", "[]"), account("a", "", "[]"), "no differences\n"},
		"another name of a role": {account("a-1", "ns", "["+rule("apps", "deployments", "get")+"]"),
			account("a-2", "ns", "["+rule("apps", "deployments", "get")+"]"), "no differences\n"},
		"rules": {account("a-1", "", "["+rule(`""`, "pods, secrets", "get, list")+"]"),
			account("a-2", "",
				"["+rule(`""`, "pods", "list, get, delete")+", {nonResourceURLs: [/metrics], verbs: [get]}]"),
			`permissions
  ServiceAccount ns/sa, in the cluster
    + /metrics: get
    + pods: delete
    - secrets: get, list

2 roles and bindings have other names, for the same accounts
`},
		"a rule in two parts": {account("a", "", "["+rule("apps", "a, b", "get")+"]"),
			account("a", "", "["+rule("apps", "a", "get")+", "+rule("apps", "b", "get")+"]"), "no differences\n"},
		"what a star covers": {account("a", "", "["+rule("apps", `"*"`, `"*"`)+"]"),
			account("a", "", "["+rule("apps", "deployments, deployments/scale", "get")+"]"), `permissions
  ServiceAccount ns/sa, in the cluster
    - *.apps: *
`},
		"one object in place of all": {account("a", "ns", "["+rule(`""`, "secrets", "get")+"]"),
			account("a", "ns", `[{apiGroups: [""], resources: [secrets], resourceNames: [x], verbs: [get]}]`),
			`permissions
  ServiceAccount ns/sa, in namespace ns
    - secrets: get
`},
		"cluster in place of a namespace": {account("a", "ns", "["+rule(`""`, "pods", "get")+"]"),
			account("a", "", "["+rule(`""`, "pods", "get")+"]"), `permissions
  ServiceAccount ns/sa, in the cluster
    + pods: get

objects
  + ClusterRole a
  + ClusterRoleBinding a
  - Role ns/a
  - RoleBinding ns/a
`},
		"a role that is elsewhere": {nil, account("a", "", "[]")[1:], `permissions
  ServiceAccount ns/sa, in the cluster
    + what ClusterRole a allows

objects
  + ClusterRoleBinding a
`},
		"a role without a binding": {account("a", "", "["+rule("g", "r", "get")+"]")[:1],
			account("a", "", "["+rule("g", "r", "get, list")+"]")[:1], `permissions
  ClusterRole a, in the cluster
    + r.g: list
`},
		"definitions": {
			[]string{crd("a.b",
				"{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {properties: {spec: {type: "+
					"object, properties: {a: {type: string}, l: {type: array, items: {properties: {x: {type: "+
					"string}}}}}}}}}}, {name: v0}")},
			[]string{crd("a.b",
				"{name: v1, served: true, schema: {openAPIV3Schema: {properties: {spec: {type: object, required: "+
					"[a], properties: {a: {type: integer}, l: {type: array, items: {properties: {z: {type: "+
					"string}}}}}}}}}}, {name: v2}")}, `definitions
  a.b
    + version v2
    - version v0
    ~ version v1
        no longer storage
        - field spec.l[].x
        ~ field spec.a has another type
        ! field spec.a is required
        + field spec.l[].z
    not known whether OLM v1 refuses the upgrade: CustomResourceDefinition "a.b" cannot be compared: the old one: its ` +
				"version \"v0\" has no schema (spec.versions[1].schema.openAPIV3Schema), and the API server refuses it\n"},
		"descriptions": {[]string{crd("a.b", "{name: v1, schema: {openAPIV3Schema: {description: a}}}")},
			[]string{crd("a.b", "{name: v1, schema: {openAPIV3Schema: {description: b}}}")}, `definitions
  a.b
    ~ version v1
        ~ schema: description: "a" -> "b"
`},
		"what OLM v1 refuses": {
			[]string{crd("a.b", "{name: v1, storage: true, served: true, schema: {openAPIV3Schema: {type: object, properties: {"+
				"spec: {type: object, required: [o], properties: {gone: {type: string}, o: {type: string}, t: {type: string}, "+
				"d: {type: integer, default: 1, maximum: 5, description: a}, m: {type: object, additionalProperties: {type: "+
				"string, format: a}}, l: {type: array, items: {type: string, enum: [a, b]}}}}}}}}, {name: v2, schema: "+
				"{openAPIV3Schema: {}}, subresources: {status: {}}}")},
			[]string{crd("a.b", "{name: v1, storage: true, served: true, schema: {openAPIV3Schema: {type: object, title: T, "+
				"properties: {spec: {type: object, required: [t], properties: {o: {type: string}, t: {type: integer}, d: {type: "+
				"integer, default: 2, maximum: 6, description: b}, m: {type: object, additionalProperties: {type: string, "+
				"format: b}}, l: {type: array, items: {type: string, enum: [a]}}, new: {}}}}}}}, {name: v2, schema: "+
				"{openAPIV3Schema: {}}, additionalPrinterColumns: [{name: a}]}")}, `definitions
  a.b
    ~ version v1
        - field spec.gone (refused)
        ~ field spec.t has another type (refused)
        ! field spec.t is required (refused)
        + field spec.new
        ~ field spec.o: required: true -> false
        ~ schema: title: - -> "T" (refused)
        ~ field spec.d: default: 1 -> 2 (refused)
        ~ field spec.d: description: "a" -> "b"
        ~ field spec.d: maximum: 5 -> 6
        ~ field spec.l[]: enum: ["a","b"] -> ["a"] (refused)
        ~ field spec.m{}: format: "a" -> "b" (refused)
    ~ version v2
        ~ additionalPrinterColumns: - -> [{"name":"a"}]
        ~ subresources: {"status":{}} -> -
    OLM v1 refuses the upgrade:
        existingFieldRemoval: removed field : v1.^.spec.gone
        v1: ^: unhandled: unhandled changes found (Title "" -> "T")
        v1: ^.spec: required: new required fields: [t]
        v1: ^.spec.d: default: default value changed : "1" -> "2"
        v1: ^.spec.gone: type: type changed : "string" -> ""
        v1: ^.spec.l.items: enum: allowed enum values removed : ["b"]
        v1: ^.spec.m: unhandled: unhandled changes found (Format "a" -> "b")
        v1: ^.spec.m.additionalProperties: unhandled: unhandled changes found (Format "a" -> "b")
        v1: ^.spec.t: type: type changed : "string" -> "integer"
`},
		"a definition of v1beta1": {
			[]string{strings.Replace(crd("a.b", "{name: v1, schema: {openAPIV3Schema: {description: a}}}"), "/v1", "/v1beta1", 1)},
			[]string{crd("a.b", "{name: v1, schema: {openAPIV3Schema: {description: b}}}")}, `definitions
  a.b
    ~ version v1
        ~ schema: description: "a" -> "b"
    not known whether OLM v1 refuses the upgrade: it looks at definitions of apiextensions.k8s.io/v1

objects
  ~ CustomResourceDefinition a.b
      apiVersion: "apiextensions.k8s.io/v1beta1" -> "apiextensions.k8s.io/v1"
`},
		"fields": {
			[]string{"kind: D\nmetadata: {name: d}\nspec: {c: [{name: a, image: x}, {name: b}], l: [1, 2], m: [1], " +
				"gone: ~}"},
			[]string{"kind: D\nmetadata: {name: d}\nspec: {c: [{name: b}, {name: a, image: w}], l: [1, 3], m: [], " +
				"new: {}}"},
			`objects
  ~ D d
      spec.c[a].image: "x" -> "w"
      spec.gone: null -> -
      spec.l[1]: 2 -> 3
      spec.m: [1] -> []
      spec.new: - -> {}
`},
		"objects": {[]string{"kind: A\nmetadata: {name: a}", "kind: B\nmetadata: {name: \"a\\u202e\"}"},
			[]string{"kind: A\nmetadata: {name: b, namespace: ns}"}, `objects
  + A ns/b
  - A a
  - B a\u202e
`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := upgrade.Compare(t.Context(), parse(t, c.from...), parse(t, c.to...), safety.Refused)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := r.WriteText(&out,
				func(s string) string { return strings.ReplaceAll(s, "\u202e", `\u202e`) }); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want || r.Same != (c.want == "no differences\n") {
				t.Errorf("got\n%s\nwant\n%s", out.String(), c.want)
			}
		})
	}
}

// Lists are never null in JSON.
func TestReportJSON(t *testing.T) {
	r, err := upgrade.Compare(t.Context(), parse(t, account("a", "", "["+rule("g", "r", "get")+"]")...), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil || strings.Contains(string(text), "null") {
		t.Errorf("%s, %v", text, err)
	}
}

// What a bundle may do is what is gained if nothing was there.
func TestPermissionsOfOneBundle(t *testing.T) {
	b, err := manifests.Read(os.DirFS("../../../testdata/bundles/silicom-sts-operator/0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := b.Manifests(manifests.Settings{InstallNamespace: "silicom", Certs: manifests.CertManager})
	if err != nil {
		t.Fatal(err)
	}
	report, err := upgrade.Compare(t.Context(), nil, toCompare(objects), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range report.Permissions {
		got = append(got, fmt.Sprint(a.Subject, " ", len(a.Gained), " ", len(a.Lost)))
	}
	want := []string{"ClusterRole sts-metrics-reader 1 0", "ServiceAccount silicom/sts-controller-manager 26 0",
		"ServiceAccount sts-silicom/sts-plugin 1 0", "ServiceAccount sts-silicom/sts-plugin 3 0",
		"ServiceAccount sts-silicom/sts-tsync 2 0"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
