package web

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v3"

	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/olmv1"
)

// object is what the test looks at in a manifest.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name, Namespace string }
	Spec       struct {
		Name, Channel    string
		Source           any
		TargetNamespaces []string `yaml:"targetNamespaces"`
		Namespace        string
		ServiceAccount   struct{ Name string } `yaml:"serviceAccount"`
	}
}

// objectsOf reads manifests; unknown fields are dropped.
func objectsOf(t *testing.T, text string) (all []object, kinds string) {
	t.Helper()
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var o object
		if err := dec.Decode(&o); err == io.EOF {
			return all, strings.TrimSpace(kinds)
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if o.APIVersion == "" || o.Metadata.Name == "" {
			t.Errorf("an object without apiVersion or name in\n%s", text)
		}
		all, kinds = append(all, o), kinds+o.Kind+" "
	}
}

// The manifests are YAML with the kinds and fields that OLM takes, whatever the names are.
func TestInstall(t *testing.T) {
	mode := func(modes ...string) []property.InstallMode {
		var out []property.InstallMode
		for _, m := range modes {
			out = append(out, property.InstallMode{Type: m, Supported: true})
		}
		return out
	}
	for name, test := range map[string]struct {
		pkg, channel, suggested string
		modes                   []property.InstallMode
		namespace               string
		targets                 int
	}{
		"all namespaces":   {"alpha", "stable", "", mode("AllNamespaces", "OwnNamespace"), "alpha", 0},
		"no modes":         {"alpha", "4.16", "", nil, "alpha", 0},
		"own namespace":    {"alpha", "stable", "ns-1", mode("OwnNamespace"), "ns-1", 1},
		"single namespace": {"alpha", "stable", "", mode("SingleNamespace"), "alpha", 1},
		"a bad suggestion": {"alpha", "stable", "A b: {", mode("AllNamespaces"), "alpha", 0},
		"words of YAML":    {"true", "null", "", nil, "true", 0},
		"hostile names":    {"a: {\"\n- \x1b\u202e#", "' \\ é\u2028\xff", "", nil, "a", 0},
		"a number":         {"1e3", "0x10", "", nil, "1e3", 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := csv{property.CSVMetadata{InstallModes: test.modes, Annotations: map[string]string{
				"operatorframework.io/suggested-namespace": test.suggested}}}
			m := install(test.pkg, test.channel, &f)
			channel := strings.ToValidUTF8(test.channel, "\uFFFD")
			all, kinds := objectsOf(t, m.v0)
			if kinds != "Namespace OperatorGroup Subscription" {
				t.Fatalf("kinds %q", kinds)
			}
			group, sub := all[1], all[2]
			if len(group.Spec.TargetNamespaces) != test.targets || group.Metadata.Namespace != test.namespace {
				t.Errorf("%+v", group)
			}
			if sub.Spec.Name != test.pkg || sub.Spec.Channel != channel || sub.Spec.Source != "my-catalog" ||
				sub.Metadata.Namespace != test.namespace || all[0].Metadata.Name != test.namespace {
				t.Errorf("%+v", sub)
			}
			all, kinds = objectsOf(t, m.v1)
			if kinds != "Namespace ServiceAccount ClusterExtension" {
				t.Fatalf("kinds %q", kinds)
			}
			extension := all[2]
			if extension.Spec.Namespace != test.namespace ||
				extension.Spec.ServiceAccount.Name != all[1].Metadata.Name ||
				all[1].Metadata.Namespace != test.namespace {
				t.Errorf("%+v", extension)
			}
			var source struct {
				Spec struct {
					Source struct {
						SourceType string `yaml:"sourceType"`
						Catalog    struct {
							PackageName string `yaml:"packageName"`
							Channels    []string
							Selector    struct {
								MatchLabels map[string]string `yaml:"matchLabels"`
							}
						}
					}
				}
			}
			parts := strings.Split(m.v1, "---\n")
			if err := yaml.Unmarshal([]byte(parts[2]), &source); err != nil {
				t.Fatal(err)
			}
			catalog := source.Spec.Source.Catalog
			asked := []string{channel}
			if olmv1.Channels(asked) != nil {
				asked = nil
			}
			if source.Spec.Source.SourceType != "Catalog" || catalog.PackageName != test.pkg ||
				!slices.Equal(catalog.Channels, asked) ||
				catalog.Selector.MatchLabels["olm.operatorframework.io/metadata.name"] != "my-catalog" {
				t.Errorf("%+v", source)
			}
			if strings.ContainsAny(m.v0+m.v1, "\x00\x1b\u202e\u2028") {
				t.Error("characters that cannot be seen")
			}
		})
	}
}

// A channel that no ClusterExtension can name is not in the manifest, and the page says why.
func TestInstallSaysWhichChannelIsRefused(t *testing.T) {
	const says = "A ClusterExtension cannot name the channel <code>Fast</code>"
	for channel, refused := range map[string]bool{"stable": false, "Fast": true} {
		fsys := fstest.MapFS{"catalog.yaml": {Data: []byte("schema: olm.package\nname: p\ndefaultChannel: " + channel +
			"\n---\nschema: olm.channel\npackage: p\nname: " + channel + "\nentries: [{name: p.v1}]\n---\n" +
			"schema: olm.bundle\npackage: p\nname: p.v1\nimage: example.com/p:v1\n" +
			"properties: [{type: olm.package, value: {packageName: p, version: 1.0.0}}]\n")}}
		if got := get(t, siteOf(t, contentOf(t, fsys)).URL+"/package?name=p"); strings.Contains(got.body, says) != refused {
			t.Errorf("%s: %+v", channel, got)
		}
	}
}
