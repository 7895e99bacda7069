package bundlecheck_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

type tree = map[string]any

// dig returns the object at a path of a manifest, and makes what is missing.
func dig(m tree, path ...string) tree {
	for _, key := range path {
		inner, ok := m[key].(tree)
		if !ok {
			inner = tree{}
			m[key] = inner
		}
		m = inner
	}
	return m
}

// grow appends to a list of a manifest.
func grow(m tree, key string, items ...any) {
	list, _ := m[key].([]any)
	m[key] = append(list, items...)
}

func copied(m tree) tree {
	text, _ := json.Marshal(m)
	var out tree
	_ = json.Unmarshal(text, &out)
	return out
}

// strategy returns the install strategy and the first deployment.
func strategy(csv tree) (spec, deployment tree) {
	spec = dig(csv, "spec", "install", "spec")
	list, _ := spec["deployments"].([]any)
	if len(list) == 0 {
		return spec, nil
	}
	deployment, _ = list[0].(tree)
	return spec, deployment
}

func hookOf(csv tree, name string) tree {
	_, d := strategy(csv)
	return tree{"type": "ValidatingAdmissionWebhook", "generateName": name, "deploymentName": d["name"],
		"sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "containerPort": 443, "rules": []any{tree{
			"apiGroups": []any{"a.example.com"}, "apiVersions": []any{"v1"}, "resources": []any{"as"},
			"operations": []any{"CREATE"}}}}
}

func addHook(change func(hook tree)) func(tree, fstest.MapFS) {
	return func(csv tree, _ fstest.MapFS) {
		hook := hookOf(csv, "mutation.example.com")
		change(hook)
		grow(dig(csv, "spec"), "webhookdefinitions", hook)
	}
}

func addFile(name, text string) func(tree, fstest.MapFS) {
	return func(_ tree, fsys fstest.MapFS) { fsys[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644} }
}

func annotateCSV(key, value string) func(tree, fstest.MapFS) {
	return func(csv tree, _ fstest.MapFS) { dig(csv, "metadata", "annotations")[key] = value }
}

const extraDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":` +
	`{"name":"as.m.example.com"},"spec":{"group":"m.example.com","names":{"kind":"A","plural":"as"},"scope":"Namespaced",` +
	`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`

// mutations are mistakes in a bundle, each with the rule that it breaks.
var mutations = []struct {
	rule   string
	change func(csv tree, fsys fstest.MapFS)
}{
	{"olmv1.unreadable", addFile("manifests/zz-notes.txt", "hello\n")},
	{"olmv1.unreadable", addFile("metadata/properties.yaml", "properties: 5\n")},
	{"olmv1.api-service", func(csv tree, _ fstest.MapFS) {
		_, d := strategy(csv)
		grow(dig(csv, "spec", "apiservicedefinitions"), "owned",
			tree{"name": "a", "group": "b.example.com", "version": "v1",
				"kind": "A", "deploymentName": d["name"]})
	}},
	{"olmv1.install-mode", func(csv tree, _ fstest.MapFS) {
		dig(csv, "spec")["installModes"] = []any{tree{"type": "OwnNamespace", "supported": true}}
	}},
	{"olmv1.dependency", addFile("metadata/dependencies.yaml",
		"dependencies: [{type: olm.package, value: {packageName: other, version: '>=1.0.0'}}]\n")},
	{"olmv1.crd-v1beta1", addFile("manifests/zz-crd.json", strings.Replace(extraDefinition, "io/v1", "io/v1beta1", 1))},
	{"olmv1.validator:1", func(csv tree, _ fstest.MapFS) {
		spec, d := strategy(csv)
		grow(spec, "deployments", copied(d))
	}},
	{"olmv1.validator:2", func(csv tree, _ fstest.MapFS) {
		spec, d := strategy(csv)
		d = copied(d)
		d["name"] = "Bad_Name"
		grow(spec, "deployments", d)
	}},
	{"olmv1.validator:3", func(_ tree, fsys fstest.MapFS) {
		fsys["manifests/zz-crd.json"] = &fstest.MapFile{Data: []byte(extraDefinition), Mode: 0o644}
		fsys["manifests/zz-crd2.json"] = fsys["manifests/zz-crd.json"]
	}},
	{"olmv1.validator:4", func(csv tree, _ fstest.MapFS) {
		grow(dig(csv, "spec", "customresourcedefinitions"), "owned",
			tree{"name": "missing.example.com", "version": "v1", "kind": "M"})
	}},
	{"olmv1.validator:5", func(_ tree, fsys fstest.MapFS) {
		var lines []string
		for _, line := range strings.Split(string(fsys["metadata/annotations.yaml"].Data), "\n") {
			if !strings.Contains(line, "bundle.package.v1") {
				lines = append(lines, line)
			}
		}
		fsys["metadata/annotations.yaml"] = &fstest.MapFile{Data: []byte(strings.Join(lines, "\n")), Mode: 0o644}
	}},
	{"olmv1.validator:7", addHook(func(h tree) { h["deploymentName"] = "missing" })},
	{"olmv1.validator:8", func(csv tree, _ fstest.MapFS) {
		grow(dig(csv, "spec"), "webhookdefinitions", hookOf(csv, "m.example.com"), hookOf(csv, "m.example.com"))
	}},
	{"olmv1.validator:9", addHook(func(h tree) { h["generateName"] = "bad-" })},
	{"olmv1.validator:12", addHook(func(h tree) {
		h["rules"].([]any)[0].(tree)["apiGroups"] = []any{"*"}
	})},
	{"olmv1.validator:13", addFile("manifests/zz-job.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n")},
	{"olm.csv_semver_format", func(csv tree, _ fstest.MapFS) { dig(csv, "spec")["version"] = "v1" }},
	{"olm.unpinned_references", annotateCSV("mutation", "registry.example.com/acme/x:v1")},
	{"olm.subscriptions_annotation_format", annotateCSV("operators.openshift.io/valid-subscription", "x")},
	{"olm.feature_annotations_format", annotateCSV("features.operators.openshift.io/disconnected", "yes")},
	{"olm.allowed_registries", annotateCSV("mutation", "other.example.com/acme/x@sha256:"+strings.Repeat("0", 64))},
	{"olm.allowed_resource_kinds", addFile("manifests/zz-map.yaml",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: zz}\n")},
}

// reports returns the findings of a bundle, by rule, and the rules that could not run.
func rulesBroken(t *testing.T, fsys fs.FS, data *rules.Data) map[string]bool {
	t.Helper()
	r, err := rules.NewRun(rules.Options{Profiles: []rules.Profile{rules.OLMv1, rules.Conforma}, Data: data},
		bundlecheck.BundleRules())
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Read(t.Context(), fsys, bundle.ReadOptions{})
	if !bundlecheck.IsRead(b, err) {
		t.Fatal(err)
	}
	s := bundlecheck.Subject{FS: fsys, Bundle: b, Settings: manifests.Settings{Certs: manifests.CertManager}}
	if err := bundlecheck.CheckRules(t.Context(), r, s); err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, f := range r.Report("bundle", rules.OnBundle).Findings {
		out[f.Rule] = true
	}
	return out
}

// A mistake in a real bundle breaks its rule, and none that the bundle did not break before.
func TestMutationsOfRealBundles(t *testing.T) {
	a := readAnswers(t)
	var names []string
	for _, line := range a.cases {
		if name, ok := strings.CutSuffix(strings.Split(line, "\t")[0], "/default.jsonl"); ok &&
			!strings.HasPrefix(name, "synth-") {
			names = append(names, name)
		}
	}
	tried := 0
	for i := 0; i < len(names) && tried < 20; i += max(1, len(names)/24) {
		files := a.bundles[names[i]]
		var csvFile string
		var csv tree
		for name, f := range files {
			var m tree
			if strings.HasPrefix(name, "manifests/") && yaml.Unmarshal(f.Data, &m) == nil &&
				m["kind"] == "ClusterServiceVersion" {
				csvFile, csv = name, m
			}
		}
		if _, d := strategy(csv); d == nil {
			continue
		}
		tried++
		data := conformaData(t, "")
		data.ImagePrefixes = []string{"registry.example.com/"}
		before := rulesBroken(t, files, data)
		var all []string
		for _, o := range mutations {
			if before[o.rule] {
				continue
			}
			fsys := maps.Clone(files)
			mutant := copied(csv)
			o.change(mutant, fsys)
			text, err := json.Marshal(mutant)
			if err != nil {
				t.Fatal(err)
			}
			fsys[csvFile] = &fstest.MapFile{Data: text, Mode: 0o644}
			permitted := *data
			kind := o.rule == "olmv1.validator:13" || o.rule == "olmv1.crd-v1beta1" || o.rule == "olmv1.validator:3"
			if kind {
				permitted.Kinds = append(slices.Clone(data.Kinds), "Job", "CustomResourceDefinition")
			}
			after := rulesBroken(t, fsys, &permitted)
			maps.DeleteFunc(after, func(rule string, _ bool) bool { return before[rule] })
			if got := slices.Sorted(maps.Keys(after)); !slices.Equal(got, []string{o.rule}) {
				t.Errorf("%s: %q are found, not %s", names[i], got, o.rule)
			}
			all = append(all, o.rule)
		}
		if len(all) < len(mutations)/2 {
			t.Errorf("%s: only %q were tried", names[i], all)
		}
	}
	if tried < 20 {
		t.Errorf("%d bundles", tried)
	}
}
