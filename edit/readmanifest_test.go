package edit_test

import (
	"reflect"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
)

// An icon or a list of skips of another kind does not hide what a bundle replaces.
func TestReadManifestOfWrongKinds(t *testing.T) {
	for _, spec := range []string{`"icon":{}`, `"icon":[1]`, `"skips":"c"`} {
		p, err := declcfg.NewProperty(declcfg.PropertyBundleObject, map[string][]byte{"data": []byte(
			`{"kind":"ClusterServiceVersion","metadata":{"name":"b"},"spec":{"replaces":"a",` + spec + `}}`)})
		if err != nil {
			t.Fatal(err)
		}
		got := edit.ReadManifest(&declcfg.Bundle{Name: "b", Package: "p", Properties: []declcfg.Property{p}})
		if want := (&edit.Manifest{CSV: true, Origin: declcfg.Origin{Replaces: "a"}}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", spec, got)
		}
	}
}
