package web

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/operator-bindery/bindery/olmv1/upgrade"
)

// release is a bundle of the package p for tests.
type release struct {
	name, image, related string
	properties           []string // JSON
	objects              []string // JSON
}

// upgradesOf returns a catalog of the package p with a channel "stable" of versions that replace each other.
func upgradesOf(t testing.TB, versions ...release) fstest.MapFS {
	t.Helper()
	var out strings.Builder
	var entries []map[string]string
	write := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(text, '\n'))
	}
	write(map[string]any{"schema": "olm.package", "name": "p", "defaultChannel": "stable"})
	for i, v := range versions {
		properties := []any{map[string]any{"type": "olm.package", "value": map[string]string{"packageName": "p",
			"version": fmt.Sprintf("1.%d.0", i)}}}
		for _, p := range v.properties {
			properties = append(properties, json.RawMessage(p))
		}
		for _, o := range v.objects {
			properties = append(properties, map[string]any{"type": "olm.bundle.object",
				"value": map[string]string{"data": base64.StdEncoding.EncodeToString([]byte(o))}})
		}
		entry := map[string]string{"name": v.name}
		if i > 0 {
			entry["replaces"] = versions[i-1].name
		}
		entries = append(entries, entry)
		write(map[string]any{"schema": "olm.bundle", "package": "p", "name": v.name, "image": v.image,
			"properties": properties, "relatedImages": []any{map[string]string{"name": "r", "image": v.related}}})
	}
	write(map[string]any{"schema": "olm.channel", "package": "p", "name": "stable", "entries": entries})
	return fstest.MapFS{"catalog.json": {Data: []byte(out.String())}}
}

// csvThatMay is a ClusterServiceVersion with permissions in the cluster and in namespaces, and an image in its deployment.
func csvThatMay(cluster, namespaced, image string) string {
	return `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"p"},` +
		`"spec":{"installModes":[{"type":"AllNamespaces","supported":true}],"install":{"spec":{"clusterPermissions":[` +
		`{"serviceAccountName":"sa","rules":[` + cluster + `]}],"permissions":[{"serviceAccountName":"sa","rules":[` + namespaced +
		`]}],"deployments":[{"name":"d","spec":{"template":{"spec":{"containers":[{"name":"c","image":"` + image + `"}]}}}}]}}}}`
}

func ruleOf(group, resources, verbs string) string {
	return fmt.Sprintf(`{"apiGroups":[%q],"resources":[%s],"verbs":[%s]}`, group, resources, verbs)
}

func definitionWith(fields string) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.t"},` +
		`"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",` +
		`"properties":{"spec":{"type":"object","properties":{` + fields + `}}}}}}]}}`
}

// compared are two versions that differ in everything that pages compare.
func compared(t testing.TB) fstest.MapFS {
	return upgradesOf(t,
		release{"p.v0", "r/p:0", "r/a:1", []string{`{"type":"olm.gvk","value":{"group":"t","kind":"Thing","version":"v1"}}`},
			[]string{csvThatMay(ruleOf("", `"pods"`, `"get","list"`), ruleOf("apps", `"deployments"`, `"get"`), "i:0"),
				definitionWith(`"gone":{"type":"object","properties":{"deeper":{"type":"string"}}},"kept":{"type":"string"}`),
				`{"kind":"Service","apiVersion":"v1","metadata":{"name":"s"}}`}},
		release{"p.v1", "r/p:1", "r/b:1", []string{`{"type":"olm.gvk","value":{"group":"t","kind":"Thing","version":"v2"}}`,
			`{"type":"olm.package.required","value":{"packageName":"q","versionRange":">1"}}`},
			[]string{csvThatMay(ruleOf("", `"pods","secrets"`, `"get","list","delete"`), ruleOf("apps", `"deployments"`, `"*"`), "i:1"),
				definitionWith(`"kept":{"type":"string"}`), `{"kind":"Service","apiVersion":"v1","metadata":{"name":"s"}}`}})
}

// siteWith serves a catalog with a judge of definitions.
func siteWith(t testing.TB, fsys fstest.MapFS, judge upgrade.Judge) *httptest.Server {
	t.Helper()
	s := New(Options{Judge: judge})
	s.SetContent(contentOf(t, fsys))
	server := httptest.NewServer(s)
	t.Cleanup(func() { server.Close(); s.Close() })
	return server
}

const step = "/changes?package=p&from=p.v0&to=p.v1"

func TestChanges(t *testing.T) {
	server := siteWith(t, compared(t), func(_ context.Context, name string, from, to []byte) ([]upgrade.RefusedChange, error) {
		if name != "things.t" || !strings.Contains(string(from), "gone") || strings.Contains(string(to), "gone") {
			t.Errorf("judged: %s %s %s", name, from, to)
		}
		return []upgrade.RefusedChange{{Check: "existingFieldRemoval", Message: "removed field : v1.^.spec.gone"}}, nil
	})
	d := parsePage(t, get(t, server.URL+step).body)
	if err := d.check(); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(d.text), " ")
	for _, want := range []string{"OLM upgrades in one step in the channels stable", "OLM v1 refuses the changes of 1 definition",
		"OLM v1 resolves none, and refuses it", "removed: - provided API Thing (t/v1)", "added: + provided API Thing (t/v2)",
		"added: + required package q >1", "New permissions read and delete secrets in the whole cluster, as sa all secrets",
		"delete pods in the whole cluster", "do everything with deployments (apps) in the namespaces that the operator watches, as sa wildcard",
		"version v1: removed: - field spec.gone OLM v1 refuses it", "removed field : v1.^.spec.gone",
		`changed: ~ Deployment d: spec.template.spec.containers[c].image: "i:0" -> "i:1"`, "removed: - image r/a:1", "added: + image r/b:1", "added: + image r/p:1"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	for _, not := range []string{"spec.gone.deeper", "Service s", "Removed permissions", "ClusterRole", "channel stable", "\x00"} {
		if strings.Contains(text, not) {
			t.Errorf("it says %q:\n%s", not, text)
		}
	}
	// The other way there is no upgrade, and the permissions are lost.
	back := strings.Join(strings.Fields(parsePage(t, get(t,
		siteWith(t, compared(t), nil).URL+"/changes?package=p&from=p.v1&to=p.v0").body).text), " ")
	for _, want := range []string{"No channel has this upgrade in one step", "Removed permissions read and delete secrets",
		"This server does not judge", "bindery diff --manifests r/p:1 r/p:0"} {
		if !strings.Contains(back, want) {
			t.Errorf("back: it does not say %q:\n%s", want, back)
		}
	}
	for _, at := range []string{"/changes", "/changes?package=p", "/changes?package=p&from=p.v0&to=x", "/changes?package=x&from=p.v0&to=p.v1"} {
		if a := get(t, server.URL+at); a.code != 404 {
			t.Errorf("%s: %d", at, a.code)
		}
	}
	for _, at := range []string{"/package?name=p", "/bundle?package=p&name=p.v1"} {
		if d := parsePage(t, get(t, server.URL+at).body); !strings.Contains(strings.Join(d.links, " "), step[1:]) {
			t.Errorf("%s does not link to %s: %q", at, step, d.links)
		}
	}
}

// What cannot be compared is said, and the rest is there.
func TestChangesThatAreNotKnown(t *testing.T) {
	broken := csvThatMay(`1`, "", "i")
	broad := func(n int) string {
		var groups []string
		for i := range n {
			groups = append(groups, fmt.Sprintf(`"g%d"`, i))
		}
		return `{"apiGroups":[` + strings.Join(groups, ",") + `],"resources":["*"],"verbs":["get"]}`
	}
	var fields strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&fields, `"f%d":{"type":"string","description":"d"},`, i)
	}
	for name, c := range map[string]struct {
		old, new []string
		want     string
	}{
		"metadata alone":   {nil, []string{csvThatMay("", "", "i")}, "does not have the manifests of both versions"},
		"no JSON":          {[]string{csvThatMay("", "", "i")}, []string{`{"kind":"ClusterServiceVersion","spec":1}`}, "cannot be read"},
		"rules of numbers": {[]string{csvThatMay("", "", "i")}, []string{broken}, "Added and removed"},
		"broad":            {[]string{csvThatMay("", "", "i")}, []string{csvThatMay(broad(101_000), "", "i")}, "too many to be compared"},
		"large": {[]string{definitionWith(strings.TrimSuffix(fields.String(), ","))},
			[]string{definitionWith(fields.String() + `"x":{"type":"integer"}`)}, "too large to be compared"},
	} {
		t.Run(name, func(t *testing.T) {
			server := siteWith(t, upgradesOf(t, release{name: "p.v0", image: "r/p:0", objects: c.old},
				release{name: "p.v1", image: "r/p:1", objects: c.new}), nil)
			begin := time.Now()
			d := parsePage(t, get(t, server.URL+step).body)
			if err := d.check(); err != nil || !strings.Contains(d.text, c.want) || !strings.Contains(d.text, "r/p:1") {
				t.Errorf("%v\n%s", err, d.text)
			}
			if d := parsePage(t, get(t, server.URL+"/bundle?package=p&name=p.v1").body); d.check() != nil {
				t.Errorf("the page of the bundle: %v", d.check())
			}
			t.Log(time.Since(begin))
		})
	}
	server := siteWith(t, compared(t), func(context.Context, string, []byte, []byte) ([]upgrade.RefusedChange, error) {
		return nil, errors.New("<b>unheard of</b>")
	})
	if d := parsePage(t, get(t, server.URL+step).body); !strings.Contains(d.text, "It is not known whether OLM v1 refuses the upgrade: <b>unheard") {
		t.Error(d.text)
	}
}

// A definition with tens of thousands of changed fields has a page of limited size, soon.
func TestManyChanges(t *testing.T) {
	var fields [2]strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&fields[0], `"f%d":{"type":"string"},`, i)
		fmt.Fprintf(&fields[1], `"f%d":{"type":"integer"},`, i)
	}
	server := siteWith(t, upgradesOf(t,
		release{name: "p.v0", objects: []string{definitionWith(strings.TrimSuffix(fields[0].String(), ","))}},
		release{name: "p.v1", objects: []string{definitionWith(strings.TrimSuffix(fields[1].String(), ","))}}), nil)
	begin := time.Now()
	a := get(t, server.URL+step)
	if took := time.Since(begin); a.code != 200 || len(a.body) > 2<<20 || took > 20*time.Second {
		t.Errorf("%d, %d bytes, %v", a.code, len(a.body), took)
	} else if !strings.Contains(a.body, "38001 more changes are not shown") {
		t.Error("it does not say that there are more")
	}
}

func TestPermissionsInWords(t *testing.T) {
	for name, c := range map[string]struct {
		cluster, namespaced string
		want                string
	}{
		"none": {"", "", "The operator asks for no permissions."},
		"harmless": {"", ruleOf("", `"configmaps"`, `"get","list","watch","create","update","patch","delete"`),
			"None of it is about all secrets of the cluster or has a wildcard. read, create, change and delete configmaps " +
				"in the namespaces that the operator watches, as sa"},
		"order": {ruleOf("a", `"*"`, `"get"`) + "," + ruleOf("", `"nodes"`, `"get"`) + "," + ruleOf("", `"secrets"`, `"list"`) + "," +
			ruleOf("rbac.authorization.k8s.io", `"clusterroles"`, `"escalate"`), "",
			"read secrets in the whole cluster, as sa all secrets read everything of a in the whole cluster, as sa wildcard " +
				"escalate clusterroles (rbac.authorization.k8s.io) in the whole cluster, as sa can gain more rights " +
				"1 more kind of permissions read nodes in the whole cluster, as sa"},
		"everything":      {ruleOf("*", `"*"`, `"*"`), "", "do everything with everything in the whole cluster, as sa all secrets"},
		"secrets of some": {"", ruleOf("", `"secrets"`, `"get"`), "None of it is about all secrets"},
		"one secret":      {`{"apiGroups":[""],"resources":["secrets"],"resourceNames":["x"],"verbs":["get"]}`, "", "read secrets “x”"},
		"names of a kind": {`{"apiGroups":[""],"resources":["pods","secrets"],"resourceNames":["x","y"],"verbs":["get"]}`, "",
			"read pods “x”, “y”, secrets “x”, “y” in the whole cluster"},
		"addresses":        {`{"nonResourceURLs":["/metrics"],"verbs":["get","post"]}`, "", "read and post to /metrics"},
		"into containers":  {ruleOf("", `"pods/exec"`, `"create"`), "", "create pods/exec in the whole cluster, as sa can gain more rights"},
		"markup of others": {ruleOf("<i>", `"<script>"`, `"<b>"`), "", "<b> <script> (<i>)"},
	} {
		t.Run(name, func(t *testing.T) {
			server := siteWith(t, upgradesOf(t, release{name: "p.v0", objects: []string{csvThatMay(c.cluster, c.namespaced, "i")}}), nil)
			for _, at := range []string{"/package?name=p", "/bundle?package=p&name=p.v0"} {
				d := parsePage(t, get(t, server.URL+at).body)
				if err := d.check(); err != nil {
					t.Fatal(err)
				}
				if text := strings.Join(strings.Fields(d.text), " "); !strings.Contains(text, c.want) {
					t.Errorf("%s does not say %q:\n%s", at, c.want, text)
				}
			}
		})
	}
	// Where only metadata is there, the page says where the permissions are.
	if d := parsePage(t, get(t, siteOf(t, contentOf(t, sampleFS())).URL+"/package?name=alpha").body); !strings.Contains(d.text,
		"The catalog has no permissions and fields of this version.") {
		t.Error(d.text)
	}
	if d := parsePage(t, get(t, siteOf(t, contentOf(t, sampleFS())).URL+"/bundle?package=alpha&name=alpha.v1.1.0").body); strings.Contains(d.text, "Permissions") {
		t.Error(d.text)
	}
}

// A page ends whatever ranges the catalog has.
func TestChangesOfHostileRanges(t *testing.T) {
	for _, text := range []string{"<1.0.0 || || >2.0.0", strings.Repeat("<1.0.0 || ", 1_000_000) + "<1.0.0", "x", "||"} {
		fsys := compared(t)
		for name, file := range fsys {
			file.Data = bytes.Replace(file.Data, []byte(`"replaces":"p.v0"`), []byte(`"skipRange":"`+text+`"`), 1)
			fsys[name] = file
		}
		a := get(t, siteWith(t, fsys, nil).URL+step)
		if !strings.Contains(a.body, "No channel has this upgrade in one step") {
			t.Errorf("%.30s: %d %.200s", text, a.code, a.body)
		}
	}
}
