package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/sqlite"
)

// simple is a package with one channel and two bundles, to which change is applied.
func simple(change func(*declcfg.Catalog)) *declcfg.Catalog {
	c := pkg("p", channel("stable", "v1", "v2 v1"))
	if change != nil {
		change(c)
	}
	return c
}

func addProperty(b *declcfg.Bundle, typ, value string) {
	b.Properties = append(b.Properties, declcfg.Property{Type: typ, Value: json.RawMessage(value)})
}

func deprecate(c *declcfg.Catalog, entries ...declcfg.DeprecationEntry) {
	c.Deprecations = []declcfg.Deprecations{{Package: "p", Entries: entries}}
}

const message = "v1 is deprecated. Upgrade to a newer version."

// Data that a database cannot represent is refused, or left out with a finding; everything else is kept.
func TestLosses(t *testing.T) {
	csv := `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"v2"},"spec":{"relatedImages":[{"name":"a","image":"example.test/a"}],"install":{"spec":{"deployments":[{}]},"strategy":"deployment"}}}`
	for name, c := range map[string]struct {
		change func(*declcfg.Catalog)
		field  string
		reason string
	}{
		"description of a package": {func(c *declcfg.Catalog) { c.Packages[0].Description = "text" }, "description",
			"packages have no description"},
		"property of a package": {func(c *declcfg.Catalog) {
			c.Packages[0].Properties = []declcfg.Property{{Type: "x", Value: json.RawMessage("1")}}
		}, "properties", `"x"`},
		"property of a channel": {func(c *declcfg.Catalog) {
			c.Channels[0].Properties = []declcfg.Property{{Type: "x", Value: json.RawMessage("1")}}
		}, "properties", `"x"`},
		"field of a package": {func(c *declcfg.Catalog) {
			c.Packages[0].Unknown = []declcfg.Field{{Name: "more", Value: json.RawMessage("1")}}
		}, "more", "does not define"},
		"field of a bundle": {func(c *declcfg.Catalog) {
			c.Bundles[0].Unknown = []declcfg.Field{{Name: "more", Value: json.RawMessage("1")}}
		}, "more", "does not define"},
		"blob of another schema": {func(c *declcfg.Catalog) {
			c.Others = []declcfg.Meta{{Schema: "custom", Package: "p", Name: "n",
				Blob: json.RawMessage(`{"name":"n","package":"p","schema":"custom"}`)}}
		}, "custom", `"n"`},
		"blob of no package": {func(c *declcfg.Catalog) {
			c.Others = []declcfg.Meta{{Schema: "custom", Blob: json.RawMessage(`{"schema":"custom"}`)}}
		}, "custom", "blobs of this schema"},
		"deprecated package": {func(c *declcfg.Catalog) {
			deprecate(c,
				declcfg.DeprecationEntry{Reference: declcfg.Reference{Schema: declcfg.SchemaPackage}, Message: "old"})
		}, "olm.deprecations", "packages cannot"},
		"deprecated channel": {func(c *declcfg.Catalog) {
			deprecate(c,
				declcfg.DeprecationEntry{Reference: declcfg.Reference{Schema: declcfg.SchemaChannel, Name: "stable"},
					Message: "old"})
		}, "olm.deprecations", "channels cannot"},
		"deprecated bundle that is no tombstone": {func(c *declcfg.Catalog) {
			deprecate(c,
				declcfg.DeprecationEntry{Reference: declcfg.Reference{Schema: declcfg.SchemaBundle, Name: "v1"},
					Message: "old"})
		}, "olm.deprecations", "would end its channels"},
		"message of a tombstone": {func(c *declcfg.Catalog) {
			addProperty(&c.Bundles[0], declcfg.PropertyDeprecated, "{}")
			deprecate(c,
				declcfg.DeprecationEntry{Reference: declcfg.Reference{Schema: declcfg.SchemaBundle, Name: "v1"},
					Message: "old"})
		}, "olm.deprecations", "no message"},
		"two ranges of one bundle": {func(c *declcfg.Catalog) {
			c.Channels = append(c.Channels, declcfg.Channel{Name: "other", Package: "p",
				Entries: []declcfg.ChannelEntry{{Name: "v2", SkipRange: "<2.0.0"}}})
		}, "skipRange", "one range"},
		"comma in a skip": {func(c *declcfg.Catalog) { c.Channels[0].Entries[1].Skips = []string{"a,b"} }, "skips",
			"comma"},
		"more fields of an API": {func(c *declcfg.Catalog) {
			addProperty(&c.Bundles[0], declcfg.PropertyGVK, `{"group":"g","kind":"K","more":1,"version":"v1"}`)
		}, "olm.gvk", "more"},
		"required API without a kind": {func(c *declcfg.Catalog) {
			addProperty(&c.Bundles[0], declcfg.PropertyGVKRequired, `{"group":"g","kind":"","version":"v1"}`)
		}, "olm.gvk.required", "no kind"},
		"required package without a name": {func(c *declcfg.Catalog) {
			addProperty(&c.Bundles[0], declcfg.PropertyPackageRequired, `{"packageName":"","versionRange":">1.0.0"}`)
		}, "olm.package.required", "no package"},
		"name of an image that the manifests do not name": {func(c *declcfg.Catalog) {
			c.Bundles[1].Properties = append(c.Bundles[1].Properties, declcfg.NewBundleObject([]byte(csv)))
			c.Bundles[1].RelatedImages = []declcfg.RelatedImage{{Name: "b", Image: "example.test/b"},
				{Name: "a", Image: "example.test/a"}}
		}, "relatedImages", `"b"`},
		"image that only the manifests name": {func(c *declcfg.Catalog) {
			c.Bundles[1].Properties = append(c.Bundles[1].Properties, declcfg.NewBundleObject([]byte(csv)))
		}, "relatedImages", "the catalog does not"},
		"releases of one version": {func(c *declcfg.Catalog) {
			for i, r := range []string{"1", "2"} {
				was := c.Bundles[i].Name
				c.Bundles[i].Name = "p-v1.0.0-" + r
				c.Bundles[i].Properties[0].Value = json.RawMessage(
					`{"packageName":"p","release":"` + r + `","version":"1.0.0"}`)
				for j := range c.Channels[0].Entries {
					e := &c.Channels[0].Entries[j]
					e.Name, e.Replaces = strings.Replace(e.Name, was, c.Bundles[i].Name, 1), strings.Replace(e.Replaces,
						was, c.Bundles[i].Name, 1)
				}
			}
		}, "version", "no releases"},
	} {
		t.Run(name, func(t *testing.T) {
			catalog := simple(c.change)
			path := filepath.Join(t.TempDir(), "index.db")
			_, err := sqlite.Create(context.Background(), path, catalog.Blobs(), sqlite.WriteOptions{})
			var loss *sqlite.LossError
			if !errors.As(err, &loss) || !errors.Is(err, sqlite.ErrLoss) {
				t.Fatalf("error %v", err)
			}
			if len(loss.Findings) != 1 || loss.Findings[0].Kind != sqlite.Lost || loss.Findings[0].Field != c.field ||
				!strings.Contains(loss.Findings[0].Reason, c.reason) {
				t.Errorf("findings %+v", loss.Findings)
			}
			if !strings.Contains(err.Error(), loss.Findings[0].Reason) {
				t.Errorf("the error does not say why: %v", err)
			}
			nothingIn(t, filepath.Dir(path))
			written, err := sqlite.Create(context.Background(), path, catalog.Blobs(), sqlite.WriteOptions{Lossy: true})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(written.Findings, func(f sqlite.Finding) bool { return f == loss.Findings[0] }) {
				t.Errorf("findings %+v", written.Findings)
			}
			back, _, err := read(t, path, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(back.Bundles) != 2 || len(back.Packages) != 1 {
				t.Errorf("%d bundles", len(back.Bundles))
			}
		})
	}
}

func nothingIn(t *testing.T, dir string, but ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(but, e.Name()) {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// Data that is written in another form reads the same.
func TestChanges(t *testing.T) {
	const object = `{"kind":"ConfigMap","metadata":{"name":"m"}}`
	for name, c := range map[string]struct {
		change func(*declcfg.Catalog)
		field  string // empty: no finding
		same   bool
	}{
		"manifest with white space around it": {func(c *declcfg.Catalog) {
			c.Bundles[0].Properties = append(c.Bundles[0].Properties, declcfg.NewBundleObject([]byte(object+"\n")))
		}, "bundle", false},
		"manifest in YAML": {func(c *declcfg.Catalog) {
			c.Bundles[0].Properties = append(c.Bundles[0].Properties,
				declcfg.NewBundleObject([]byte("kind: ConfigMap\nmetadata:\n  name: m\n")))
		}, "bundle", false},
		"manifests": {func(c *declcfg.Catalog) {
			c.Bundles[0].Properties = append(c.Bundles[0].Properties, declcfg.NewBundleObject([]byte(object)),
				declcfg.NewBundleObject([]byte("{\n  \"kind\": \"Secret\"\n}")))
		}, "", true},
		"property twice": {func(c *declcfg.Catalog) {
			addProperty(&c.Bundles[0], "x", "1")
			addProperty(&c.Bundles[0], "x", "1")
		}, "x", false},
		"release": {func(c *declcfg.Catalog) {
			c.Bundles[1].Name, c.Channels[0].Entries[1].Name = "p-v2.0.0-1", "p-v2.0.0-1"
			c.Bundles[1].Properties[0].Value = json.RawMessage(`{"packageName":"p","release":"1","version":"2.0.0"}`)
		}, "release", true},
		"tombstone without a deprecation": {func(c *declcfg.Catalog) {
			addProperty(&c.Bundles[0], declcfg.PropertyDeprecated, "{}")
		}, "olm.deprecations", false},
		"tombstone": {func(c *declcfg.Catalog) {
			addProperty(&c.Bundles[0], declcfg.PropertyDeprecated, "{}")
			deprecate(c,
				declcfg.DeprecationEntry{Reference: declcfg.Reference{Schema: declcfg.SchemaBundle, Name: "v1"},
					Message: message})
		}, "", true},
		"tombstone without opm's property": {func(c *declcfg.Catalog) {
			deprecate(c,
				declcfg.DeprecationEntry{Reference: declcfg.Reference{Schema: declcfg.SchemaBundle, Name: "v1"},
					Message: message})
		}, "", true},
		"several bundles are replaced": {func(c *declcfg.Catalog) {
			c.Channels = append(c.Channels, declcfg.Channel{Name: "other", Package: "p", Entries: entries("v2 v0")})
		}, "replaces", true},
		"icon of no manifest": {func(c *declcfg.Catalog) {
			c.Packages[0].Icon = &declcfg.Icon{Data: []byte("<svg>"), MediaType: "image/svg"}
		}, "", true},
		"named images, no manifests": {func(c *declcfg.Catalog) {
			c.Bundles[0].RelatedImages = []declcfg.RelatedImage{{Name: "n", Image: "example.test/n"},
				{Image: "example.test/m"}}
		}, "", true},
		"named images, only metadata": {func(c *declcfg.Catalog) {
			c.Bundles[1].RelatedImages = []declcfg.RelatedImage{{Name: "n", Image: "example.test/n"}}
			addProperty(&c.Bundles[1], declcfg.PropertyCSVMetadata,
				`{"annotations":{"a":"b"},"apiServiceDefinitions":{},"crdDescriptions":{"owned":[{"kind":"K","name":"ks.g","version":"v1"}]},"displayName":"D","provider":{"name":"P"}}`)
		}, "", true},
		"constraint, label, others": {func(c *declcfg.Catalog) {
			addProperty(&c.Bundles[0], declcfg.PropertyConstraint, `{"cel":{"rule":"true"},"failureMessage":"<no>"}`)
			addProperty(&c.Bundles[0], declcfg.PropertyLabel, `{"label":"l"}`)
			addProperty(&c.Bundles[0], "any", `[1.0,12345678901234567890,"<&>",null,{"n":"y"}]`)
			addProperty(&c.Bundles[0], declcfg.PropertyPackageRequired,
				`{"packageName":"q","versionRange":">=1.0.0 <2.0.0"}`)
			addProperty(&c.Bundles[0], declcfg.PropertyGVKRequired, `{"group":"g","kind":"K","version":"v1"}`)
			addProperty(&c.Bundles[0], declcfg.PropertyGVK, `{"group":"","kind":"K","version":"v1"}`)
		}, "", true},
		"range": {func(c *declcfg.Catalog) { c.Channels[0].Entries[1].SkipRange = ">=1.0.0 <2.0.0" }, "", true},
		"no image": {func(c *declcfg.Catalog) {
			c.Bundles[0].Image = ""
			c.Bundles[0].HasObjects = true
			c.Bundles[0].Properties = append(c.Bundles[0].Properties, declcfg.NewBundleObject([]byte(object)))
		}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			catalog := simple(c.change)
			path, written := create(t, catalog.Blobs(), sqlite.WriteOptions{})
			var fields []string
			for _, f := range written.Findings {
				if f.Kind != sqlite.Changed {
					t.Errorf("finding %+v", f)
				}
				fields = append(fields, f.Field)
			}
			if got := strings.Join(fields, " "); got != c.field {
				t.Errorf("findings about %q, not %q", got, c.field)
			}
			back, findings, err := read(t, path, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range findings {
				if f.Kind != sqlite.Dropped || !strings.Contains(f.Reason,
					"an entry for a bundle that is not in the database") {
					t.Errorf("reading: %+v", f)
				}
			}
			if c.same {
				sameCatalog(t, catalog, back)
			}
		})
	}
}

// The icon of a package is in the ClusterServiceVersion of its head; the manifests are unchanged.
func TestWrittenIcons(t *testing.T) {
	const with = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"v2"},"spec":{"icon":[{"base64data":"b3du","mediatype":"image/png"}],"minKubeVersion":"1.0","x":"<&>"}}`
	without := strings.Replace(with, `"icon":[{"base64data":"b3du","mediatype":"image/png"}],`, "", 1)
	broken := strings.Replace(with, "b3du", "***", 1)
	for name, c := range map[string]struct {
		csv     string
		icon    *declcfg.Icon
		changed bool
	}{
		"its own":                  {with, &declcfg.Icon{Data: []byte("own"), MediaType: "image/png"}, false},
		"another":                  {with, &declcfg.Icon{Data: []byte("other"), MediaType: "image/png"}, true},
		"another type":             {with, &declcfg.Icon{Data: []byte("own"), MediaType: "image/jpeg"}, true},
		"the package has none":     {with, nil, true},
		"the manifest has none":    {without, &declcfg.Icon{Data: []byte("other"), MediaType: "image/png"}, true},
		"neither has one":          {without, nil, false},
		"the manifest's is broken": {broken, nil, false},
		"broken, and replaced":     {broken, &declcfg.Icon{Data: []byte("other"), MediaType: "image/png"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			catalog := simple(func(cat *declcfg.Catalog) {
				cat.Packages[0].Icon = c.icon
				cat.Bundles[1].Properties = append(cat.Bundles[1].Properties, declcfg.NewBundleObject([]byte(c.csv)))
			})
			path, written := create(t, catalog.Blobs(), sqlite.WriteOptions{})
			if changed := len(written.Findings) > 0; changed != c.changed {
				t.Errorf("findings %+v", written.Findings)
			}
			back, _, err := read(t, path, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			sameCatalog(t, catalog, back)
			if got := rowsInOrder(t, path, "SELECT bundle FROM operatorbundle WHERE name = 'v2'"); got != c.csv+"\n" {
				t.Errorf("column bundle: %s", got)
			}
			if got := rowsInOrder(t, path,
				"SELECT csv FROM operatorbundle WHERE name = 'v2'"); !c.changed && got != c.csv+"\n" {
				t.Errorf("column csv: %s", got)
			}
		})
	}
}

// Channel heads get a ClusterServiceVersion: OLM displays heads by it, and opm needs that of the package's head to read
// the package.
func TestHeadsHaveClusterServiceVersions(t *testing.T) {
	catalog := simple(func(c *declcfg.Catalog) {
		c.Packages[0].Icon = &declcfg.Icon{Data: []byte("<svg>"), MediaType: "image/svg"}
		c.Bundles[1].RelatedImages = []declcfg.RelatedImage{{Name: "n", Image: "example.test/n"}}
		addProperty(&c.Bundles[1], declcfg.PropertyCSVMetadata,
			`{"annotations":{"olm.substitutesFor":"v1"},"apiServiceDefinitions":{"owned":[{"group":"g","kind":"S","name":"ss","version":"v1"}]},"crdDescriptions":{"owned":[{"kind":"K","name":"ks.g","version":"v1"}]},"displayName":"<D>","provider":{"name":"P"}}`)
		addProperty(&c.Bundles[1], declcfg.PropertyGVK, `{"group":"g","kind":"K","version":"v1"}`)
		addProperty(&c.Bundles[1], declcfg.PropertyGVK, `{"group":"g","kind":"S","version":"v1"}`)
		addProperty(&c.Bundles[1], declcfg.PropertyGVKRequired, `{"group":"g","kind":"R","version":"v1"}`)
	})
	path, _ := create(t, catalog.Blobs(), sqlite.WriteOptions{})
	const want = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"annotations":{"olm.substitutesFor":"v1"},"name":"v2"},"spec":{"apiservicedefinitions":{"owned":[{"group":"g","kind":"S","name":"ss","version":"v1"}]},"customresourcedefinitions":{"owned":[{"kind":"K","name":"ks.g","version":"v1"}]},"displayName":"<D>","icon":[{"base64data":"PHN2Zz4=","mediatype":"image/svg"}],"install":{"spec":{"deployments":[]},"strategy":"deployment"},"provider":{"name":"P"},"relatedImages":[{"image":"example.test/n","name":"n"}],"version":"1.1.0"}}` + "\n"
	if got := rowsInOrder(t, path, "SELECT csv FROM operatorbundle WHERE name = 'v2'"); got != want {
		t.Errorf("column csv:\n%s\nwant\n%s", got, want)
	}
	if got := rowsInOrder(t, path,
		"SELECT name, csv IS NULL, bundle IS NULL, substitutesfor FROM operatorbundle ORDER BY name"); got !=
		"v1 1 1 \nv2 0 1 v1" {
		t.Errorf("rows:\n%s", got)
	}
	if got := rowsInOrder(t, path, "SELECT * FROM api ORDER BY kind"); got != "g v1 K ks\ng v1 R \ng v1 S ss" {
		t.Errorf("APIs:\n%s", got)
	}
	for table, want := range map[string]string{"api_provider": "K v2\nS v2", "api_requirer": "R v2"} {
		if got := rowsInOrder(t, path, "SELECT kind, operatorbundle_name FROM "+table+" ORDER BY kind"); got != want {
			t.Errorf("%s:\n%s", table, got)
		}
	}
	for _, compat := range []sqlite.Compat{sqlite.CompatNone, sqlite.CompatOPM} {
		if _, _, err := read(t, path, sqlite.Options{Compat: compat}); err != nil {
			t.Error(err)
		}
	}
}
