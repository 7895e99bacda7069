package template_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/render/template"
)

func TestSemverChannels(t *testing.T) {
	type lists = map[string][]string
	majors, minors := map[string]any{"generateMajorChannels": true}, map[string]any{"generateMinorChannels": true}
	for _, c := range []struct {
		name    string
		options map[string]any
		lists   lists
		want    string
	}{
		{"one bundle, minor channels unless told otherwise", nil, lists{"stable": {"1.0.0"}}, `
a: stable-v1.0
stable-v1.0
  a.v1.0.0
`},
		{"no edge leads from one major version to another", majors,
			lists{"stable": {"0.9.0", "1.0.0", "1.1.0", "2.0.0"}}, `
a: stable-v2
stable-v0
  a.v0.9.0
stable-v1
  a.v1.0.0
  a.v1.1.0 <- a.v1.0.0
stable-v2
  a.v2.0.0
`},
		{"a minor version is left for the highest of the next, which skips the rest", majors,
			lists{"stable": {"1.0.0", "1.0.1", "1.1.0", "1.1.1", "1.1.2", "1.3.0"}}, `
a: stable-v1
stable-v1
  a.v1.0.0
  a.v1.0.1 skips a.v1.0.0
  a.v1.1.0
  a.v1.1.1
  a.v1.1.2 <- a.v1.0.1 skips a.v1.0.0 a.v1.1.0 a.v1.1.1
  a.v1.3.0 <- a.v1.1.2 skips a.v1.0.0 a.v1.0.1 a.v1.1.0 a.v1.1.1
`},
		{"minor channels have edges from other channels", minors, lists{"fast": {"1.0.0", "1.1.0", "1.1.1"}}, `
a: fast-v1.1
fast-v1.0
  a.v1.0.0
fast-v1.1
  a.v1.1.0
  a.v1.1.1 <- a.v1.0.0 skips a.v1.1.0
`},
		{"no edge leads from one minor channel to that of the next major version", minors,
			lists{"fast": {"1.0.0", "2.0.0"}}, `
a: fast-v2.0
fast-v1.0
  a.v1.0.0
fast-v2.0
  a.v2.0.0
`},
		{"archetypes are apart, and the best one has the default channel", majors,
			lists{"candidate": {"1.0.0", "1.1.0", "2.0.0"}, "fast": {"1.0.0", "1.1.0"}, "stable": {"1.0.0"}}, `
a: stable-v1
candidate-v1
  a.v1.0.0
  a.v1.1.0 <- a.v1.0.0
candidate-v2
  a.v2.0.0
fast-v1
  a.v1.0.0
  a.v1.1.0 <- a.v1.0.0
stable-v1
  a.v1.0.0
`},
		{"the order of the images does not matter", majors, lists{"stable": {"1.10.0", "1.9.0", "1.2.0"}}, `
a: stable-v1
stable-v1
  a.v1.2.0
  a.v1.9.0 <- a.v1.2.0
  a.v1.10.0 <- a.v1.9.0 skips a.v1.2.0
`},
		{"pre-releases are lower than their release", majors,
			lists{"stable": {"1.0.0", "1.0.0-rc.2", "1.0.0-rc.10", "1.1.0-alpha"}}, `
a: stable-v1
stable-v1
  a.v1.0.0-rc.2
  a.v1.0.0-rc.10
  a.v1.0.0 skips a.v1.0.0-rc.10 a.v1.0.0-rc.2
  a.v1.1.0-alpha <- a.v1.0.0 skips a.v1.0.0-rc.10 a.v1.0.0-rc.2
`},
		{"both kinds, minor preferred unless told otherwise",
			map[string]any{"generateMajorChannels": true, "generateMinorChannels": true}, lists{"stable": {"1.0.0"}}, `
a: stable-v1.0
stable-v1
  a.v1.0.0
stable-v1.0
  a.v1.0.0
`},
		{"the preference decides between channels that begin with one bundle",
			map[string]any{"generateMajorChannels": true, "generateMinorChannels": true,
				"defaultChannelTypePreference": "major"},
			lists{"stable": {"1.0.0"}}, `
a: stable-v1
stable-v1
  a.v1.0.0
stable-v1.0
  a.v1.0.0
`},
		{"the preference does not decide between others: the channel that begins highest wins",
			map[string]any{"generateMajorChannels": true, "generateMinorChannels": true,
				"defaultChannelTypePreference": "major"},
			lists{"stable": {"1.0.0", "1.1.0"}}, `
a: stable-v1.1
stable-v1
  a.v1.0.0
  a.v1.1.0 <- a.v1.0.0
stable-v1.0
  a.v1.0.0
stable-v1.1
  a.v1.1.0 <- a.v1.0.0
`},
		{"build metadata alone is no obstacle", majors, lists{"stable": {"1.0.0_b1", "1.0.1_b1"}}, `
a: stable-v1
stable-v1
  a.v1.0.0+b1
  a.v1.0.1+b1 skips a.v1.0.0+b1
`},
		{"a bundle in two archetypes is one bundle", majors, lists{"candidate": {"1.0.0"}, "stable": {"1.0.0"}}, `
a: stable-v1
candidate-v1
  a.v1.0.0
stable-v1
  a.v1.0.0
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := render(t, semverText(t, c.options, c.lists))
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.TrimPrefix(c.want, "\n"); graph(got) != want {
				t.Errorf("got\n%s\nwant\n%s", graph(got), want)
			}
			names := map[string]bool{}
			for _, b := range got.Bundles {
				if names[b.Name] {
					t.Errorf("bundle %q is there twice", b.Name)
				}
				names[b.Name] = true
			}
		})
	}
}

func TestSemverSyntax(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
		opm        string // the end of opm's message
	}{
		{"unknown field", "schema: olm.semver\nstable:\n  bundles:\n  - image: a/a:v1\ninvalid: x\n",
			[]string{`5: unknown field "invalid"`},
			`render: unable to read file: error unmarshaling JSON: while decoding JSON: json: unknown field "invalid"`},
		{"misspelled fields", "schema: olm.semver\ngenerateMajorChannel: true\nstable:\n  bundels: []\n",
			[]string{`2: unknown field "generateMajorChannel": did you mean "generateMajorChannels"?`,
				`4: unknown field "bundels": did you mean "bundles"?`}, ""},
		{"unknown fields below",
			"schema: olm.semver\nstable:\n  channels: {}\n  bundles:\n  - image: a/a:v1\n    name: x\n",
			[]string{`3: unknown field "channels"`, `6: unknown field "name"`}, ""},
		{"major preferred but not made",
			"schema: olm.semver\ngenerateMinorChannels: true\ndefaultChannelTypePreference: major\n",
			[]string{`3: schema attribute mismatch`}, ""},
		{"minor preferred but not made",
			"schema: olm.semver\ngenerateMajorChannels: true\ndefaultChannelTypePreference: minor\n",
			[]string{`3: schema attribute mismatch`}, ""},
		{"major preferred, neither made", "schema: olm.semver\ndefaultChannelTypePreference: major\n",
			[]string{`2: schema attribute mismatch`}, ""},
		{"unknown preference", "schema: olm.semver\ndefaultChannelTypePreference: Minor\n",
			[]string{`2: unknown DefaultChannelTypePreference: "Minor"`},
			"unknown DefaultChannelTypePreference: \"Minor\"\nValid values are 'major' or 'minor'"},
		{"kinds of values",
			"schema: olm.semver\ngenerateMajorChannels: \"true\"\nfast: [a]\nstable:\n  bundles:\n    image: " +
				"x\ncandidate:\n  bundles:\n  - a/a:v1\n  - image: 5\n",
			[]string{`2: generateMajorChannels is a string, expected a boolean`,
				`3: fast is a list, expected an object`, `6: stable.bundles is an object, expected a list`,
				`9: candidate.bundles[0] is a string, expected an object`,
				`10: candidate.bundles[1].image is a number, expected a string`}, ""},
		{"no image", "schema: olm.semver\nstable:\n  bundles:\n  - {}\n  - image: \"\"\n",
			[]string{`4: stable.bundles[0] has no image`, `5: stable.bundles[1] has no image`}, ""},
		{"names but for case", "Schema: olm.semver\nSTABLE: {Bundles: [{IMAGE: a/a:v1}]}\nstable: {}\n",
			[]string{`3: duplicate keys for key "stable"`}, ""},
		{"a key twice", "schema: olm.semver\nstable: {}\nstable: {}\n", []string{`3: duplicate key "stable"`}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := template.ParseOptions{Name: "t.yaml"}.Parse(t.Context(), strings.NewReader(c.text))
			wantProblems(t, err, c.want...)
			if got := err.(*template.Error).OpmMessage(); !strings.HasSuffix(got, c.opm) {
				t.Errorf("opm's message: got %s, want %s", got, c.opm)
			}
		})
	}
}

func TestSemverBundles(t *testing.T) {
	type lists = map[string][]string
	for _, c := range []struct {
		name  string
		lists lists
		want  []string
		opm   string
	}{
		{"none", nil, []string{"1: no bundles specified or no bundles could be rendered"},
			"rendering template: render: no bundles specified or no bundles could be rendered"},
		{"twice in an archetype", lists{"stable": {"1.0.0", "1.0.0"}}, []string{`1: duplicate bundle name "a.v1.0.0"`},
			`rendering template: render: unable to post-process bundle info: duplicate bundle name "a.v1.0.0"`},
		{"two packages", lists{"candidate": {"1.0.0"}, "stable": {"example.com/b:v1.0.0"}},
			[]string{`1: bundle "b.v1.0.0" of package "b" does not belong to this package: "a"`},
			`rendering template: render: unable to post-process bundle info: bundle "b" does not belong to this package: "a"`},
		{"build metadata does not order", lists{"stable": {"1.0.0_1", "1.0.0_2"}},
			[]string{`1: bundles "a.v1.0.0+1" (version 1.0.0+1) and "a.v1.0.0+2" (version 1.0.0+2) have versions that are equal or differ only by build metadata, which cannot be ordered`}, ""},
		{"build metadata in different archetypes", lists{"fast": {"1.0.0_1"}, "stable": {"1.0.0_2"}}, nil, ""},
		{"no version", lists{"stable": {"1.0", "one"}},
			[]string{`1: bundle "a.v1.0" has invalid version "1.0"`, `1: bundle "a.vone" has invalid version "one"`},
			""},
		{"everything at once",
			lists{"candidate": {"1.0.0", "x", "1.0.0"}, "stable": {"example.com/b:v1.0.0", "2.0.0_1", "2.0.0"}},
			[]string{`1: bundle "a.vx" has invalid`, `1: duplicate bundle name "a.v1.0.0"`,
				`1: bundle "b.v1.0.0" of package "b"`, `1: bundles "a.v2.0.0+1"`}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := render(t, semverText(t, nil, c.lists))
			if c.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantProblems(t, err, c.want...)
			if got := err.(*template.Error).OpmMessage(); c.opm != "" && got != c.opm {
				t.Errorf("opm's message: got %s, want %s", got, c.opm)
			}
		})
	}
}

func TestSemverDescribesThePackage(t *testing.T) {
	icon := base64.StdEncoding.EncodeToString([]byte("picture"))
	for _, c := range []struct {
		name, csv         string
		description, icon string
		mediaType         string
		warned            string
		level             edit.Level
	}{
		{"both", `{"description":"d","icon":[{"base64data":"` + icon + `","mediatype":"image/png"}]}`, "d", "picture",
			"image/png", "", ""},
		{"the manifests migrated", `{"description":"d","icon":[{"base64data":"` + icon + `","mediatype":"image/png"}]}`,
			"d", "picture", "image/png", "", edit.LevelCSVMetadata},
		{"description only", `{"description":"d"}`, "d", "", "", "", ""},
		{"icon only", `{"icon":[{"base64data":"` + icon + `","mediatype":"image/png"}]}`, "", "picture", "image/png",
			"", ""},
		{"an icon in two lines", `{"icon":[{"base64data":"` + icon[:4] + `\n ` + icon[4:] + `","mediatype":"image/png"}]}`, "", "picture", "image/png",
			"", ""},
		{"the first of several icons",
			`{"icon":[{"base64data":"` + icon + `","mediatype":"a/b"},{"base64data":"AAAA","mediatype":"c/d"}]}`, "",
			"picture", "a/b", "", ""},
		{"an icon without data", `{"description":"d","icon":[{"mediatype":"image/png"}]}`, "d", "", "", "", ""},
		{"an icon without media type", `{"icon":[{"base64data":"` + icon + `"}]}`, "", "picture", "", "", ""},
		{"no icons", `{"description":"d","icon":[]}`, "d", "", "", "", ""},
		{"null", `{"description":null,"icon":null}`, "", "", "", "", ""},
		{"nothing", `{}`, "", "", "", "", ""},
		{"an icon that is no base64", `{"description":"d","icon":[{"base64data":"!","mediatype":"image/png"}]}`, "d",
			"", "", "no icon", ""},
		{"values of other kinds", `{"description":5}`, "", "", "", "no description", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &registry{csv: func(name string) string {
				if name != "a.v1.1.0" {
					return `{"kind":"ClusterServiceVersion","spec":{"description":"not of the last entry"}}`
				}
				return `{"kind":"ClusterServiceVersion","spec":` + c.csv + `}`
			}}
			var warned strings.Builder
			got, err := parse(t,
				semverText(t, nil, map[string][]string{"stable": {"1.1.0", "1.0.0", "1.0.1"},
					"candidate": {"2.0.0"}})).Render(t.Context(), template.RenderOptions{
				Render: r.render, Level: c.level,
				Warn: func(_ declcfg.Position, text string) { warned.WriteString(text) }})
			if err != nil {
				t.Fatal(err)
			}
			p := got.Packages[0]
			if p.Description != c.description {
				t.Errorf("description %q", p.Description)
			}
			if c.icon == "" && p.Icon != nil ||
				c.icon != "" && (p.Icon == nil || string(p.Icon.Data) != c.icon || p.Icon.MediaType != c.mediaType) {
				t.Errorf("icon %+v", p.Icon)
			}
			if !strings.Contains(warned.String(), c.warned) || c.warned == "" && warned.Len() > 0 {
				t.Errorf("warned: %s", warned.String())
			}
		})
	}
}
