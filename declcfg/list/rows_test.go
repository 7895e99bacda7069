package list

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

// versions is a package whose names sort otherwise than its versions, with a pre-release, a release number, an entry
// without a bundle and a deprecated bundle.
func versions(t *testing.T) *Listing {
	t.Helper()
	var b strings.Builder
	b.WriteString(`{"schema":"olm.package","name":"a","defaultChannel":"stable"}
{"schema":"olm.channel","package":"a","name":"fast","entries":[{"name":"a.v2.0.0"}]}
{"schema":"olm.channel","package":"a","name":"stable","entries":[{"name":"a.v1.2.0","skips":["a.v1.1.0"]},
 {"name":"a.v1.10.0","replaces":"a.v1.9.0"},{"name":"a.v1.9.0","replaces":"a.v1.2.0"},
 {"name":"a.v2.0.0","replaces":"a.v1.10.0","skipRange":"<1.0.0"},{"name":"a.v1.10.0-rc.1","replaces":"gone"}]}
{"schema":"olm.deprecations","package":"a","entries":[
 {"reference":{"schema":"olm.bundle","name":"a.v1.9.0"},"message":"faulty"},
 {"reference":{"schema":"olm.channel","name":"fast"},"message":"slow"},
 {"reference":{"schema":"olm.package"},"message":"all"}]}`)
	for _, v := range []string{"1.10.0", "1.2.0", "1.9.0", "2.0.0", "1.10.0-rc.1"} {
		image := "r.example/a@sha256:" + strings.Repeat("0123456789abcdef", 4)
		if v == "2.0.0" {
			image = "r.example/a:v2"
		}
		b.WriteString(`{"schema":"olm.bundle","package":"a","name":"a.v` + v + `","image":"` + image +
			`","properties":[{"type":"olm.package","value":{"packageName":"a","version":"` + v + `"}}]}`)
	}
	text := strings.Replace(b.String(), `,"replaces":"a.v1.10.0","skipRange"`,
		`,"replaces":"a.v1.10.0","skips":["a.v1.10.0-rc.1"],"skipRange"`, 1)
	c, err := declcfg.Read(context.Background(), strings.NewReader(text), "catalog.json", declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Load(c.Blobs())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestBundlesSortedByVersion(t *testing.T) {
	rows, err := versions(t).Bundles("")
	if err != nil {
		t.Fatal(err)
	}
	order := func() (names []string) {
		for _, r := range rows {
			names = append(names, r.Channel+"/"+r.Name)
		}
		return names
	}
	if got, want := order(), []string{"fast/a.v2.0.0", "stable/a.v1.10.0", "stable/a.v1.10.0-rc.1", "stable/a.v1.2.0",
		"stable/a.v1.9.0", "stable/a.v2.0.0"}; !slices.Equal(got, want) {
		t.Errorf("by name: %q", got)
	}
	rows.SortByVersion()
	if got, want := order(), []string{"fast/a.v2.0.0", "stable/a.v1.2.0", "stable/a.v1.9.0", "stable/a.v1.10.0-rc.1",
		"stable/a.v1.10.0", "stable/a.v2.0.0"}; !slices.Equal(got, want) {
		t.Errorf("by version: %q", got)
	}
	table := text(t, rows.Table())
	for _, want := range []string{"VERSION", "DEPRECATED", "1.10.0-rc.1", "r.example/a:v2\n",
		"r.example/a@sha256:" + strings.Repeat("0123456789abcdef", 4) + "\n"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	if strings.Count(table, " yes ") != 1 {
		t.Errorf("deprecations are wrong in\n%s", table)
	}
	data, err := json.Marshal(rows[2])
	if err != nil || !strings.Contains(string(data), strings.Repeat("0123456789abcdef", 4)) ||
		!strings.Contains(string(data), `"deprecation":"faulty"`) || !strings.Contains(string(data),
		`"version":"1.9.0"`) {
		t.Errorf("%s %v", data, err)
	}
	channels, err := versions(t).Channels("a")
	if err != nil || channels[0].Deprecation == nil || *channels[0].Deprecation != "slow" ||
		channels[1].Deprecation != nil {
		t.Errorf("channels: %+v %v", channels, err)
	}
	if p := versions(t).Packages(); p[0].Deprecation == nil || *p[0].Deprecation != "all" {
		t.Errorf("packages: %+v", p)
	}
}

func TestInChannels(t *testing.T) {
	rows, err := versions(t).Bundles("a")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		channels []string
		want     int
		missing  string
	}{
		"all":                         {nil, 6, ""},
		"one":                         {[]string{"fast"}, 1, ""},
		"two":                         {[]string{"stable", "fast"}, 6, ""},
		"one that is not there":       {[]string{"slow"}, 0, "slow"},
		"one of two that is not here": {[]string{"fast", "slow"}, 0, "slow"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := rows.InChannels(c.channels)
			var missing *declcfg.NotFoundError
			switch {
			case c.missing != "" && (!errors.As(err, &missing) || missing.Name != c.missing ||
				!slices.Equal(missing.Known, []string{"fast", "stable"})):
				t.Errorf("got %v", err)
			case c.missing == "" && (err != nil || len(got) != c.want):
				t.Errorf("%d rows, %v", len(got), err)
			}
		})
	}
}
