package declcfg_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
)

// loadWarnings returns the warnings of loading one file as LINE: TEXT.
func loadWarnings(t *testing.T, text string, o declcfg.LoadOptions) (warned []string) {
	t.Helper()
	o.Warn = func(at declcfg.Position, text string) { warned = append(warned, fmt.Sprintf("%d: %s", at.Line, text)) }
	o.Jobs = 1
	if _, err := declcfg.Load(context.Background(), fstest.MapFS{"c.yaml": {Data: []byte(text)}}, o); err != nil {
		t.Fatal(err)
	}
	return warned
}

func TestUnknownFieldsAreWarnings(t *testing.T) {
	const text = `---
schema: olm.package
name: a
defaultChanel: c
icon: {base64data: "", mediaType: x}
---
schema: olm.channel
Name: c
package: a
entries:
- name: a.v2
  replace: a.v1
- name: a.v1
  Skips: [a.v0]
  frobnicate: 1
---
schema: olm.bundle
name: a.v1
package: a
properties:
- type: olm.package
  value: {anything: goes}
  vlaue: 1
relatedImages:
- {name: x, imgae: y}
---
schema: olm.deprecations
package: a
entries:
- reference: {schema: olm.package, nmae: x}
  message: m
---
schema: olm.bundel
name: x
---
schema: custom.thing
name: x
`
	want := []string{
		`4: unknown field "defaultChanel" in olm.package "a": did you mean "defaultChannel"?`,
		`12: unknown field "replace" in entries[0] of olm.channel "c": did you mean "replaces"?`,
		`15: unknown field "frobnicate" in entries[1] of olm.channel "c"`,
		`23: unknown field "vlaue" in properties[0] of olm.bundle "a.v1": did you mean "value"?`,
		`25: unknown field "imgae" in relatedImages[0] of olm.bundle "a.v1": did you mean "image"?`,
		`30: unknown field "nmae" in entries[0].reference of olm.deprecations "": did you mean "name"?`,
		`33: unknown schema "olm.bundel": did you mean "olm.bundle"?`,
	}
	for _, skeleton := range []bool{false, true} {
		if got := loadWarnings(t, text, declcfg.LoadOptions{Skeleton: skeleton}); !slices.Equal(got, want) {
			t.Errorf("skeleton %t: got\n%s\nwant\n%s", skeleton, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// The number of warnings about unknown fields of a blob is limited, as determining their lines is expensive.
func TestManyUnknownFields(t *testing.T) {
	var b strings.Builder
	b.WriteString("schema: olm.channel\nname: c\npackage: a\nentries:\n")
	for i := range 50_000 {
		fmt.Fprintf(&b, "- {name: a.v%d, replace: x}\n", i)
	}
	got := loadWarnings(t, b.String(), declcfg.LoadOptions{})
	if len(got) != 11 || got[10] != `1: 49990 more unknown fields in olm.channel "c"` {
		t.Errorf("%d warnings, the last %q", len(got), got[len(got)-1])
	}
}

func TestDanglingReplacesIsANote(t *testing.T) {
	fsys := fstest.MapFS{"c.yaml": {Data: []byte(`schema: olm.package
name: a
defaultChannel: c
---
schema: olm.channel
name: c
package: a
entries:
- name: a.v2
  replaces: a.v1
- name: a.v1
  replaces: a.v0
---
schema: olm.bundle
name: a.v1
package: a
image: example.com/a:v1
properties: [{type: olm.package, value: {packageName: a, version: 1.0.0}}]
---
schema: olm.bundle
name: a.v2
package: a
image: example.com/a:v2
properties: [{type: olm.package, value: {packageName: a, version: 2.0.0}}]
`)}}
	v, err := declcfg.ValidateFS(context.Background(), fsys, declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `c.yaml:12:13: entry "a.v1" of channel "c" of package "a" replaces "a.v0", which has no entry in the channel`
	if len(v.Notes) != 1 || v.Notes[0].Position.String()+": "+v.Notes[0].Text() != want {
		t.Errorf("%+v", v.Notes)
	}
	if v.Packages != 1 || v.MoreNotes != 0 {
		t.Errorf("%+v", v)
	}
}
