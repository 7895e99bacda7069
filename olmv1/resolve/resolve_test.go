package resolve_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/olmv1/resolve"
)

// bundle returns the blob of a bundle of the package p. Properties follow its olm.package property.
func bundle(name, version string, properties ...string) string {
	more := ""
	for _, p := range properties {
		more += "," + p
	}
	return fmt.Sprintf(`{"schema":"olm.bundle","package":"p","name":%q,"image":"example.com/%s:v1","properties":[`+
		`{"type":"olm.package","value":{"packageName":"p","version":%q}}%s]}`, name, name, version, more)
}

// entries returns the blob of a channel of the package p.
func entries(channel string, entries ...string) string {
	return fmt.Sprintf(`{"schema":"olm.channel","package":"p","name":%q,"entries":[%s]}`, channel,
		strings.Join(entries, ","))
}

// deprecate returns the blob that marks bundles of the package p as deprecated.
func deprecate(bundles ...string) string {
	var list []string
	for _, b := range bundles {
		list = append(list, fmt.Sprintf(`{"reference":{"schema":"olm.bundle","name":%q},"message":"%s is old"}`, b, b))
	}
	return `{"schema":"olm.deprecations","package":"p","entries":[` + strings.Join(list, ",") + `]}`
}

// inOrder yields blobs in the order of their texts.
func inOrder(t *testing.T, blobs ...string) iter.Seq2[declcfg.Blob, error] {
	t.Helper()
	return func(yield func(declcfg.Blob, error) bool) {
		r := declcfg.NewReader(declcfg.LoadOptions{})
		for _, text := range blobs {
			r.Reset(strings.NewReader(text), "catalog.json")
			b, err := r.Next()
			if !yield(b, err) {
				return
			}
		}
	}
}

func TestResolve(t *testing.T) {
	installed := func(name, version string) *resolve.Installed {
		return &resolve.Installed{Name: name, Version: version}
	}
	chain := []string{bundle("p.v1", "1.0.0"), bundle("p.v2", "2.0.0"), bundle("p.v3", "3.0.0"),
		bundle("p.loose", "9.0.0"), bundle("p.pre", "3.1.0-rc.1"),
		entries("a", `{"name":"p.v1"}`, `{"name":"p.v2","replaces":"p.v1"}`, `{"name":"gone","replaces":"p.v2"}`),
		entries("b", `{"name":"p.v3","skips":["p.v1"]}`, `{"name":"p.pre","skipRange":">=2.0.0 <3.1.0-0"}`),
	}
	release := func(name, version, release string) string {
		return fmt.Sprintf(`{"schema":"olm.bundle","package":"p","name":%q,"image":"","properties":[{"type":`+
			`"olm.package","value":{"packageName":"p","version":%q,"release":%q}}]}`, name, version, release)
	}
	for name, c := range map[string]struct {
		blobs   []string
		request resolve.Request
		want    string // the bundle
		err     string
	}{
		"all":                     {chain, resolve.Request{}, "p.loose", ""},
		"a channel":               {chain, resolve.Request{Channels: []string{"a"}}, "p.v2", ""},
		"two channels":            {chain, resolve.Request{Channels: []string{"a", "b"}}, "p.pre", ""},
		"a range":                 {chain, resolve.Request{Version: ">=1 <9"}, "p.v3", ""},
		"a range of pre-releases": {chain, resolve.Request{Version: ">=1.0.0-0 <9"}, "p.pre", ""},
		"a pin":                   {chain, resolve.Request{Version: "2.0.0"}, "p.v2", ""},
		"nothing of the range": {chain, resolve.Request{Version: "7.x"}, "",
			`no bundles found for package "p" matching version "7.x"`},
		"no such channel": {chain, resolve.Request{Channels: []string{"x", "y"}}, "",
			`no bundles found for package "p" in channels [x y]`},
		"an invalid range": {chain, resolve.Request{Version: "a.b"}, "",
			`desired version range "a.b" is invalid: improper constraint: "a.b"`},
		"a long range": {chain, resolve.Request{Version: strings.Repeat("1", 65)}, "",
			`desired version range "` + strings.Repeat("1", 64) + `…" is invalid: may not be more than 64 bytes`},
		"an upgrade by any channel": {chain, resolve.Request{Installed: installed("p.v1", "1.0.0")}, "p.v3", ""},
		"an upgrade in a channel": {chain,
			resolve.Request{Installed: installed("p.v1", "1.0.0"), Channels: []string{"a"}}, "p.v2", ""},
		"an upgrade by range": {chain, resolve.Request{Installed: installed("p.v2", "2.0.0")}, "p.pre", ""},
		"no change":           {chain, resolve.Request{Installed: installed("p.loose", "9.0.0")}, "p.loose", ""},
		"self-certified downgrade": {chain,
			resolve.Request{Installed: installed("p.loose", "9.0.0"), Version: "1.x", SelfCertified: true}, "p.v1", ""},
		"unknown is installed": {chain, resolve.Request{Installed: installed("x", "0.1.0"), Version: "1.x"}, "",
			`error upgrading from currently installed version "0.1.0": no bundles found for package "p" matching ` +
				`version "1.x"`},
		"no version is installed": {chain, resolve.Request{Installed: installed("x", "x")}, "",
			`error walking catalogs: error finding upgrade edges: failed to get version and release of installed ` +
				`bundle: No Major.Minor.Patch elements found`},
		"no release is installed": {chain, resolve.Request{Installed: &resolve.Installed{Name: "x", Version: "1.0.0",
			Release: "a_b"}}, "",
			`error walking catalogs: error finding upgrade edges: failed to parse installed bundle version and ` +
				`release: error parsing release "a_b": invalid release "a_b": segment 0: Invalid character(s) found in ` +
				`prerelease "a_b"`},
		"no package": {nil, resolve.Request{}, "", `no bundles found for package "p"`},
		"deprecated last": {[]string{bundle("p.v1", "1.0.0"), bundle("p.v2", "2.0.0"), deprecate("p.v2")},
			resolve.Request{},
			"p.v1", ""},
		"all deprecated": {[]string{bundle("p.v1", "1.0.0"), bundle("p.v2", "2.0.0"), deprecate("p.v1", "p.v2")},
			resolve.Request{}, "p.v2", ""},
		"the last of one name": {[]string{bundle("p.v1", "1.0.0"), bundle("p.v1", "3.0.0"), bundle("p.v2", "2.0.0")},
			resolve.Request{Version: "<3"}, "p.v2", ""},
		"equal versions in the order of files": {[]string{bundle("p.b", "1.0.0"), bundle("p.a", "1.0.0")},
			resolve.Request{},
			"p.a", ""},
		"build metadata is a release": {[]string{bundle("p.a", "1.0.0+1"), bundle("p.b", "1.0.0+10"),
			bundle("p.c", "1.0.0")},
			resolve.Request{Version: "1.0.0"}, "p.b", ""},
		"build metadata that is no release": {[]string{bundle("p.a", "1.0.0+01"), bundle("p.b", "1.0.0")},
			resolve.Request{}, "p.a", ""},
		"an invalid version is last": {[]string{bundle("p.a", "v1"), bundle("p.b", "0.0.1")}, resolve.Request{}, "p.b",
			""},
		"an invalid version alone": {[]string{bundle("p.a", "v1")}, resolve.Request{}, "",
			`error getting resolved bundle version for bundle "p.a": No Major.Minor.Patch elements found`},
		"no version property": {[]string{`{"schema":"olm.bundle","package":"p","name":"p.a","image":""}`},
			resolve.Request{}, "",
			`error getting resolved bundle version for bundle "p.a": no package property found in bundle "p.a"`},
		"the head has a dependency": {[]string{bundle("p.v1", "1.0.0"), bundle("p.v2", "2.0.0",
			`{"type":"olm.constraint","value":{}}`, `{"type":"olm.gvk.required","value":{}}`)}, resolve.Request{}, "",
			`validating bundle "p.v2": bundle "p.v2" has a dependency declared via property "olm.constraint" which is ` +
				`currently not supported`},
		"a release field without the gate": {[]string{release("p.a", "1.0.0", "2"), release("p.b", "1.0.0", "")},
			resolve.Request{}, "p.a", ""},
		"a release field": {[]string{release("p.a", "1.0.0", "2"), release("p.b", "1.0.0", "10"),
			release("p.c", "1.0.0+99", "")},
			resolve.Request{Gates: resolve.Gates{BundleReleaseSupport: true}}, "p.b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.Package = "p"
			a, err := resolveIn(t.Context(), []resolve.Catalog{{Name: "c", Blobs: inOrder(t, c.blobs...)}},
				c.request)
			if err != nil && err.Error() != c.err || err == nil && c.err != "" {
				t.Fatalf("error %v, want %s", err, c.err)
			}
			if err == nil && (a.Bundle != c.want || a.Catalog != "c") {
				t.Errorf("got %+v, want %s", a, c.want)
			}
			if unchanged := c.request.Installed != nil && c.request.Installed.Name == c.want; err == nil &&
				a.Unchanged != unchanged {
				t.Errorf("unchanged %v", a.Unchanged)
			}
		})
	}
}

// resolveIn reads catalogs for a request and resolves it.
func resolveIn(ctx context.Context, catalogs []resolve.Catalog, q resolve.Request) (*resolve.Answer, error) {
	r, err := resolve.NewResolver(ctx, catalogs, q.Package, q.Gates)
	if err != nil {
		return nil, err
	}
	return r.Resolve(q)
}

func TestSeveralCatalogs(t *testing.T) {
	type catalog struct {
		name     string
		priority int32
		blobs    []string
	}
	old := []string{bundle("p.v1", "1.0.0")}
	current := []string{bundle("p.v2", "2.0.0")}
	bad := []string{bundle("p.v3", "3.0.0"), deprecate("p.v3")}
	for name, c := range map[string]struct {
		catalogs  []catalog
		want, err string
	}{
		"one has it":          {[]catalog{{"a", 0, nil}, {"b", 0, old}}, "p.v1", ""},
		"the higher priority": {[]catalog{{"a", 1, old}, {"b", 0, current}}, "p.v1", ""},
		"a negative priority": {[]catalog{{"a", -1, current}, {"b", 0, old}}, "p.v1", ""},
		"a tie": {[]catalog{{"b", 0, old}, {"a", 0, current}}, "",
			`found bundles for package "p" in multiple catalogs with the same priority [a b]`},
		"a tie names all": {[]catalog{{"c", -1, old}, {"b", 0, old}, {"a", 0, old}}, "",
			`found bundles for package "p" in multiple catalogs with the same priority [a b c]`},
		"deprecated before":          {[]catalog{{"a", 9, bad}, {"b", 0, old}}, "p.v1", ""},
		"deprecated after":           {[]catalog{{"a", 0, old}, {"b", 9, bad}}, "p.v1", ""},
		"two deprecated, one is not": {[]catalog{{"a", 0, bad}, {"b", 0, bad}, {"c", -9, old}}, "p.v1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var catalogs []resolve.Catalog
			for _, from := range c.catalogs {
				catalogs = append(catalogs, resolve.Catalog{Name: from.name, Priority: from.priority,
					Blobs: inOrder(t, from.blobs...)})
			}
			a, err := resolveIn(t.Context(), catalogs, resolve.Request{Package: "p"})
			if err != nil && err.Error() != c.err || err == nil && (c.err != "" || a.Bundle != c.want) {
				t.Errorf("got %+v, %v", a, err)
			}
		})
	}
	unreadable := func(yield func(declcfg.Blob, error) bool) { yield(nil, errors.New("not served")) }
	_, err := resolveIn(t.Context(), []resolve.Catalog{{Name: "a", Blobs: inOrder(t, old...)},
		{Name: "b", Blobs: unreadable}}, resolve.Request{Package: "p"})
	want := `error walking catalogs: error getting package "p" from catalog "b": not served`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestDeprecationsAreNamed(t *testing.T) {
	blobs := inOrder(t, bundle("p.v1", "1.0.0"), bundle("p.v2", "2.0.0"), entries("a", `{"name":"p.v1"}`,
		`{"name":"p.v2","replaces":"p.v1"}`), `{"schema":"olm.deprecations","package":"p","entries":[
		{"reference":{"schema":"olm.package"},"message":"P"},
		{"reference":{"schema":"olm.channel","name":"a"},"message":"A"},
		{"reference":{"schema":"olm.channel","name":"b"},"message":"B"},
		{"reference":{"schema":"olm.bundle","name":"p.v1"},"message":"V1"}]}`)
	a, err := resolveIn(t.Context(), []resolve.Catalog{{Blobs: blobs}}, resolve.Request{Package: "p",
		Channels: []string{"a"}, Installed: &resolve.Installed{Name: "p.v1", Version: "1.0.0"}})
	if err != nil {
		t.Fatal(err)
	}
	want := &resolve.Deprecations{Package: "P", Channels: []resolve.Deprecation{{Name: "a", Message: "A"}},
		Bundles: []resolve.Deprecation{{Name: "p.v1", Message: "V1"}}}
	if a.Bundle != "p.v2" || !reflect.DeepEqual(a.Deprecations, want) {
		t.Errorf("got %+v with %+v", a, a.Deprecations)
	}
}

func TestShadowed(t *testing.T) {
	c, err := declcfg.Collect(inOrder(t, bundle("p.c", "1.0.0+1"), bundle("p.b", "1.0.0+1"), bundle("p.a", "1.0.0"),
		bundle("p.d", "x"), bundle("p.e", "x")))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]resolve.Step{{{Bundle: "p.b", Version: "1.0.0", Release: "1"}, {Bundle: "p.c", Version: "1.0.0",
		Release: "1"}}}
	if got := (resolve.Gates{}).Shadowed(c.Bundles); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

// The upgrades of OLM v1 end where nothing changes, at an error, or where they return to a bundle.
func TestPath(t *testing.T) {
	for name, c := range map[string]struct {
		blobs []string
		from  resolve.Installed
		want  string
		err   bool
	}{
		"to the end": {[]string{bundle("p.v1", "1.0.0"), bundle("p.v2", "2.0.0+1"), bundle("p.v3", "2.0.0+2"),
			entries("a", `{"name":"p.v2","replaces":"p.v1"}`, `{"name":"p.v3","replaces":"p.v2"}`)},
			resolve.Installed{Name: "p.v1", Version: "1.0.0"}, "p.v2 p.v3", false},
		"a dependency": {[]string{bundle("p.v1", "1.0.0"), bundle("p.v2", "2.0.0"), bundle("p.v3", "3.0.0",
			`{"type":"olm.package.required","value":{}}`), entries("a", `{"name":"p.v2","replaces":"p.v1"}`,
			`{"name":"p.v3","replaces":"p.v2"}`)}, resolve.Installed{Name: "p.v1", Version: "1.0.0"}, "p.v2", true},
		"back again": {[]string{bundle("p.v1", "1.0.0"), bundle("p.v2", "2.0.0"), deprecate("p.v2"), entries("a",
			`{"name":"p.v2","replaces":"p.v0"}`, `{"name":"p.v1","replaces":"p.v2"}`,
			`{"name":"p.v2","replaces":"p.v1"}`)},
			resolve.Installed{Name: "p.v0", Version: "0.1.0"}, "p.v2 p.v1", false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := resolve.NewResolver(t.Context(), []resolve.Catalog{{Blobs: inOrder(t, c.blobs...)}}, "p",
				resolve.Gates{})
			if err != nil {
				t.Fatal(err)
			}
			path, err := r.Path(resolve.Request{Installed: &c.from})
			var names []string
			for _, a := range path {
				names = append(names, a.Bundle)
			}
			if got := strings.Join(names, " "); got != c.want || (err != nil) != c.err {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}
