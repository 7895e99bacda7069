package declcfg_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/testing/cputime"
)

// entry parses a channel entry "name", "name<replaced", "name<replaced!skip!skip".
func entry(s string) declcfg.ChannelEntry {
	parts := strings.Split(s, "!")
	name, replaces, _ := strings.Cut(parts[0], "<")
	return declcfg.ChannelEntry{Name: name, Replaces: replaces, Skips: parts[1:]}
}

func channel(name string, entries ...string) declcfg.Channel {
	c := declcfg.Channel{Name: name, Package: "foo", Entries: []declcfg.ChannelEntry{}}
	for _, e := range entries {
		c.Entries = append(c.Entries, entry(e))
	}
	return c
}

func bundle(name, version string) declcfg.Bundle {
	p, err := declcfg.NewProperty(declcfg.PropertyPackage, property.Package{PackageName: "foo", Version: version})
	if err != nil {
		panic(err)
	}
	return declcfg.Bundle{Name: name, Package: "foo", Image: "quay.io/foo/bundle:" + name,
		Properties: []declcfg.Property{p}}
}

// small is a valid catalog: foo with the channel "stable" of three versions.
func small() *declcfg.Catalog {
	return &declcfg.Catalog{
		Packages: []declcfg.Package{{Name: "foo", DefaultChannel: "stable"}},
		Channels: []declcfg.Channel{channel("stable", "a", "b<a", "c<b")},
		Bundles:  []declcfg.Bundle{bundle("a", "1.0.0"), bundle("b", "1.1.0"), bundle("c", "1.2.0")},
	}
}

func withProperty(c *declcfg.Catalog, i int, typ, value string) {
	c.Bundles[i].Properties = append(c.Bundles[i].Properties, declcfg.Property{Type: typ, Value: []byte(value)})
}

func setRelease(c *declcfg.Catalog, i int, name, version, release string) {
	p, err := declcfg.NewProperty(declcfg.PropertyPackage,
		property.Package{PackageName: "foo", Version: version, Release: release})
	if err != nil {
		panic(err)
	}
	old := c.Bundles[i].Name
	c.Bundles[i].Name, c.Bundles[i].Properties = name, []declcfg.Property{p}
	for j := range c.Channels[0].Entries {
		e := &c.Channels[0].Entries[j]
		if e.Name == old {
			e.Name = name
		}
		if e.Replaces == old {
			e.Replaces = name
		}
	}
}

func deprecate(c *declcfg.Catalog, schema, name, message string) {
	if len(c.Deprecations) == 0 {
		c.Deprecations = []declcfg.Deprecations{{Package: "foo"}}
	}
	d := &c.Deprecations[0]
	d.Entries = append(d.Entries,
		declcfg.DeprecationEntry{Reference: declcfg.Reference{Schema: schema, Name: name}, Message: message})
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name string
		edit func(*declcfg.Catalog)
		want []string // a part of each problem's message, in order; none for a valid catalog
	}{
		{"valid", func(*declcfg.Catalog) {}, nil},
		{"empty", func(c *declcfg.Catalog) { *c = declcfg.Catalog{} }, nil},
		{"package without name", func(c *declcfg.Catalog) { c.Packages = append(c.Packages, declcfg.Package{}) },
			[]string{"config contains package with no name"}},
		{"duplicate package", func(c *declcfg.Catalog) { c.Packages = append(c.Packages, c.Packages[0]) },
			[]string{`duplicate package "foo"`}},
		{"package name with dots", func(c *declcfg.Catalog) {
			c.Packages = append(c.Packages, declcfg.Package{Name: "foo.bar"})
		}, []string{`invalid package name "foo.bar": [must not contain dots]`, "default channel must be set",
			"package must contain at least one channel"}},
		{"channel of no package", func(c *declcfg.Catalog) { c.Channels[0].Package = "" },
			[]string{`unknown package "" for channel "stable"`, `bundle "a" not found in any channel entries`,
				`bundle "b" not found`, `bundle "c" not found`, "channel must contain at least one bundle"}},
		{"channel of unknown package", func(c *declcfg.Catalog) {
			c.Channels = append(c.Channels, declcfg.Channel{Name: "x", Package: "bar"})
		}, []string{`unknown package "bar" for channel "x"`}},
		{"channel without name", func(c *declcfg.Catalog) { c.Channels = append(c.Channels, channel("", "a")) },
			[]string{`package "foo" contains channel with no name`}},
		{"duplicate channel", func(c *declcfg.Catalog) { c.Channels = append(c.Channels, channel("stable", "a")) },
			[]string{`package "foo" has duplicate channel "stable"`}},
		{"duplicate entry", func(c *declcfg.Catalog) { c.Channels[0] = channel("stable", "a", "b<a", "c<b", "c<b") },
			[]string{`duplicate entry "c"`}},
		{"bundle of no package", func(c *declcfg.Catalog) { c.Bundles = append(c.Bundles, declcfg.Bundle{Name: "x"}) },
			[]string{`package name must be set for bundle "x"`}},
		{"bundle of unknown package", func(c *declcfg.Catalog) {
			c.Bundles = append(c.Bundles, declcfg.Bundle{Name: "x", Package: "bar"})
		}, []string{`unknown package "bar" for bundle "x"`}},
		{"duplicate bundle", func(c *declcfg.Catalog) { c.Bundles = append(c.Bundles, c.Bundles[0]) },
			[]string{`package "foo" has duplicate bundle "a"`}},
		{"property of another shape", func(c *declcfg.Catalog) { withProperty(c, 0, declcfg.PropertyGVK, `"x"`) },
			[]string{`bundle "a": property of type "olm.gvk": properties[1].value is a string, expected an object`}},
		{"property without value", func(c *declcfg.Catalog) { withProperty(c, 0, "olm.foo", "") },
			[]string{`bundle "a": property of type "olm.foo": properties[1] has no value`}},
		{"CSV metadata of another shape", func(c *declcfg.Catalog) {
			withProperty(c, 0, declcfg.PropertyCSVMetadata, `{"keywords":"x"}`)
		}, []string{`property of type "olm.csv.metadata": properties[1].value.keywords is a string, expected a list (write ["x"])`}},
		{"no package property", func(c *declcfg.Catalog) { c.Bundles[1].Properties = nil },
			[]string{`package "foo" bundle "b" must have exactly 1 "olm.package" property, found 0`}},
		{"two package properties", func(c *declcfg.Catalog) {
			c.Bundles[1].Properties = append(c.Bundles[1].Properties, c.Bundles[1].Properties[0])
		}, []string{`must have exactly 1 "olm.package" property, found 2`}},
		{"package property of another package", func(c *declcfg.Catalog) {
			c.Bundles[1].Properties[0].Value = []byte(`{"packageName":"bar","version":"1.1.0"}`)
		}, []string{`package "foo" does not match "olm.package" property "bar"`}},
		{"image with an unknown digest algorithm",
			func(c *declcfg.Catalog) { c.Bundles[0].Image = "quay.io/foo/bar@ssha256:" + strings.Repeat("a", 64) },
			[]string{"invalid image pull spec"}},
		{"image with an md5 digest", func(c *declcfg.Catalog) {
			c.Bundles[0].Image = "quay.io/foo/bar@md5:" + strings.Repeat("a", 32)
		}, []string{"invalid image pull spec"}},
		{"image with tag and digest",
			func(c *declcfg.Catalog) { c.Bundles[0].Image = "quay.io/foo/bar:v1@sha256:" + strings.Repeat("a", 64) },
			nil},
		{"related image with an unknown digest algorithm", func(c *declcfg.Catalog) {
			c.Bundles[0].RelatedImages = []declcfg.RelatedImage{{Image: "quay.io/foo/bar@ssha256:" + strings.Repeat("a",
				64)}}
		}, []string{"invalid image pull spec"}},
		{"related image of another transport",
			func(c *declcfg.Catalog) { c.Bundles[0].RelatedImages = []declcfg.RelatedImage{{Image: "oci://x"}} },
			[]string{"invalid image pull spec"}},
		{"version of four parts", func(c *declcfg.Catalog) {
			c.Bundles[1].Properties[0].Value = []byte(`{"packageName":"foo","version":"0.1.0.1"}`)
		}, []string{`error parsing bundle "b" version "0.1.0.1": Invalid character(s) found in patch number "0.1"`}},
		{"no version", func(c *declcfg.Catalog) {
			c.Bundles[1].Properties[0].Value = []byte(`{"packageName":"foo"}`)
		}, []string{"Version string empty"}},
		{"invalid release", func(c *declcfg.Catalog) { setRelease(c, 2, "c", "1.2.0", "!!!") },
			[]string{`error parsing bundle "c" release version "!!!": invalid release`}},
		{"release too long", func(c *declcfg.Catalog) { setRelease(c, 2, "c", "1.2.0", strings.Repeat("1", 21)) },
			[]string{"exceeds maximum length"}},
		{"release with leading zero", func(c *declcfg.Catalog) { setRelease(c, 2, "c", "1.2.0", "1.02") },
			[]string{"segment 1:"}},
		{"release with another name", func(c *declcfg.Catalog) { setRelease(c, 2, "c", "1.2.0", "1") },
			[]string{"does not match normalized name"}},
		{"release with the normalized name",
			func(c *declcfg.Catalog) { setRelease(c, 2, "foo-v1.2.0-1", "1.2.0", "1") }, nil},
		{"release with build metadata", func(c *declcfg.Catalog) { setRelease(c, 2, "foo-v1.2.0-x-1", "1.2.0+X", "1") },
			[]string{"cannot use build metadata in version with a release version"}},
		{"bundle in no channel", func(c *declcfg.Catalog) { c.Bundles = append(c.Bundles, bundle("d", "2.0.0")) },
			[]string{`package "foo", bundle "d" not found in any channel entries`}},
		{"entry without bundle", func(c *declcfg.Catalog) {
			c.Channels[0] = channel("stable", "a", "b<a", "c<b", "x<c")
		}, []string{`no olm.bundle blobs found in package "foo" for olm.channel entries [x]`}},
		{"entries without bundles in two channels", func(c *declcfg.Catalog) {
			c.Channels = append(c.Channels, channel("alpha", "y"), channel("zeta", "a"))
		}, []string{`no olm.bundle blobs found in package "foo" for olm.channel entries [y]`}},
		{"no default channel", func(c *declcfg.Catalog) { c.Packages[0].DefaultChannel = "" },
			[]string{"default channel must be set"}},
		{"unknown default channel", func(c *declcfg.Catalog) { c.Packages[0].DefaultChannel = "x" },
			[]string{`default channel "x" not found in channels list`}},
		{"channel without bundles", func(c *declcfg.Catalog) { c.Channels = append(c.Channels, channel("x")) },
			[]string{"channel must contain at least one bundle"}},
		{"two heads", func(c *declcfg.Catalog) { c.Channels[0] = channel("stable", "a", "b<a", "c<a") },
			[]string{"multiple channel heads found in graph: b, c"}},
		{"no head", func(c *declcfg.Catalog) { c.Channels[0] = channel("stable", "a<c", "b<a", "c<b") },
			[]string{"no channel head found in graph"}},
		{"cycle of one", func(c *declcfg.Catalog) { c.Channels[0] = channel("stable", "a<a", "b<a", "c<b") },
			[]string{"detected cycle in replaces chain of upgrade graph: a -> a"}},
		{"cycle of two", func(c *declcfg.Catalog) { c.Channels[0] = channel("stable", "a<b", "b<a", "c<b") },
			[]string{"detected cycle in replaces chain of upgrade graph: b -> a -> b"}},
		{"stranded behind a skip", func(c *declcfg.Catalog) { c.Channels[0] = channel("stable", "a", "b<a", "c<b!b") },
			[]string{"channel contains one or more stranded bundles: a"}},
		{"skipped all", func(c *declcfg.Catalog) { c.Channels[0] = channel("stable", "a", "b", "c!a!b") }, nil},
		{"replaces what is not there",
			func(c *declcfg.Catalog) { c.Channels[0] = channel("stable", "a<z", "b<a", "c<b!y") }, nil},
		{"equal versions", func(c *declcfg.Catalog) { c.Bundles[1] = bundle("b", "1.0.0") },
			[]string{"duplicate versions found in bundles: [{1.0.0: [a, b]}]"}},
		{"no image", func(c *declcfg.Catalog) { c.Bundles[0].Image = "" }, []string{"bundle image must be set"}},
		{"no image but objects", func(c *declcfg.Catalog) { c.Bundles[0].Image, c.Bundles[0].HasObjects = "", true },
			nil},
		{"empty skip", func(c *declcfg.Catalog) { c.Channels[0] = channel("stable", "a", "b<a", "c<b!") },
			[]string{"skip[0] is empty"}},
		{"skip range", func(c *declcfg.Catalog) { c.Channels[0].Entries[2].SkipRange = ">=1.0.0 <1.2.0" }, nil},
		{"no range", func(c *declcfg.Catalog) { c.Channels[0].Entries[2].SkipRange = "x" },
			[]string{`invalid skipRange "x"`}},
		{"range with an empty alternative", func(c *declcfg.Catalog) { c.Channels[0].Entries[2].SkipRange = "<1.0.0 || || >2.0.0" },
			[]string{`invalid skipRange "<1.0.0 || || >2.0.0": there is no comparison between '||' and '||'`}},
		{"endless range", func(c *declcfg.Catalog) {
			c.Channels[0].Entries[2].SkipRange = strings.Repeat(">=1.0.0 ", 1000)
		}, []string{"longer than 4096 bytes"}},
		{"deprecations of no package", func(c *declcfg.Catalog) { c.Deprecations = []declcfg.Deprecations{{}} },
			[]string{"package name must be set for deprecation item 0"}},
		{"deprecations of unknown package", func(c *declcfg.Catalog) {
			c.Deprecations = []declcfg.Deprecations{{Package: "x"}}
		}, []string{`unknown package "x"`}},
		{"two deprecations of a package",
			func(c *declcfg.Catalog) { c.Deprecations = []declcfg.Deprecations{{Package: "foo"}, {Package: "foo"}} },
			[]string{"expected a maximum of one deprecation per package"}},
		{"deprecations", func(c *declcfg.Catalog) {
			deprecate(c, declcfg.SchemaPackage, "", "old")
			deprecate(c, declcfg.SchemaChannel, "stable", "old")
			deprecate(c, declcfg.SchemaBundle, "a", "old")
		}, nil},
		{"deprecation of nothing", func(c *declcfg.Catalog) { deprecate(c, "", "a", "old") },
			[]string{"schema must be set for deprecation entry"}},
		{"deprecation twice", func(c *declcfg.Catalog) {
			deprecate(c, declcfg.SchemaBundle, "a", "old")
			deprecate(c, declcfg.SchemaBundle, "a", "old")
		}, []string{"duplicate deprecation entry"}},
		{"deprecation of an unknown bundle",
			func(c *declcfg.Catalog) { deprecate(c, declcfg.SchemaBundle, "x", "old") }, []string{"bundle not found"}},
		{"deprecation of an unknown channel",
			func(c *declcfg.Catalog) { deprecate(c, declcfg.SchemaChannel, "x", "old") },
			[]string{"channel not found"}},
		{"deprecation of a named package", func(c *declcfg.Catalog) {
			deprecate(c, declcfg.SchemaPackage, "foo", "old")
		}, []string{"package name must be empty for deprecated package"}},
		{"deprecation of something else", func(c *declcfg.Catalog) { deprecate(c, "foo", "x", "old") },
			[]string{"object schema unknown"}},
		{"deprecation without message", func(c *declcfg.Catalog) { deprecate(c, declcfg.SchemaBundle, "a", "") },
			[]string{"message must be set"}},
		{"all problems at once", func(c *declcfg.Catalog) {
			c.Packages = append(c.Packages, c.Packages[0])
			c.Packages[0].DefaultChannel = "x"
			c.Bundles[0].Image = ""
			c.Bundles[1] = bundle("b", "1.2.0")
			c.Channels[0] = channel("stable", "a", "b<a", "c<a")
		}, []string{"duplicate package", "multiple channel heads", "bundle image must be set",
			`default channel "x" not found`, "duplicate versions"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := small()
			tt.edit(c)
			err := c.Validate()
			if err == nil {
				if len(tt.want) > 0 {
					t.Fatalf("valid, want %q", tt.want)
				}
				return
			}
			var invalid *declcfg.ValidationError
			if !errors.As(err, &invalid) {
				t.Fatalf("error is a %T", err)
			}
			var got []string
			for _, p := range invalid.Problems {
				got = append(got, p.Text())
			}
			if len(got) != len(tt.want) {
				t.Fatalf("got %d problems %q, want %d: %q", len(got), got, len(tt.want), tt.want)
			}
			for i, want := range tt.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("problem %d is %q, want %q in it", i, got[i], want)
				}
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not contain %q: %v", want, err)
				}
			}
		})
	}
}

// chainOf returns a channel in which each of n bundles replaces the previous one.
func chainOf(n int) *declcfg.Catalog {
	c := &declcfg.Catalog{Packages: []declcfg.Package{{Name: "foo", DefaultChannel: "stable"}},
		Channels: []declcfg.Channel{{Name: "stable", Package: "foo"}}}
	for i := range n {
		name := fmt.Sprintf("v%d", i)
		e := declcfg.ChannelEntry{Name: name}
		if i > 0 {
			e.Replaces = fmt.Sprintf("v%d", i-1)
		}
		c.Channels[0].Entries = append(c.Channels[0].Entries, e)
		c.Bundles = append(c.Bundles, bundle(name, fmt.Sprintf("0.%d.0", i)))
	}
	return c
}

// skipsOf returns a channel in which each of n bundles skips all before it.
func skipsOf(n int) *declcfg.Catalog {
	c := &declcfg.Catalog{Packages: []declcfg.Package{{Name: "foo", DefaultChannel: "stable"}},
		Channels: []declcfg.Channel{{Name: "stable", Package: "foo"}}}
	var below []string
	for i := range n {
		name := fmt.Sprintf("v%d", i)
		c.Channels[0].Entries = append(c.Channels[0].Entries, declcfg.ChannelEntry{Name: name, Skips: below[:i:i]})
		c.Bundles = append(c.Bundles, bundle(name, fmt.Sprintf("0.%d.0", i)))
		below = append(below, name)
	}
	return c
}

// Eight times the edges take about eight times as long; a quadratic algorithm would take sixty-four times.
func TestValidateTakesLinearTime(t *testing.T) {
	validated := func(c *declcfg.Catalog) func() {
		return func() {
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct{ small, large *declcfg.Catalog }{
		"a chain":                     {chainOf(2_000), chainOf(16_000)},
		"bundles that skip all below": {skipsOf(400), skipsOf(1_131)},
	} {
		t.Run(name, func(t *testing.T) {
			if ratio := cputime.Ratio(validated(c.small), validated(c.large)); ratio > 24 {
				t.Errorf("eight times the edges take %.1f times as long", ratio)
			}
		})
	}
}

// The error about a channel without a head names a cycle, even if entries above lead to it.
func TestCycleIsNamed(t *testing.T) {
	for _, c := range []struct{ name, entries, want string }{
		{"itself", `{name: a.v1, replaces: a.v1}`, `cycle: "a.v1" replaces "a.v1"`},
		{"replaces and skips",
			`{name: a.v1, skips: [a.v3]}, {name: a.v2, replaces: a.v1}, {name: a.v3, replaces: a.v2}`,
			`cycle: "a.v1" skips "a.v3" replaces "a.v2" replaces "a.v1"`},
		{"a way into it",
			`{name: a.v1}, {name: a.v2, replaces: a.v1}, {name: a.v3, replaces: a.v2, skips: [a.v4]}, {name: a.v4, replaces: a.v3}`,
			`cycle: "a.v3" skips "a.v4" replaces "a.v3"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "schema: olm.package\nname: a\ndefaultChannel: c\n---\nschema: olm.channel\nname: c\npackage: " +
				"a\nentries: [" + c.entries + "]\n"
			catalog, err := declcfg.Read(context.Background(), strings.NewReader(text), "c.yaml", declcfg.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			err = catalog.Validate()
			if want := "no channel head found in graph (" + c.want + ")"; err == nil || !strings.Contains(err.Error(),
				want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
