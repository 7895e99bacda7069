package resolve_test

import (
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/olmv1/resolve"
)

func TestV0(t *testing.T) {
	bundles := []string{bundle("p.v1", "1.0.0"), bundle("p.v2", "2.0.0"), bundle("p.v3", "3.0.0"),
		bundle("p.v4", "4.0.0"), `{"schema":"olm.package","name":"p","defaultChannel":"a"}`}
	chain := []string{`{"name":"p.v1"}`, `{"name":"p.v2","replaces":"p.v1"}`, `{"name":"p.v3","replaces":"p.v2"}`}
	for name, c := range map[string]struct {
		entries       []string
		bundle        string
		version       string // of the bundle
		path, stuck   string
		head, err     string
		doesNotArrive bool
	}{
		"step by step":       {chain, "p.v1", "1.0.0", "p.v2 p.v3", "", "p.v3", "", false},
		"from the head":      {chain, "p.v3", "3.0.0", "", "", "p.v3", "", false},
		"not of the channel": {chain, "p.v4", "4.0.0", "", "", "p.v3", "", true},
		"skips": {append(chain[:2:2], `{"name":"p.v3","replaces":"p.v1","skips":["p.v2"]}`), "p.v2", "2.0.0", "p.v3",
			"",
			"p.v3", "", false},
		"a skipped entry is never installed": {append(chain[:2:2],
			`{"name":"p.v3","replaces":"p.v2","skips":["p.v2"]}`),
			"p.v1", "1.0.0", "", "p.v1", "p.v3", "", true},
		"skipRange takes the newest": {append(chain[:2:2],
			`{"name":"p.v3","replaces":"p.v2","skipRange":">=1.0.0 <3.0.0"}`), "p.v1", "1.0.0", "p.v3", "", "p.v3", "",
			false},
		"skipRange of an unknown bundle": {append(chain[:2:2],
			`{"name":"p.v3","replaces":"p.v2","skipRange":">=0.1.0 <3.0.0"}`), "p.v0", "0.2.0", "p.v3", "", "p.v3", "",
			false},
		"an unparsable skipRange": {append(chain[:2:2], `{"name":"p.v3","replaces":"p.v2","skipRange":"new"}`), "p.v1",
			"1.0.0", "p.v2 p.v3", "", "p.v3", "", false},
		"entries without bundles": {append(chain[:2:2], `{"name":"p.v9","replaces":"p.v2"}`), "p.v1", "1.0.0", "p.v2",
			"p.v9", "p.v2", "", false},
		"two heads": {append(chain[:2:2], `{"name":"p.v3","replaces":"p.v1"}`), "", "", "", "", "",
			`channel "a" of package "p": a unique replacement chain within a channel is required to determine the ` +
				`relative order between channel entries, but it has several heads: p.v2, p.v3`, false},
		"a cycle": {[]string{`{"name":"p.v1","replaces":"p.v2"}`, `{"name":"p.v2","replaces":"p.v1"}`,
			`{"name":"p.v3","replaces":"p.v2"}`}, "", "", "", "", "",
			`channel "a" of package "p": a cycle exists in the chain of replacement beginning with "p.v3"`, false},
		"no head": {[]string{`{"name":"p.v1","replaces":"p.v2"}`, `{"name":"p.v2","replaces":"p.v1"}`}, "", "", "", "",
			"",
			`channel "a" of package "p": no channel heads (entries not replaced by another entry) found`, false},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := resolve.NewV0(t.Context(), resolve.Catalog{Blobs: inOrder(t, append(bundles,
				entries("a", c.entries...))...)}, "p", "")
			if err != nil && err.Error() != c.err || err == nil && c.err != "" {
				t.Fatalf("error %v, want %s", err, c.err)
			}
			if err != nil {
				return
			}
			path := v.Path(c.bundle, c.version)
			if got := names(path); got != c.path || v.Reaches(c.bundle, path) == c.doesNotArrive {
				t.Errorf("path %s, want %s", got, c.path)
			}
			if head, _ := v.Head(); head.Bundle != c.head {
				t.Errorf("head %s, want %s", head.Bundle, c.head)
			}
			stuck, err := v.Stuck(t.Context())
			if err != nil || names(stuck) != c.stuck {
				t.Errorf("stuck %s, %v, want %s", names(stuck), err, c.stuck)
			}
		})
	}
	for _, c := range []struct{ pkg, channel, err string }{
		{"q", "", `package "q": the catalog has nothing of it`},
		{"p", "x", `channel "x" of package "p": the catalog has no such channel`},
	} {
		_, err := resolve.NewV0(t.Context(), resolve.Catalog{Blobs: inOrder(t, bundles...)}, c.pkg, c.channel)
		if err == nil || err.Error() != c.err {
			t.Errorf("error %v, want %s", err, c.err)
		}
	}
}

// OLM v0 never installs a bundle with the property olm.deprecated, not even as a step.
func TestV0Prohibited(t *testing.T) {
	v, err := resolve.NewV0(t.Context(), resolve.Catalog{Blobs: inOrder(t, bundle("p.v1", "1.0.0"),
		bundle("p.v2", "2.0.0", `{"type":"olm.deprecated","value":{}}`), bundle("p.v3", "3.0.0"),
		entries("a", `{"name":"p.v1"}`, `{"name":"p.v2","replaces":"p.v1"}`, `{"name":"p.v3","replaces":"p.v2"}`))},
		"p", "a")
	if err != nil {
		t.Fatal(err)
	}
	if path := v.Path("p.v1", "1.0.0"); len(path) > 0 {
		t.Errorf("path %s", names(path))
	}
	if stuck, _ := v.Stuck(t.Context()); names(stuck) != "p.v1" {
		t.Errorf("stuck %s", names(stuck))
	}
}

// The paths that are walked and the entries without a way agree for a real catalog.
func TestV0OfRealCatalog(t *testing.T) {
	channels := 0
	for pkg, c := range recordedCatalog(t) {
		for i := range c.Channels {
			v, err := resolve.NewV0(t.Context(), resolve.Catalog{Blobs: c.Blobs()}, pkg, c.Channels[i].Name)
			if err != nil {
				t.Error(err)
				continue
			}
			channels++
			stuck, err := v.Stuck(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			without := " " + names(stuck) + " "
			for _, e := range c.Channels[i].Entries {
				installed, ok := v.Installed(e.Name)
				if !ok {
					t.Errorf("%s: no bundle", e.Name)
					continue
				}
				if v.Reaches(e.Name, v.Path(e.Name, installed.Version)) == strings.Contains(without, " "+e.Name+" ") {
					t.Errorf("%s in channel %s: the path and the entries without a way differ", e.Name, v.Channel)
				}
			}
		}
	}
	if channels < 50 {
		t.Errorf("only %d channels were walked", channels)
	}
}

func names(steps []resolve.Step) string {
	var names []string
	for _, s := range steps {
		names = append(names, s.Bundle)
	}
	return strings.Join(names, " ")
}
