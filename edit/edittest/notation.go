package edittest

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/versions"
)

func bundleName(pkg, version string) string {
	if strings.Contains(version, ".v") {
		return version // the full name, for bundles of other packages
	}
	return pkg + ".v" + version
}

// ImageName returns the image of a bundle.
func ImageName(pkg, version string) string {
	return "img.example/" + pkg + ":v" + strings.ReplaceAll(version, "+", "_")
}

// NewBundle returns a bundle of a version.
func NewBundle(t testing.TB, pkg, version string) *declcfg.Bundle {
	t.Helper()
	return NewBundleAs(t, pkg, version, bundleName(pkg, version), ImageName(pkg, version))
}

// NewBundleAs returns a bundle with the given name and image.
func NewBundleAs(t testing.TB, pkg, version, name, image string) *declcfg.Bundle {
	t.Helper()
	p, err := declcfg.NewProperty(declcfg.PropertyPackage, property.Package{PackageName: pkg, Version: version})
	if err != nil {
		t.Fatal(err)
	}
	return &declcfg.Bundle{Name: name, Package: pkg, Image: image, Properties: []declcfg.Property{p}}
}

// entryOf parses "VERSION >REPLACES !SKIPS ~SKIPRANGE".
func entryOf(pkg, text string) (declcfg.ChannelEntry, string) {
	fields := strings.Fields(text)
	e := declcfg.ChannelEntry{Name: bundleName(pkg, fields[0])}
	for _, f := range fields[1:] {
		switch f[0] {
		case '>':
			e.Replaces = bundleName(pkg, f[1:])
		case '!':
			e.Skips = append(e.Skips, bundleName(pkg, f[1:]))
		case '~':
			e.SkipRange = f[1:]
		}
	}
	return e, fields[0]
}

// Catalog parses a catalog in the notation of the package comment.
func Catalog(t testing.TB, text ...string) *declcfg.Catalog {
	t.Helper()
	c := &declcfg.Catalog{}
	there := map[string]bool{}
	for _, line := range text {
		if pkg, rest, ok := strings.Cut(line, " = "); ok {
			c.Packages = append(c.Packages, declcfg.Package{Name: pkg, DefaultChannel: rest})
			continue
		}
		if pkg, rest, ok := strings.Cut(line, " ? "); ok {
			what, message, _ := strings.Cut(rest, " ")
			ref := declcfg.Reference{Schema: declcfg.SchemaChannel, Name: what}
			if what[0] >= '0' && what[0] <= '9' {
				ref = declcfg.Reference{Schema: declcfg.SchemaBundle, Name: bundleName(pkg, what)}
			}
			e := declcfg.DeprecationEntry{Reference: ref, Message: message}
			i := slices.IndexFunc(c.Deprecations, func(d declcfg.Deprecations) bool { return d.Package == pkg })
			if i < 0 {
				c.Deprecations = append(c.Deprecations, declcfg.Deprecations{Package: pkg})
				i = len(c.Deprecations) - 1
			}
			c.Deprecations[i].Entries = append(c.Deprecations[i].Entries, e)
			continue
		}
		name, rest, ok := strings.Cut(line, ": ")
		pkg, channel, ok2 := strings.Cut(name, "/")
		if !ok || !ok2 {
			t.Fatalf("%q is no line of a catalog", line)
		}
		ch := declcfg.Channel{Name: channel, Package: pkg}
		for text := range strings.SplitSeq(rest, ",") {
			e, version := entryOf(pkg, text)
			ch.Entries = append(ch.Entries, e)
			if !there[pkg+"/"+e.Name] {
				there[pkg+"/"+e.Name] = true
				c.Bundles = append(c.Bundles, *NewBundle(t, pkg, version))
			}
		}
		c.Channels = append(c.Channels, ch)
	}
	return c
}

// Show formats a catalog in that notation, sorted, entries by version.
func Show(c *declcfg.Catalog) string {
	parsed := map[string]semver.Version{}
	for i := range c.Bundles {
		if p, err := c.Bundles[i].PackageProperty(); err == nil {
			parsed[c.Bundles[i].Package+"/"+c.Bundles[i].Name], _ = versions.Parse(p.Version)
		}
	}
	var out []string
	for _, p := range c.Packages {
		out = append(out, p.Name+" = "+p.DefaultChannel)
	}
	used := map[string]bool{}
	for _, ch := range c.Channels {
		short := func(name string) string { return strings.TrimPrefix(name, ch.Package+".v") }
		entries := slices.Clone(ch.Entries)
		slices.SortFunc(entries, func(a, b declcfg.ChannelEntry) int {
			return cmp.Or(parsed[ch.Package+"/"+a.Name].Compare(parsed[ch.Package+"/"+b.Name]),
				cmp.Compare(a.Name, b.Name))
		})
		var texts []string
		for _, e := range entries {
			used[ch.Package+"/"+e.Name] = true
			text := short(e.Name)
			if e.Replaces != "" {
				text += " >" + short(e.Replaces)
			}
			skips := slices.Clone(e.Skips)
			slices.Sort(skips)
			for _, s := range skips {
				text += " !" + short(s)
			}
			if e.SkipRange != "" {
				text += " ~" + e.SkipRange
			}
			texts = append(texts, text)
		}
		out = append(out, ch.Package+"/"+ch.Name+": "+strings.Join(texts, ", "))
	}
	for _, b := range c.Bundles {
		if !used[b.Package+"/"+b.Name] {
			out = append(out, "stranded: "+b.Name)
		}
	}
	for _, d := range c.Deprecations {
		for _, e := range d.Entries {
			out = append(out, d.Package+" ? "+strings.TrimPrefix(e.Reference.Name, d.Package+".v")+" "+e.Message)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// Addition parses "PACKAGE VERSION >REPLACES !SKIPS ~SKIPRANGE @CHANNEL,CHANNEL =DEFAULT ^SUBSTITUTESFOR %IMAGE".
func Addition(t testing.TB, text string) edit.Addition {
	t.Helper()
	pkg, rest, _ := strings.Cut(text, " ")
	e, version := entryOf(pkg, rest)
	a := edit.Addition{Bundle: NewBundle(t, pkg, version), SkipRange: e.SkipRange}
	a.Replaces, a.Skips = e.Replaces, e.Skips
	for _, f := range strings.Fields(rest)[1:] {
		switch f[0] {
		case '@':
			a.Channels = strings.Split(f[1:], ",")
		case '=':
			a.DefaultChannel = f[1:]
		case '^':
			a.SubstitutesFor = bundleName(pkg, f[1:])
		case '%':
			a.Bundle.Image = f[1:]
		}
	}
	return a
}

// Additions parses several additions.
func Additions(t testing.TB, text ...string) []edit.Addition {
	t.Helper()
	var out []edit.Addition
	for _, s := range text {
		out = append(out, Addition(t, s))
	}
	return out
}
