package edit_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
)

func leaveOutCatalog(t *testing.T) *declcfg.Catalog {
	t.Helper()
	var b strings.Builder
	bundle := func(pkg, version string) {
		b.WriteString(`{"schema":"olm.bundle","package":"` + pkg + `","name":"` + pkg + `.v` + version +
			`","image":"q.io/a/` +
			pkg + `:` + version + `","properties":[{"type":"olm.package","value":{"packageName":"` + pkg +
			`","version":"` +
			version + `"}}]}`)
	}
	b.WriteString(`{"schema":"olm.package","name":"a","defaultChannel":"fast"}
{"schema":"olm.channel","package":"a","name":"stable","entries":[{"name":"a.v1.0.0"},
 {"name":"a.v1.1.0","replaces":"a.v1.0.0","skips":["a.v1.0.5"]},{"name":"a.v1.2.0","replaces":"a.v1.1.0"}]}
{"schema":"olm.channel","package":"a","name":"fast","entries":[{"name":"a.v1.2.0"}]}
{"schema":"olm.package","name":"b","defaultChannel":"stable"}
{"schema":"olm.channel","package":"b","name":"stable","entries":[{"name":"b.v1.0.0"}]}`)
	for _, v := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		bundle("a", v)
	}
	bundle("b", "1.0.0")
	c, err := declcfg.Read(context.Background(), strings.NewReader(b.String()), "catalog.json", declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLeaveOut(t *testing.T) {
	for name, test := range map[string]struct {
		gone []edit.Name
		want string // packages, channels with entries, bundles
	}{
		"from the middle": {[]edit.Name{{"a", "a.v1.1.0"}},
			"a(fast) fast:a.v1.2.0 stable:a.v1.0.0,a.v1.2.0>a.v1.0.0+a.v1.1.0 [a.v1.0.0 a.v1.2.0]; b(stable) " +
				"stable:b.v1.0.0 [b.v1.0.0]"},
		"the head, and the default channel with it": {[]edit.Name{{"a", "a.v1.2.0"}},
			"a(stable) stable:a.v1.0.0,a.v1.1.0>a.v1.0.0+a.v1.0.5 [a.v1.0.0 a.v1.1.0]; b(stable) stable:b.v1.0.0 " +
				"[b.v1.0.0]"},
		"a whole package": {[]edit.Name{{"b", "b.v1.0.0"}},
			"a(fast) fast:a.v1.2.0 stable:a.v1.0.0,a.v1.1.0>a.v1.0.0+a.v1.0.5,a.v1.2.0>a.v1.1.0 [a.v1.0.0 a.v1.1.0 " +
				"a.v1.2.0]"},
	} {
		t.Run(name, func(t *testing.T) {
			c := leaveOutCatalog(t)
			got, account, err := edit.LeaveOut(c, test.gone, "its image is missing")
			if err != nil {
				t.Fatal(err)
			}
			if err := got.Validate(); err != nil {
				t.Error(err)
			}
			if text := outline(got); text != test.want {
				t.Errorf("got  %s\nwant %s", text, test.want)
			}
			if p := account.Packages(); len(p) != 1 || p[0] != test.gone[0].Package {
				t.Errorf("the account has the packages %q", p)
			}
			if text := outline(c); text != outline(leaveOutCatalog(t)) {
				t.Errorf("the source was changed to %s", text)
			}
		})
	}
	if _, _, err := edit.LeaveOut(leaveOutCatalog(t), []edit.Name{{"a", "a.v9.0.0"}}, ""); !errors.Is(err,
		edit.ErrNotFound) {
		t.Errorf("a bundle that is not there: %v", err)
	}
}

// outline is a catalog in one line.
func outline(c *declcfg.Catalog) string {
	var all []string
	for _, p := range c.Packages {
		text := p.Name + "(" + p.DefaultChannel + ")"
		channels := map[string]string{}
		for _, h := range c.Channels {
			if h.Package != p.Name {
				continue
			}
			var entries []string
			for _, e := range h.Entries {
				one := e.Name
				if e.Replaces != "" {
					one += ">" + e.Replaces
				}
				for _, s := range e.Skips {
					one += "+" + s
				}
				entries = append(entries, one)
			}
			channels[h.Name] = strings.Join(entries, ",")
		}
		for _, name := range slices.Sorted(maps.Keys(channels)) {
			text += " " + name + ":" + channels[name]
		}
		var bundles []string
		for _, b := range c.Bundles {
			if b.Package == p.Name {
				bundles = append(bundles, b.Name)
			}
		}
		all = append(all, text+" ["+strings.Join(bundles, " ")+"]")
	}
	return strings.Join(all, "; ")
}
