package rules_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/declcfg"
)

const pin = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// good is a catalog that breaks no rule of any profile.
const good = `---
schema: olm.package
name: acme
defaultChannel: stable
---
schema: olm.channel
package: acme
name: stable
entries:
- name: acme.v1.0.0
- name: acme.v1.1.0
  replaces: acme.v1.0.0
---
schema: olm.bundle
package: acme
name: acme.v1.0.0
image: registry.redhat.io/acme/bundle@` + pin + `
properties:
- type: olm.package
  value: {packageName: acme, version: 1.0.0}
- type: olm.csv.metadata
  value:
    installModes:
    - {type: AllNamespaces, supported: true}
relatedImages:
- {name: operator, image: registry.redhat.io/acme/operator@` + pin + `}
---
schema: olm.bundle
package: acme
name: acme.v1.1.0
image: registry.redhat.io/acme/bundle@` + pin + `
properties:
- type: olm.package
  value: {packageName: acme, version: 1.1.0}
- type: olm.csv.metadata
  value:
    installModes:
    - {type: AllNamespaces, supported: true}
`

// subject returns the good catalog in an image that breaks no rule, after changes of its file.
func subject(edits ...string) rules.CatalogSubject {
	text := good
	for i := 0; i+1 < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			panic("not in the catalog: " + edits[i])
		}
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	return rules.CatalogSubject{FS: fstest.MapFS{"acme/catalog.yaml": {Data: []byte(text)}},
		Load: declcfg.LoadOptions{Jobs: 1}, Released: &declcfg.Catalog{},
		Image: &rules.Image{Name: "registry.example.com/catalog:v1", FBC: true, Index: true,
			Platforms: []string{"linux/amd64", "linux/arm64"},
			Labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs", "vendor": "Acme",
				"summary": "ours"},
			Annotations: map[string]string{
				"org.opencontainers.image.base.name": "registry.redhat.io/openshift4/ose-operator-registry-rhel9:v4.17"},
			BaseLabels: map[string]string{"summary": "theirs"},
			Programs:   map[string]int{"grpc_health_probe": 1}, BasePrograms: map[string]int{"opm": 1}}}
}

// lifecycleBlob returns a document with the lifecycle of a version of a package.
func lifecycleBlob(pkg, version string) string {
	return fmt.Sprintf(`---
schema: io.openshift.operators.lifecycles.v1alpha1
package: %s
versions:
- name: "%s"
  phases:
  - name: Full support
    startDate: "2024-01-31"
    endDate: "2025-01-31"
`, pkg, version)
}

func data(t *testing.T) *rules.Data {
	t.Helper()
	d, err := rules.ReadData(strings.NewReader(`
rule_data:
  allowed_olm_image_registry_prefixes: [registry.redhat.io/]
  allowed_registry_prefixes: [registry.redhat.io/]
  fbc_required_labels: [{name: vendor, description: who made it, values: [Acme]}]
  fbc_optional_labels: [{name: summary}]
  deprecated_labels: [{name: License, replacement: license}]
  fbc_disallowed_inherited_labels: [{name: summary}]
`), "data.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var every = []rules.Profile{rules.OPM, rules.OLMv1, rules.Konflux, rules.Conforma}

func run(t *testing.T, s rules.CatalogSubject, o rules.Options) *rules.Report {
	t.Helper()
	r, err := rules.NewRun(o, rules.CatalogRules())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.CheckCatalog(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return r.Report("catalog", rules.OnCatalog)
}

func lines(r *rules.Report) (out []string) {
	for _, f := range r.Findings {
		f.Column = 0 // TestColumns has those
		out = append(out, fmt.Sprintf("%s %s", f.Rule, f.Place()))
	}
	return out
}

func TestAGoodCatalogBreaksNoRule(t *testing.T) {
	report := run(t, subject(), rules.Options{Profiles: every, Data: data(t)})
	if len(report.Findings) > 0 || !report.Passed {
		t.Errorf("%+v", report.Findings)
	}
	for _, n := range report.NotRun {
		t.Errorf("not run: %+v", n)
	}
	if len(report.Bundles) != 2 || report.Bundles[0].State != rules.Unknown || report.Unknown() != 2 {
		t.Errorf("%+v", report.Bundles)
	}
	ran := map[string]bool{}
	for _, r := range report.Rules {
		ran[r.ID] = true
	}
	for _, r := range rules.CatalogRules() {
		// Those of the caller, and those about waivers, run elsewhere.
		elsewhere := strings.HasPrefix(r.ID, "waiver.") || r.ID == rules.RelatedAccessible.ID ||
			r.ID == rules.RelatedMediaType.ID || r.ID == rules.RuleUpgrade.ID
		if !ran[r.ID] && !elsewhere {
			t.Errorf("%s did not run", r.ID)
		}
	}
}

// Each change breaks one rule of the profiles, at the place, and no other.
func TestAValidLifecycleBreaksNoRule(t *testing.T) {
	s := subject("---\nschema: olm.channel", lifecycleBlob("acme", "1.0")+"---\nschema: olm.channel")
	if report := run(t, s, rules.Options{Profiles: every, Data: data(t)}); len(report.Findings) > 0 {
		t.Errorf("%+v", report.Findings)
	}
}

func TestEachRuleFindsItsOwn(t *testing.T) {
	second := "version: 1.1.0}\n"
	for _, c := range []struct {
		rule, place string
		profiles    []rules.Profile
		change      func(*rules.CatalogSubject)
		edits       []string
	}{
		{rule: "olmv1.dependency", place: "acme/catalog.yaml:35", edits: []string{second,
			second + "- {type: olm.gvk.required, value: {group: a.example.com, kind: A, version: v1}}\n"}},
		{rule: "olmv1.version", place: "acme/catalog.yaml:19", profiles: []rules.Profile{rules.OLMv1},
			edits: []string{"version: 1.0.0}", "version: v1.0.0}"}},
		{rule: "olmv1.install-mode", place: "acme/catalog.yaml:21",
			edits: []string{"supported: true", "supported: false"}},
		{rule: "olmv1.api-service", place: "acme/catalog.yaml:21", edits: []string{"  value:\n    installModes:",
			"  value:\n    apiServiceDefinitions: {owned: [{name: a, group: b, version: v1, kind: " +
				"A}]}\n    installModes:"}},
		{rule: "catalog.version-number", place: "acme/catalog.yaml:22", profiles: []rules.Profile{rules.OPM},
			edits: []string{"- type: olm.csv.metadata\n", "- type: olm.maxOpenShiftVersion\n  value: 4.20\n" +
				"- type: olm.csv.metadata\n"}},
		{rule: "catalog.property-twice", place: "acme/catalog.yaml:22", profiles: []rules.Profile{rules.OPM},
			edits: []string{"- type: olm.csv.metadata\n", "- {type: olm.maxOpenShiftVersion, value: \"4.20\"}\n" +
				"- {type: olm.maxOpenShiftVersion, value: \"4.21\"}\n- type: olm.csv.metadata\n"}},
		{rule: "olmv1.unreachable", place: "acme/catalog.yaml:12", profiles: []rules.Profile{rules.OLMv1},
			edits: []string{"- name: acme.v1.0.0\n", "", "  replaces: acme.v1.0.0\n", ""}},
		{rule: "olmv1.channel-name", place: "acme/catalog.yaml:8", profiles: []rules.Profile{rules.OLMv1},
			edits: []string{"name: stable\n", "name: alpha_1\n"}},
		{rule: "olmv1.shadowed", place: "acme/catalog.yaml:30", profiles: []rules.Profile{rules.OLMv1},
			edits: []string{"version: 1.1.0}", "version: 1.0.0}"}},
		{rule: "olmv1.overwritten", place: "acme/catalog.yaml:2", profiles: []rules.Profile{rules.OLMv1},
			edits: []string{"---\nschema: olm.channel",
				"---\nschema: olm.package\nname: acme\ndefaultChannel: x\n---\nschema: olm.channel"}},
		{rule: "olmv1.schema", place: "acme/catalog.yaml:6", profiles: []rules.Profile{rules.OLMv1},
			edits: []string{"---\nschema: olm.channel", "---\nfoo: bar\npackage: acme\n---\nschema: olm.channel"}},
		{rule: "fbc:lifecycle", place: "acme/catalog.yaml:9", edits: []string{"---\nschema: olm.channel",
			lifecycleBlob("acme", "1.0.0") + "---\nschema: olm.channel"}},
		{rule: "fbc:lifecycle", place: "acme/catalog.yaml:12", edits: []string{"---\nschema: olm.channel",
			strings.Replace(lifecycleBlob("acme", "1.0"), "2024-01-31", "2024", 1) + "---\nschema: olm.channel"}},
		{rule: "fbc:lifecycle", place: "acme/catalog.yaml:6", edits: []string{"---\nschema: olm.channel",
			lifecycleBlob("acne", "1.0") + "---\nschema: olm.channel"}},
		{rule: "fbc:lifecycle", place: "acme/catalog.yaml:6", edits: []string{"---\nschema: olm.channel",
			strings.Replace(lifecycleBlob("acme", "1.0"), "package: acme\n", "", 1) + "---\nschema: olm.channel"}},
		{rule: "fbc:lifecycle", place: "acme/catalog.yaml:15", profiles: []rules.Profile{rules.Konflux},
			edits: []string{"---\nschema: olm.channel", lifecycleBlob("acme", "1.0") + lifecycleBlob("acme", "1.0") +
				"---\nschema: olm.channel"}},
		{rule: "olmv1.unreadable", place: "acme/catalog.yaml:4", profiles: []rules.Profile{rules.OLMv1},
			edits: []string{"defaultChannel: stable", "defaultChannel: [stable"}},
		{rule: "olmv1.configs-label", place: "", profiles: []rules.Profile{rules.OLMv1},
			change: func(s *rules.CatalogSubject) { s.Image.Labels = nil }},
		{rule: "olmv1.image-view", place: "configs/old.yaml", change: func(s *rules.CatalogSubject) {
			s.Image.Differences = []rules.Finding{{File: "configs/old.yaml", Message: "hidden"}}
		}},
		{rule: "olmv1.link", place: "acme/link", profiles: []rules.Profile{rules.OLMv1},
			change: func(s *rules.CatalogSubject) {
				s.FS.(fstest.MapFS)["acme/link"] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("catalog.yaml")}
				s.FS.(fstest.MapFS)["acme/.indexignore"] = &fstest.MapFile{Data: []byte("link\n")}
			}},
		{rule: "catalog.graph", place: "acme/catalog.yaml:6", profiles: []rules.Profile{rules.OPM},
			edits: []string{"  replaces: acme.v1.0.0\n", ""}},
		{rule: "catalog.default-channel", place: "acme/catalog.yaml:4", profiles: []rules.Profile{rules.OPM},
			edits: []string{"defaultChannel: stable", "defaultChannel: other"}},
		{rule: "fbc:opm-validate", place: "acme/catalog.yaml:4", profiles: []rules.Profile{rules.Konflux},
			edits: []string{"defaultChannel: stable", "defaultChannel: other"}},
		{rule: "fbc:no-package", profiles: []rules.Profile{rules.Konflux},
			edits: []string{"schema: olm.package\nname: acme", "schema: acme.notes\nname: acme"}},
		{rule: "fbc:base-image", profiles: []rules.Profile{rules.Konflux}, change: annotate("")},
		{rule: "fbc:configs-label", profiles: []rules.Profile{rules.Konflux},
			change: func(s *rules.CatalogSubject) { s.FS = fstest.MapFS{} }},
		{rule: "fbc:render", profiles: []rules.Profile{rules.Konflux},
			edits: []string{"defaultChannel: stable", "defaultChannel: [stable"}},
		{rule: "fbc:base-image", change: annotate("quay.io/acme/opm:v4.17"), profiles: []rules.Profile{rules.Konflux}},
		{rule: "fbc:base-image", change: func(s *rules.CatalogSubject) { s.Image.Platforms = []string{"linux/arm64"} }},
		{rule: "fbc:ocp-version", profiles: []rules.Profile{rules.Konflux},
			change: annotate("registry.redhat.io/openshift4/ose-operator-registry-rhel9@" + pin)},
		{rule: "fbc:configs-label", profiles: []rules.Profile{rules.Konflux},
			change: func(s *rules.CatalogSubject) { s.Image.Labels = nil }},
		{rule: "fbc:health-probe", change: func(s *rules.CatalogSubject) { s.Image.Programs = map[string]int{} }},
		{rule: "fbc:health-probe", change: func(s *rules.CatalogSubject) { s.Image.BasePrograms["opm"] = 2 }},
		{rule: "fbc:package-dirs", change: func(s *rules.CatalogSubject) {
			s.FS = fstest.MapFS{"catalog.yaml": s.FS.(fstest.MapFS)["acme/catalog.yaml"]}
		}},
		{rule: "fbc:package-dirs", place: "empty", change: func(s *rules.CatalogSubject) {
			s.FS.(fstest.MapFS)["empty"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		}},
		{rule: "fbc:bundle-metadata-format", place: "acme/catalog.yaml:14", profiles: []rules.Profile{rules.Konflux},
			edits: []string{"- type: olm.csv.metadata\n  value:\n    installModes:\n    - {type: AllNamespaces, " +
				"supported: true}\n", ""}},
		{rule: "fbc:bundle-pinned", place: "acme/catalog.yaml:17", profiles: []rules.Profile{rules.Konflux},
			edits: []string{"acme/bundle@" + pin, "acme/bundle:v1"}},
		{rule: "fbc:bundle-registry", place: "acme/catalog.yaml:17", profiles: []rules.Profile{rules.Konflux},
			edits: []string{"registry.redhat.io/acme/bundle", "quay.io/acme/bundle"}},
		{rule: "fbc:pruned", place: "acme/catalog.yaml:6", change: released("stable", "acme.v0.9.0")},
		{rule: "fbc:pruned", place: "acme/catalog.yaml:6", change: released("fast", "acme.v1.0.0")},
		{rule: "labels.required_labels", change: label("vendor", "Other")},
		{rule: "labels.required_labels", change: label("vendor", "")},
		{rule: "labels.optional_labels", change: label("summary", "")},
		{rule: "labels.deprecated_labels", change: label("License", "x")},
		{rule: "labels.disallowed_inherited_labels", change: label("summary", "theirs")},
		{rule: "base_image_registries.base_image_permitted", change: annotate("quay.io/acme/opm:v4.17"),
			profiles: []rules.Profile{rules.Conforma}},
		{rule: "olm.allowed_registries_related", place: "acme/catalog.yaml:26",
			edits: []string{"registry.redhat.io/acme/operator", "quay.io/acme/operator"}},
		{rule: "olm.unpinned_related_images", place: "acme/catalog.yaml:26",
			edits: []string{"acme/operator@" + pin, "acme/operator:v1"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := subject(c.edits...)
			if c.change != nil {
				c.change(&s)
			}
			if c.profiles == nil {
				c.profiles = every
			}
			report := run(t, s, rules.Options{Profiles: c.profiles, Data: data(t), FailOn: rules.Warning})
			got := lines(report)
			if len(got) != 1 || strings.TrimSpace(got[0]) != strings.TrimSpace(c.rule+" "+c.place) && c.place != "" ||
				report.Findings[0].Rule != c.rule {
				t.Errorf("got %q, want %s at %q\n%+v", got, c.rule, c.place, report.Findings)
			}
			if report.Passed {
				t.Error("passed")
			}
			skipped := run(t, s, rules.Options{Profiles: c.profiles, Data: data(t), Skip: []string{c.rule}})
			if len(skipped.Findings) > 0 {
				t.Errorf("skipped: %q", lines(skipped))
			}
		})
	}
}

func annotate(base string) func(*rules.CatalogSubject) {
	return func(s *rules.CatalogSubject) { s.Image.Annotations["org.opencontainers.image.base.name"] = base }
}

func label(name, value string) func(*rules.CatalogSubject) {
	return func(s *rules.CatalogSubject) { s.Image.Labels[name] = value }
}

func released(channel, entry string) func(*rules.CatalogSubject) {
	return func(s *rules.CatalogSubject) {
		s.Released = &declcfg.Catalog{Channels: []declcfg.Channel{
			{Package: "acme", Name: channel, Entries: []declcfg.ChannelEntry{{Name: "acme.v1.0.0"}, {Name: entry}}},
			{Package: "acme", Name: "candidate-1", Entries: []declcfg.ChannelEntry{{Name: "gone"}}},
			{Package: "other", Name: "stable", Entries: []declcfg.ChannelEntry{{Name: "gone"}}}}}
	}
}

// Objects without a ClusterServiceVersion are not the manifests: the image decides.
func TestObjectsWithoutManifests(t *testing.T) {
	const second = "version: 1.1.0}\n"
	s := subject(second, second+"- {type: olm.bundle.object, value: {data: "+
		"eyJraW5kIjoiU2VjcmV0IiwiYXBpVmVyc2lvbiI6InYxIn0=}}\n")
	s.Manifests = func(context.Context, *rules.Run, *declcfg.Bundle) error {
		t.Error("the manifests are not complete")
		return nil
	}
	report := run(t, s, rules.Options{Profiles: []rules.Profile{rules.OLMv1}})
	if len(report.Findings) > 0 || report.Unknown() != 2 {
		t.Errorf("%q, %+v", lines(report), report.Bundles)
	}
}

// A package that lost all its channels is one that both catalogs have.
func TestPrunedPackageWithoutChannels(t *testing.T) {
	s := subject()
	released("stable", "acme.v0.9.0")(&s)
	s.FS = fstest.MapFS{"acme/catalog.yaml": {Data: []byte("schema: olm.package\nname: acme\n")}}
	report := run(t, s, rules.Options{Profiles: []rules.Profile{rules.Konflux}, Skip: []string{"fbc:opm-validate"}})
	if got := lines(report); len(got) != 1 || !strings.HasPrefix(got[0], "fbc:pruned") {
		t.Errorf("%q", got)
	}
}

func TestOldOpenShiftWantsManifests(t *testing.T) {
	s := subject()
	s.OCP = "v4.16"
	got := lines(run(t, s, rules.Options{Profiles: []rules.Profile{rules.Konflux}}))
	if len(got) != 4 || !strings.HasPrefix(got[0], "fbc:bundle-metadata-format") {
		t.Errorf("%q", got)
	}
}

func TestRefusedBundlesInTheMatrix(t *testing.T) {
	s := subject("supported: true", "supported: false")
	report := run(t, s, rules.Options{Profiles: []rules.Profile{rules.OLMv1}})
	rows := report.Channels()
	if len(rows) != 1 || rows[0].Refused != 1 || rows[0].Unknown != 1 || rows[0].Head != "acme.v1.1.0" ||
		rows[0].HeadState != rules.Unknown || !slices.Equal(rows[0].Reasons, []string{"olmv1.install-mode"}) {
		t.Errorf("%+v", rows)
	}
	s.SingleOwn = true
	edit := subject("type: AllNamespaces, supported: true", "type: OwnNamespace, supported: true")
	edit.SingleOwn = true
	if got := run(t, edit, rules.Options{Profiles: []rules.Profile{rules.OLMv1}}); len(got.Findings) > 0 {
		t.Errorf("%q", lines(got))
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := rules.NewRun(rules.Options{Profiles: every}, rules.CatalogRules())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.CheckCatalog(ctx, subject()); err == nil {
		t.Error("a cancelled check has no error")
	}
}

// A package that cannot be read is refused, with the line of its own blob, and the others are not.
func TestUnreadablePackages(t *testing.T) {
	var text strings.Builder
	for _, p := range []string{"one", "two", "three"} {
		properties := `"x"`
		if p == "two" {
			properties = `[{"type":"olm.package","value":{"packageName":"two","version":"1.0.0"}}]`
		}
		fmt.Fprintf(&text, "{\"schema\":\"olm.package\",\"name\":%q,\"defaultChannel\":\"c\"}\n", p)
		fmt.Fprintf(&text,
			"{\"schema\":\"olm.channel\",\"package\":%q,\"name\":\"c\",\"entries\":[{\"name\":\"b\"}]}\n", p)
		fmt.Fprintf(&text,
			"{\"schema\":\"olm.bundle\",\"package\":%q,\"name\":\"b\",\"image\":\"a/b:v1\",\"properties\":%s}\n",
			p, properties)
	}
	s := rules.CatalogSubject{FS: fstest.MapFS{"catalog.json": {Data: []byte(text.String())}}}
	report := run(t, s, rules.Options{Profiles: []rules.Profile{rules.OLMv1}})
	want := []string{"olmv1.unreadable catalog.json:3:81 one", "olmv1.unreadable catalog.json:9:83 three"}
	var got []string
	for _, f := range report.Findings {
		got = append(got, f.Rule+" "+f.Place()+" "+f.Package)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if len(report.Bundles) != 1 || report.Bundles[0].Package != "two" || report.Bundles[0].State != rules.Unknown ||
		!slices.Equal(report.Bundles[0].Channels, []string{"c"}) {
		t.Errorf("%+v", report.Bundles)
	}
}
