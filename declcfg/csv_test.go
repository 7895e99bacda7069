package declcfg_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

// A value of another kind than it should have counts as missing, and the others are there.
func TestReadCSV(t *testing.T) {
	const good = `{"metadata":{"name":"a.v1","annotations":{"olm.skipRange":"<1.0.0","olm.substitutesFor":"a.v0"}},` +
		`"spec":{"displayName":"A","replaces":"b","skips":["c"],"icon":[{"base64data":"eA==","mediatype":"image/png"}]}}`
	type values struct {
		name, display, skipRange string
		declcfg.Origin
		icon *declcfg.Icon
	}
	all := values{"a.v1", "A", "<1.0.0", declcfg.Origin{Replaces: "b", Skips: []string{"c"}, SubstitutesFor: "a.v0"},
		&declcfg.Icon{Data: []byte("x"), MediaType: "image/png"}}
	without := func(change func(v *values)) values {
		v := all
		change(&v)
		return v
	}
	for what, tt := range map[string]struct {
		path  []string
		value any
		want  values
	}{
		"good":                      {[]string{"more"}, 1, all},
		"a name that is a number":   {[]string{"metadata", "name"}, 1, without(func(v *values) { v.name = "" })},
		"an annotation of a number": {[]string{"metadata", "annotations", "other"}, 1, all},
		"a range that is a number": {[]string{"metadata", "annotations", "olm.skipRange"}, 1,
			without(func(v *values) { v.skipRange = "" })},
		"no mapping of annotations": {[]string{"metadata", "annotations"}, []int{},
			without(func(v *values) { v.skipRange, v.SubstitutesFor = "", "" })},
		"a display name of numbers": {[]string{"spec", "displayName"}, []int{1}, without(func(v *values) { v.display = "" })},
		"replaces a list":           {[]string{"spec", "replaces"}, []string{"b"}, without(func(v *values) { v.Replaces = "" })},
		"skips a text":              {[]string{"spec", "skips"}, "c", without(func(v *values) { v.Skips = nil })},
		"skips one number":          {[]string{"spec", "skips"}, []any{"c", 1}, without(func(v *values) { v.Skips = nil })},
		"one icon and no list":      {[]string{"spec", "icon"}, map[string]any{}, without(func(v *values) { v.icon = nil })},
		"an icon that is no base64": {[]string{"spec", "icon"}, []any{map[string]string{"base64data": "%"}},
			without(func(v *values) { v.icon = nil })},
		"no spec": {[]string{"spec"}, "none", without(func(v *values) {
			v.display, v.icon, v.Origin = "", nil, declcfg.Origin{SubstitutesFor: "a.v0"}
		})},
	} {
		var object map[string]any
		if err := json.Unmarshal([]byte(good), &object); err != nil {
			t.Fatal(err)
		}
		at := object
		for _, key := range tt.path[:len(tt.path)-1] {
			at = at[key].(map[string]any)
		}
		at[tt.path[len(tt.path)-1]] = tt.value
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		c := declcfg.ReadCSV(text)
		if got := (values{c.Name(), c.DisplayName(), c.SkipRange(), c.Origin(), c.Icon()}); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v instead of %+v", what, got, tt.want)
		}
	}
}

// What manifests that are stored elsewhere say counts for the version, and only for it once the bundle is reduced.
func TestSetSubstitutesFor(t *testing.T) {
	for version, want := range map[string]string{"1.0.0+1": "1.0.0-1", "1.0.0": "1.0.0"} {
		p, err := declcfg.NewProperty(declcfg.PropertyPackage, map[string]string{"packageName": "p", "version": version})
		if err != nil {
			t.Fatal(err)
		}
		b := declcfg.Bundle{Name: "b", Package: "p", Properties: []declcfg.Property{p}}
		b.SetSubstitutesFor("a")
		if b.SubstitutesFor() != "a" {
			t.Errorf("%s: %q", version, b.SubstitutesFor())
		}
		for range 2 {
			if v, err := b.VersionRelease(); err != nil || v.String() != want {
				t.Errorf("%s: %s %v", version, v, err)
			}
			b.Reduce()
		}
		if known := b.SubstitutesFor() == "a"; known != (version != "1.0.0") {
			t.Errorf("%s, reduced: %q", version, b.SubstitutesFor())
		}
	}
}
