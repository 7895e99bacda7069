package list

import (
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

// imageCatalog has two packages that share an image, a bundle without an image, and a bundle in two channels.
func imageCatalog(t *testing.T) *Listing {
	t.Helper()
	c := &declcfg.Catalog{}
	bundle := func(pkg, name, version, image string, related ...string) {
		b := declcfg.Bundle{Package: pkg, Name: name, Image: image, Properties: []declcfg.Property{
			{Type: declcfg.PropertyPackage, Value: fmt.Appendf(nil, `{"packageName":%q,"version":%q}`, pkg, version)}}}
		if image == "" {
			b.HasObjects = true
			b.Properties = append(b.Properties, declcfg.NewBundleObject([]byte(`{"kind":"ConfigMap"}`)))
		}
		for _, r := range related {
			b.RelatedImages = append(b.RelatedImages, declcfg.RelatedImage{Name: "n", Image: r})
		}
		c.Bundles = append(c.Bundles, b)
	}
	for _, p := range []string{"a", "b"} {
		c.Packages = append(c.Packages, declcfg.Package{Name: p, DefaultChannel: "stable"})
	}
	bundle("a", "a.v1", "1.0.0", "e.x/a:1", "e.x/shared:1", "e.x/a:1")
	bundle("a", "a.v2", "2.0.0", "e.x/a:2", "e.x/shared:1", "")
	bundle("b", "b.v1", "1.0.0", "", "e.x/shared:1", "e.x/a:1")
	c.Channels = []declcfg.Channel{
		{Package: "a", Name: "stable",
			Entries: []declcfg.ChannelEntry{{Name: "a.v1"}, {Name: "a.v2", Replaces: "a.v1"}}},
		{Package: "a", Name: "old", Entries: []declcfg.ChannelEntry{{Name: "a.v1"}}},
		{Package: "b", Name: "stable", Entries: []declcfg.ChannelEntry{{Name: "b.v1"}}},
	}
	l, err := Load(c.Blobs())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestImages(t *testing.T) {
	l := imageCatalog(t)
	for _, c := range []struct {
		name string
		o    ImageOptions
		want string // rows, or the error
	}{
		{"all", ImageOptions{}, "e.x/a:1 [bundle related] [a b] [{a old} {a stable} {b stable}] [{a a.v1} {b b.v1}]\n" +
			"e.x/a:2 [bundle] [a] [{a stable}] [{a a.v2}]\n" +
			"e.x/shared:1 [related] [a b] [{a old} {a stable} {b stable}] [{a a.v1} {a a.v2} {b b.v1}]\n"},
		{"package", ImageOptions{Package: "b"},
			"e.x/a:1 [related] [b] [{b stable}] [{b b.v1}]\ne.x/shared:1 [related] [b] [{b stable}] [{b b.v1}]\n"},
		{"channel", ImageOptions{Channels: []string{"old"}},
			"e.x/a:1 [bundle] [a] [{a old}] [{a a.v1}]\ne.x/shared:1 [related] [a] [{a old}] [{a a.v1}]\n"},
		{"heads", ImageOptions{Package: "a", Channels: []string{"stable"}, HeadsOnly: true},
			"e.x/a:2 [bundle] [a] [{a stable}] [{a a.v2}]\ne.x/shared:1 [related] [a] [{a stable}] [{a a.v2}]\n"},
		{"no package", ImageOptions{Package: "c"}, `package "c" not found`},
		{"no channel", ImageOptions{Channels: []string{"stable", "new"}}, `channel "new" not found`},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows, err := l.Images(c.o)
			var got strings.Builder
			for _, r := range rows {
				fmt.Fprintf(&got, "%s %v %v %v %v\n", r.Image, r.Kinds, r.Packages, r.Channels, r.Bundles)
			}
			if err != nil {
				got.WriteString(err.Error())
			}
			if got.String() != c.want {
				t.Errorf("got\n%s\nwant\n%s", got.String(), c.want)
			}
		})
	}
}

func TestGroupImages(t *testing.T) {
	rows, err := imageCatalog(t).Images(ImageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for by, want := range map[string]string{
		ByPackage: "PACKAGE  IMAGE\na        e.x/a:1\na        e.x/a:2\na        e.x/shared:1\nb        e.x/a:1\nb        e.x/shared:1\n",
		ByChannel: "PACKAGE  CHANNEL  IMAGE\na        old      e.x/a:1\na        old      e.x/shared:1\na        stable   e.x/a:1\na        stable   e.x/a:2\n" +
			"a        stable   e.x/shared:1\nb        stable   e.x/a:1\nb        stable   e.x/shared:1\n",
		ByBundle: "PACKAGE  BUNDLE  IMAGE\na        a.v1    e.x/a:1\na        a.v1    e.x/shared:1\na        a.v2    e.x/a:2\na        a.v2    e.x/shared:1\n" +
			"b        b.v1    e.x/a:1\nb        b.v1    e.x/shared:1\n",
	} {
		groups, err := GroupImages(rows, by)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, ImageTable(groups, by)); got != want {
			t.Errorf("by %s: got\n%s\nwant\n%s", by, got, want)
		}
	}
	if _, err := GroupImages(rows, "size"); err == nil {
		t.Error("grouped by size")
	}
}
