package resolve_test

import (
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/olmv1/resolve"
)

// No catalog and no request ends a resolution with a panic, and every path ends.
func FuzzResolve(f *testing.F) {
	f.Add("1.0.0", "2.0.0+1", "p.a", ">=1.0.0 <3.0.0", "1.x", "1.0.0-rc.1")
	f.Add("v1", "", "p.b", "||", "||", "")
	f.Add("1.0.0+01", "1.0.0+1", "p.a/../p.b", "<1 || !2", "~1, ^2 || =3", "1.0.0+1")
	f.Fuzz(func(t *testing.T, version1, version2, name, skipRange, constraint, installed string) {
		property := func(version string) []declcfg.Property {
			p, err := declcfg.NewProperty(declcfg.PropertyPackage, map[string]string{"version": version})
			if err != nil {
				t.Skip(err)
			}
			return []declcfg.Property{p}
		}
		c := &declcfg.Catalog{
			Bundles: []declcfg.Bundle{{Name: "p.a", Package: "p", Properties: property(version1)},
				{Name: name, Package: "p", Properties: property(version2)}},
			Channels: []declcfg.Channel{{Name: "c", Package: "p", Entries: []declcfg.ChannelEntry{
				{Name: "p.a", Replaces: name, SkipRange: skipRange},
				{Name: name, Replaces: "p.a", Skips: []string{"p.a"}}}}},
		}
		for _, gate := range []bool{false, true} {
			r, err := resolve.NewResolver(t.Context(), []resolve.Catalog{{Blobs: c.Blobs()}}, "p",
				resolve.Gates{BundleReleaseSupport: gate})
			if err != nil {
				t.Fatal(err)
			}
			q := resolve.Request{Version: constraint, Installed: &resolve.Installed{Name: name, Version: installed}}
			_, _ = r.Path(q)
			q.SelfCertified = true
			_, _ = r.Path(q)
			r.Shadowed()
			r.Bundles()
		}
		v, err := resolve.NewV0(t.Context(), resolve.Catalog{Blobs: c.Blobs()}, "p", "c")
		if err != nil {
			return
		}
		v.Path(name, installed)
		if _, err := v.Stuck(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
