package edit_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
)

const (
	crd = `{"kind":"CustomResourceDefinition"}`
	csv = `{"kind":"ClusterServiceVersion","metadata":{"annotations":{"a":"<b>"}},"spec":{"displayName":"X & Y","version":"1.0.0","provider":{"name":"Z"}}}`
)

func levelBundle(image string, properties ...declcfg.Property) *declcfg.Bundle {
	return &declcfg.Bundle{Name: "x.v1.0.0", Package: "x", Image: image, Properties: properties, HasObjects: true}
}

func object(s string) declcfg.Property { return declcfg.NewBundleObject([]byte(s)) }

func TestBundleObjectToCSVMetadata(t *testing.T) {
	version := declcfg.Property{Type: declcfg.PropertyPackage, Value: []byte(`{"packageName":"x","version":"1.0.0"}`)}
	metadata := declcfg.Property{Type: declcfg.PropertyCSVMetadata, Value: []byte(
		`{"annotations":{"a":"<b>"},"apiServiceDefinitions":{},"crdDescriptions":{},"displayName":"X & Y","provider":{"name":"Z"}}`)}
	for _, c := range []struct {
		name string
		in   *declcfg.Bundle
		want []declcfg.Property
	}{
		{"manifests become metadata", levelBundle("i", object(crd), version, object(csv)),
			[]declcfg.Property{version, metadata}},
		{"a second CSV is a manifest like others",
			levelBundle("i", object(csv), object(`{"kind":"ClusterServiceVersion","spec":{"displayName":"second"}}`)),
			[]declcfg.Property{metadata}},
		{"without an image the manifests are all there is", levelBundle("", version, object(csv)),
			[]declcfg.Property{version, object(csv)}},
		{"without a CSV nothing is known", levelBundle("i", version, object(crd)),
			[]declcfg.Property{version, object(crd)}},
		{"metadata is there already", levelBundle("i", metadata, object(csv)),
			[]declcfg.Property{metadata, object(csv)}},
		{"nothing is there", levelBundle("i", version), []declcfg.Property{version}},
	} {
		for range 2 { // the second time changes nothing
			if err := edit.LevelCSVMetadata.Apply(c.in); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			if !reflect.DeepEqual(c.in.Properties, c.want) {
				t.Errorf("%s: got %s", c.name, c.in.Properties)
			}
		}
	}
}

func TestABundleThatCannotBeMigratedStaysAsItIs(t *testing.T) {
	broken := levelBundle("i", object(`{"kind":"ClusterServiceVersion","spec":{"keywords":"x"}}`), object(crd))
	before := append([]declcfg.Property(nil), broken.Properties...)
	if err := edit.LevelCSVMetadata.Apply(broken); err == nil || !strings.Contains(err.Error(), "x.v1.0.0") {
		t.Errorf("got %v", err)
	}
	if !reflect.DeepEqual(broken.Properties, before) {
		t.Errorf("got %s", broken.Properties)
	}
}

func TestLevels(t *testing.T) {
	for _, c := range []struct {
		name string
		want edit.Level
		err  string
	}{
		{"", edit.LevelNone, ""},
		{"none", edit.LevelNone, ""},
		{"bundle-object-to-csv-metadata", edit.LevelCSVMetadata, ""},
		{"split-icon", "", `unknown migration level "split-icon"`},
	} {
		got, err := edit.ParseLevel(c.name)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%q: got %q, %v", c.name, got, err)
		}
	}
	if !edit.LevelCSVMetadata.Includes(edit.LevelNone) || edit.LevelNone.Includes(edit.LevelCSVMetadata) ||
		edit.Level("").Includes(edit.LevelCSVMetadata) {
		t.Error("the levels are not in order")
	}
	if levels := edit.Levels(); levels[len(levels)-1] != edit.LevelLatest {
		t.Errorf("the latest of the levels %q is %q", levels, edit.LevelLatest)
	}
	b := levelBundle("i", object(csv))
	if err := edit.LevelNone.Apply(b); err != nil || len(b.Properties) != 1 ||
		b.Properties[0].Type != declcfg.PropertyBundleObject {
		t.Errorf("level none: %v, %s", err, b.Properties)
	}
	if err := edit.Level("x").Apply(b); err == nil {
		t.Error("an unknown level was applied")
	}
}
