package edit_test

import (
	"fmt"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/edit"
)

// withAnnotation adds the metadata with substitutesFor to bundles of a catalog.
func withAnnotation(t *testing.T, c *declcfg.Catalog, substitutes map[string]string) *declcfg.Catalog {
	t.Helper()
	for i := range c.Bundles {
		if target := substitutes[c.Bundles[i].Name]; target != "" {
			p, err := declcfg.NewProperty(declcfg.PropertyCSVMetadata,
				property.CSVMetadata{Annotations: map[string]string{declcfg.AnnotationSubstitutesFor: target}})
			if err != nil {
				t.Fatal(err)
			}
			c.Bundles[i].Properties = append(c.Bundles[i].Properties, p)
		}
	}
	return c
}

func TestSubstitutesFor(t *testing.T) {
	o := edit.AddOptions{SubstitutesFor: true}
	base := []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0"}
	for _, c := range []addCase{
		{name: "for a bundle that is replaced", o: o, from: base, add: []string{"p 1.1.0+1 >1.0.0 ^1.1.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0, 1.1.0+1 >1.0.0 !1.1.0, 1.2.0 >1.1.0+1"}},
		{name: "for a head", o: o, from: base, add: []string{"p 1.2.0+1 >1.1.0 ^1.2.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0, 1.2.0, 1.2.0+1 >1.1.0 !1.2.0"}},
		{name: "two for the same one", o: o, from: base,
			add:  []string{"p 1.1.0+2 >1.0.0 ^1.1.0 @a", "p 1.1.0+1 >1.0.0 ^1.1.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0, 1.1.0+1, 1.1.0+2 >1.0.0 !1.1.0 !1.1.0+1, 1.2.0 >1.1.0+2"}},
		{name: "one for a substitute", o: o, from: base,
			add:  []string{"p 1.1.0+2 >1.0.0 ^1.1.0+1 @a", "p 1.1.0+1 >1.0.0 ^1.1.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0, 1.1.0+1, 1.1.0+2 >1.0.0 !1.1.0 !1.1.0+1, 1.2.0 >1.1.0+2"}},
		{name: "what is added on top replaces the substitute", o: o, from: base,
			add:  []string{"p 1.2.0+1 >1.1.0 ^1.2.0 @a", "p 1.3.0 >1.2.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0, 1.2.0, 1.2.0+1 >1.1.0 !1.2.0, 1.3.0 >1.2.0+1"}},
		{name: "everything at once, substitutes first", o: o,
			add:  []string{"p 1.1.0+1 >1.0.0 ^1.1.0 @a", "p 1.2.0 >1.1.0 @a", "p 1.1.0 >1.0.0 @a", "p 1.0.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0, 1.1.0+1 >1.0.0 !1.1.0, 1.2.0 >1.1.0+1"}},
		{name: "what skips a bundle skips its substitutes", o: o,
			from: []string{"p = a", "p/a: 1.0.0, 1.1.0, 1.2.0 >1.0.0 !1.1.0"},
			add:  []string{"p 1.1.0+1 >1.0.0 ^1.1.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0, 1.1.0+1, 1.2.0 >1.0.0 !1.1.0 !1.1.0+1"}},
		{name: "a substitute that replaces what it substitutes for", o: o, from: base,
			add:  []string{"p 1.1.0+1 >1.1.0 ^1.1.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0, 1.1.0+1 >1.0.0 !1.1.0, 1.2.0 >1.1.0+1"}},
		{name: "what is not there may be substituted", o: o, from: base, add: []string{"p 1.3.0+1 >1.2.0 ^1.3.0 @a"},
			want: []string{"p = a", base[1] + ", 1.3.0+1 >1.2.0 !1.3.0"}},
		{name: "itself", o: o, from: base, add: []string{"p 1.3.0 >1.2.0 ^1.3.0 @a"}, kind: edit.ErrGraph,
			text: "cyclic substitutesFor chain detected involving p.v1.3.0"},
		{name: "in a circle", o: o, from: base,
			add: []string{"p 1.3.0 >1.2.0 ^1.3.0+1 @a", "p 1.3.0+1 >1.2.0 ^1.3.0 @a"}, kind: edit.ErrGraph,
			text: "cyclic substitutesFor chain detected involving p.v1.3.0, p.v1.3.0+1"},
		{name: "a circle that something leads to", o: o, from: base,
			add:  []string{"p 1.3.0 >1.2.0 ^1.3.0+1 @a", "p 1.3.0+1 >1.2.0 ^1.3.0 @a", "p 1.2.9 >1.2.0 ^1.3.0 @a"},
			kind: edit.ErrGraph,
			text: "cyclic substitutesFor chain detected involving"},
		{name: "permissive: in a circle", o: edit.AddOptions{SubstitutesFor: true, Permissive: true}, from: base,
			add:  []string{"p 1.3.0 >1.2.0 ^1.3.0+1 @a", "p 1.3.0+1 >1.2.0 ^1.3.0 @a", "p 1.2.9 >1.2.0 @a"},
			want: []string{"p = a", base[1] + ", 1.2.9 >1.2.0"}, kind: edit.ErrGraph,
			text: "cyclic substitutesFor chain detected"},
	} {
		t.Run(c.name, c.run)
	}
	twins := additionsOf(t, "p 1.1.0+1 >1.0.0 ^1.1.0 @a", "p 1.1.0+1 >1.0.0 ^1.1.0 @a %other")
	twins[1].Bundle.Name = "p.twin"
	if _, _, err := edit.Add(catalog(t, base...), twins, o); err == nil ||
		err.Error() !=
			"cannot determine latest substitution because of duplicate versions: p.twin and p.v1.1.0+1 both "+
				"substitute for p.v1.1.0" {
		t.Errorf("got %v", err)
	}
}

func TestSubstitutesThatWereThere(t *testing.T) {
	o := edit.AddOptions{SubstitutesFor: true}
	text := []string{"p = a", "p/a: 1.0.0, 1.1.0, 1.1.0+2 >1.0.0 !1.1.0, 1.2.0 >1.1.0+2"}
	known := map[string]string{"p.v1.1.0+2": "p.v1.1.0"}
	for _, c := range []struct {
		name, add, want string
	}{
		{"a later one", "p 1.1.0+3 >1.0.0 ^1.1.0 @a",
			"p/a: 1.0.0, 1.1.0, 1.1.0+2, 1.1.0+3 >1.0.0 !1.1.0 !1.1.0+2, 1.2.0 >1.1.0+3"},
		{"an earlier one", "p 1.1.0+1 >1.0.0 ^1.1.0 @a",
			"p/a: 1.0.0, 1.1.0, 1.1.0+1, 1.1.0+2 >1.0.0 !1.1.0 !1.1.0+1, 1.2.0 >1.1.0+2"},
		{"another bundle that replaces what was substituted", "p 1.3.0 >1.1.0 !1.2.0 @a",
			"p/a: 1.0.0, 1.1.0, 1.1.0+2 >1.0.0 !1.1.0, 1.2.0, 1.3.0 >1.1.0+2 !1.2.0"},
	} {
		for _, from := range []string{"metadata", "origins"} {
			t.Run(c.name+"/"+from, func(t *testing.T) {
				before := catalog(t, text...)
				o := o
				if from == "metadata" {
					withAnnotation(t, before, known)
				} else {
					o.Origins = edit.Origins{edit.Name{Package: "p", Bundle: "p.v1.1.0+2"}: {Replaces: "p.v1.0.0",
						Skips: []string{"p.v1.1.0"}, SubstitutesFor: "p.v1.1.0"}}
				}
				got, _, err := edit.Add(before, additionsOf(t, c.add), o)
				if err != nil || show(got) != "p = a\n"+c.want {
					t.Errorf("got %v\n%s", err, show(got))
				}
			})
		}
	}
}

func TestManySubstitutes(t *testing.T) {
	texts := []string{"p 1.0.0 @a"}
	for i := range 1001 {
		texts = append(texts, fmt.Sprintf("p 1.0.0+%d ^1.0.0 @a", i+1))
	}
	if _, _, err := edit.Add(&declcfg.Catalog{}, additionsOf(t, texts...),
		edit.AddOptions{SubstitutesFor: true}); err == nil ||
		err.Error() != "1001 bundles substitute for p.v1.0.0 (limit 1000)" {
		t.Errorf("got %.100v", err)
	}
	got, _, err := edit.Add(&declcfg.Catalog{}, additionsOf(t, texts[:301]...), edit.AddOptions{SubstitutesFor: true})
	if err != nil || len(got.Bundles) != 301 {
		t.Errorf("got %v", err)
	}
}
