package web

import (
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
)

// Pages of bundles with many small values are made with memory that does not grow with their number.
func TestPagesOfManyValues(t *testing.T) {
	numbered := func(n int, format string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, ",")
	}
	lists := strings.TrimSuffix(strings.Repeat(strings.Repeat("[", 90)+strings.Repeat("]", 90)+",", 11_000), ",")
	role := func(rules string) string {
		return `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r"},"rules":[` + rules + `]}`
	}
	for name, c := range map[string]struct{ object, at, says string }{
		"permissions": {`{"kind":"ClusterServiceVersion","spec":{"install":{"spec":{"clusterPermissions":[` +
			numbered(90_000, `{"serviceAccountName":"a%d","rules":[{"apiGroups":[""],"resources":["x"],"verbs":["get"]}]}`) +
			`]}}}}`, "/bundle?package=p&name=p.v1", "The permissions are too many to be shown."},
		"rules": {role(strings.TrimSuffix(strings.Repeat("{},", 700_000), ",")), "/bundle?package=p&name=p.v1",
			"The permissions are too many to be shown."},
		"lists": {`{"kind":"X","metadata":{"name":"x"},"data":[` + lists + `]}`, "/file?package=p&name=p.v1&file=1", "Not shown: "},
	} {
		t.Run(name, func(t *testing.T) {
			server := siteOf(t, contentOf(t, upgradesOf(t, release{name: "p.v0"}, release{name: "p.v1", objects: []string{c.object}})))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			body := get(t, server.URL+c.at).body
			runtime.ReadMemStats(&after)
			if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 250 {
				t.Errorf("it takes %d MB", mb)
			}
			if !strings.Contains(body, c.says) {
				t.Errorf("it does not say %q", c.says)
			}
		})
	}
}

// What bundles are and have, and the ranges of versions that they skip, is compared up to limits.
func TestChangesOfMuchMetadata(t *testing.T) {
	var images [2][]declcfg.RelatedImage
	for i := range 100_000 {
		for side := range images {
			images[side] = append(images[side], declcfg.RelatedImage{Image: fmt.Sprint(side, "/", i)})
		}
	}
	v := &view{}
	for side := range images {
		if n := len(v.has(&declcfg.Bundle{RelatedImages: images[side]})); n != maxHad {
			t.Errorf("%d things are compared", n)
		}
	}
	v.versions = map[string]declcfg.VersionRelease{"p.v0": {}}
	for n, want := range map[int]bool{10: true, 100_000: false} {
		e := declcfg.ChannelEntry{SkipRange: strings.Repeat("1.0.0 || ", n) + "0.0.0"}
		if v.follows(&e, "p.v0") != want {
			t.Errorf("a range with %d parts is not as wanted", n)
		}
	}
}

// A page of a package says so whether or not the page before was of the same package.
func TestPagesSayTheirPackage(t *testing.T) {
	files := written(t, contentOf(t, sampleFS()), StaticOptions{Jobs: 1})
	n := 0
	for name, text := range files {
		if strings.HasPrefix(name, "bundle/alpha/") || strings.HasPrefix(name, "channel/alpha/") {
			if n++; !strings.Contains(text, `title="New versions of `) {
				t.Errorf("%s does not name the feed of its package", name)
			}
		}
	}
	if n < 3 {
		t.Errorf("%d pages", n)
	}
}

// One name that is too long does not take the feed and the sitemap from the others.
func TestLongNamesInFeeds(t *testing.T) {
	long := strings.Repeat("é", 1_500_000)
	csv := base64.StdEncoding.EncodeToString([]byte(
		`{"kind":"ClusterServiceVersion","metadata":{"annotations":{"createdAt":"2024-01-02"}}}`))
	var text strings.Builder
	for _, pkg := range []string{"p", long} {
		fmt.Fprintf(&text, `{"schema":"olm.package","name":%q,"defaultChannel":"c"}
{"schema":"olm.channel","package":%q,"name":"c","entries":[{"name":"b"}]}
{"schema":"olm.bundle","package":%q,"name":"b","properties":[{"type":"olm.bundle.object","value":{"data":%q}}]}
`, pkg, pkg, pkg, csv)
	}
	server := siteOf(t, contentOf(t, fstest.MapFS{"c.json": {Data: []byte(text.String())}}))
	for _, at := range []string{"/feed.atom", "/sitemap.txt"} {
		a := get(t, server.URL+at)
		if p := strings.ReplaceAll(a.body, "&amp;", "&"); a.code != 200 || len(p) > 10_000 || !strings.Contains(p, "bundle?package=p&") {
			t.Errorf("%s: %d, %d bytes", at, a.code, len(p))
		}
	}
}
