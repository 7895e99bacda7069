package edittest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// Lines formats a catalog as sorted lines, one for each package, channel, entry, edge, property and image, without
// manifests if without is set.
func Lines(c *declcfg.Catalog, without bool) []string {
	var out []string
	line := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, p := range c.Packages {
		icon := "none"
		if p.Icon != nil {
			icon = fmt.Sprintf("%s %x", p.Icon.MediaType, sha256.Sum256(p.Icon.Data))
		}
		line("package %s default %s icon %s description %q", p.Name, p.DefaultChannel, icon, p.Description)
	}
	for _, ch := range c.Channels {
		line("channel %s/%s of %d", ch.Package, ch.Name, len(ch.Entries))
		for _, e := range ch.Entries {
			skips := slices.Clone(e.Skips)
			sort.Strings(skips)
			line("entry %s/%s/%s replaces %q skips %q range %q", ch.Package, ch.Name, e.Name, e.Replaces, skips,
				e.SkipRange)
		}
	}
	for _, b := range c.Bundles {
		line("bundle %s/%s image %s", b.Package, b.Name, b.Image)
		for _, p := range b.Properties {
			if p.Type != declcfg.PropertyBundleObject || !without {
				value, _ := sortKeys(p.Value)
				line("property %s/%s %s %s", b.Package, b.Name, p.Type, value)
			}
		}
		for _, r := range b.RelatedImages {
			line("image %s/%s %s %s", b.Package, b.Name, r.Name, r.Image)
		}
	}
	for _, d := range c.Deprecations {
		for _, e := range d.Entries {
			line("deprecated %s %v %q", d.Package, e.Reference, e.Message)
		}
	}
	sort.Strings(out)
	return out
}

func sortKeys(value json.RawMessage) (string, error) {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return string(value), err
	}
	sorted, err := json.Marshal(v)
	return string(sorted), err
}

// Differences returns the lines that are only in one of two lists.
func Differences(got, want []string) string {
	count := map[string]int{}
	for _, l := range got {
		count[l]++
	}
	for _, l := range want {
		count[l]--
	}
	var out []string
	for l, n := range count {
		if len(l) > 300 {
			l = l[:300] + "..."
		}
		switch {
		case n > 0:
			out = append(out, "  only ours: "+l)
		case n < 0:
			out = append(out, "  only opm's: "+l)
		}
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

// onlyHeads removes from both catalogs what opm's semver-skippatch mode gets wrong: everything but the heads.
func onlyHeads(theirs, ours *declcfg.Catalog) {
	for _, c := range []*declcfg.Catalog{theirs, ours} {
		g, err := c.Graph()
		if err != nil {
			panic(err)
		}
		var channels []declcfg.Channel
		for _, p := range g.Packages {
			for _, ch := range p.Channels {
				head, err := ch.Head()
				if err != nil {
					panic(err)
				}
				channels = append(channels,
					declcfg.Channel{Name: ch.Name, Package: p.Name, Entries: []declcfg.ChannelEntry{{Name: head.Name}}})
			}
		}
		c.Channels, c.Bundles = channels, nil
	}
}
