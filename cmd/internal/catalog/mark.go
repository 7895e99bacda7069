package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/hint"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
)

// promote adds the named bundles, as in [bundleNames], to channels.
func promote(bundles, channels []string, asDefault bool) (change.Edit, error) {
	if asDefault && len(channels) > 1 {
		return change.Edit{}, cmdline.Usagef("--default needs one --channel: a package has one default channel")
	}
	return change.Edit{Whole: None(),
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			names, err := bundleNames(s.Catalog, bundles)
			if err != nil {
				return nil, nil, err
			}
			bare, err := bareChannels(names, channels)
			if err != nil {
				return nil, nil, err
			}
			var promotions []edit.Promotion
			for _, i := range edit.InChannels(names, bare) {
				promotions = append(promotions, edit.Promotion{Package: i.Package, Bundle: i.Bundle, Channel: i.Channel,
					Default: asDefault})
			}
			return hint.NearPackage(s.Catalog)(edit.Promote(s.Catalog, promotions))
		}}, nil
}

// bareChannels returns the names of channels, of which some are written as PACKAGE/CHANNEL. The package must be that of
// the bundles.
func bareChannels(bundles []edit.Name, channels []string) ([]string, error) {
	bare := slices.Clone(channels)
	for i, text := range channels {
		pkg, channel, ok := strings.Cut(text, "/")
		if !ok {
			continue
		}
		for _, b := range bundles {
			if b.Package != pkg {
				return nil, cmdline.Usagef("--channel %s: the bundle %s is in the package %s", text, b.Bundle, b.Package)
			}
		}
		bare[i] = channel
	}
	return bare, nil
}

// marks are the items to deprecate: bundles as in [bundleNames], channels as CHANNEL or PACKAGE/CHANNEL, packages.
type marks struct {
	bundles, channels, packages []string
	message                     string // empty to remove deprecations
	truncate                    bool   // cut off the channel below the bundles
}

// deprecate marks the items in olm.deprecations, and truncates the graph at bundles if requested.
func (o *EditOptions) deprecate(p *option.Session, m marks) (change.Edit, error) {
	with := o.truncation(p)
	return change.Edit{Whole: None(),
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			list, err := m.others(s.Catalog)
			if err != nil {
				return nil, nil, err
			}
			names, err := bundleNames(s.Catalog, m.bundles)
			if err != nil {
				return nil, nil, err
			}
			catalog, first := s.Catalog, (*edit.Account)(nil)
			if m.truncate {
				var full []string
				for _, n := range names {
					full = append(full, n.Package+"/"+n.Bundle)
				}
				if catalog, first, err = edit.DeprecateTruncate(catalog, full, with); err != nil {
					return nil, nil, err
				}
			}
			all := slices.Clone(list)
			there := namesOf(catalog)
			for _, n := range names {
				// A truncation writes its own message, and may have removed the bundle.
				if !m.truncate || m.message != "" && there[n] {
					all = append(all, edit.Mark{Package: n.Package, Bundle: n.Bundle, Message: m.message})
				}
			}
			catalog, second, err := hint.NearPackage(catalog)(edit.MarkDeprecated(catalog, all))
			if err != nil {
				return nil, nil, err
			}
			return catalog, joinAccounts(first, second), nil
		}}, nil
}

// others returns the marks of channels and packages.
func (m *marks) others(c *declcfg.Catalog) ([]edit.Mark, error) {
	var out []edit.Mark
	for _, text := range m.channels {
		pkg, channel, ok := strings.Cut(text, "/")
		if !ok {
			packages := packagesWith(c, text)
			if len(packages) != 1 {
				return nil, cmdline.Usagef("--channel %s: %s: write PACKAGE/CHANNEL", text,
					map[bool]string{true: "no package has it", false: "several packages have it"}[len(packages) == 0])
			}
			pkg, channel = packages[0], text
		}
		if pkg == "" || channel == "" {
			return nil, cmdline.Usagef("invalid --channel value %q, expected PACKAGE/CHANNEL", text)
		}
		out = append(out, edit.Mark{Package: pkg, Channel: channel, Message: m.message})
	}
	for _, pkg := range m.packages {
		out = append(out, edit.Mark{Package: pkg, Message: m.message})
	}
	return out, nil
}

// packagesWith returns the packages that have a channel of a name.
func packagesWith(c *declcfg.Catalog, channel string) []string {
	var packages []string
	for i := range c.Channels {
		if ch := &c.Channels[i]; ch.Name == channel && !slices.Contains(packages, ch.Package) {
			packages = append(packages, ch.Package)
		}
	}
	return packages
}

// bundleNames finds bundles in a catalog by name, PACKAGE/NAME, or image. All missing and ambiguous ones are reported
// together.
func bundleNames(c *declcfg.Catalog, bundles []string) ([]edit.Name, error) {
	found := map[string][]edit.Name{}
	wanted := map[string]bool{}
	var known []string
	for _, b := range bundles {
		wanted[b] = true
	}
	for i := range c.Bundles {
		b := &c.Bundles[i]
		n := edit.Name{Package: b.Package, Bundle: b.Name}
		known = append(known, b.Name)
		for _, key := range []string{b.Name, b.Package + "/" + b.Name, b.Image} {
			if wanted[key] && key != "" && !slices.Contains(found[key], n) {
				found[key] = append(found[key], n)
			}
		}
	}
	var names []edit.Name
	var problems []edit.Problem
	for _, b := range bundles {
		switch n := found[b]; {
		case len(n) == 1:
			names = append(names, n[0])
		case len(n) > 1:
			problems = append(problems, edit.Problem{Bundle: b, Kind: edit.ErrInvalid,
				Message: fmt.Sprintf("%q is a bundle of several packages: name one of them as %s/%s", b, n[0].Package,
					n[0].Bundle)})
		default:
			problems = append(problems,
				edit.Problem{Bundle: b, Kind: edit.ErrNotFound,
					Message: fmt.Sprintf("bundle %q is not in the catalog", b)})
		}
	}
	if len(problems) > 0 {
		return nil, hint.NearError("bundle", known, edit.ErrorOf(problems))
	}
	return names, nil
}

func namesOf(c *declcfg.Catalog) map[edit.Name]bool {
	out := map[edit.Name]bool{}
	for i := range c.Bundles {
		out[edit.Name{Package: c.Bundles[i].Package, Bundle: c.Bundles[i].Name}] = true
	}
	return out
}

// joinAccounts joins the accounts of two consecutive edits, as if they were one; the first may be nil.
func joinAccounts(first, second *edit.Account) *edit.Account {
	if first == nil {
		return second
	}
	out := &edit.Account{Changes: joinChanges(first.Changes, second.Changes),
		Facts:    slices.Clone(first.Facts),
		Problems: slices.Concat(first.Problems, second.Problems),
		Notes:    slices.Concat(first.Notes, second.Notes),
		Origins:  edit.Origins{}}
	known := map[string]bool{}
	for _, f := range first.Facts {
		known[f.Package] = true
	}
	for _, f := range second.Facts {
		if !known[f.Package] {
			out.Facts = append(out.Facts, f)
		}
	}
	maps.Copy(out.Origins, first.Origins)
	maps.Copy(out.Origins, second.Origins)
	return out
}

// joinChanges joins the changes of two consecutive edits. If the second edit replaces the value that the first one gave
// to a part of the catalog, that is one change, from the value before both to that after both.
func joinChanges(first, second []edit.Change) (joined []edit.Change) {
	// state is a part of a catalog with a value.
	type state struct {
		kind                        edit.Kind
		pkg, channel, bundle, value string
	}
	before := func(c edit.Change) state { return state{c.Kind, c.Package, c.Channel, c.Bundle, c.From} }
	after := func(c edit.Change) state { return state{c.Kind, c.Package, c.Channel, c.Bundle, c.To} }
	pending := map[state]edit.Change{} // the second changes that are in no joined one, by what they began with
	for _, c := range second {
		pending[before(c)] = c
	}
	for _, c := range first {
		if next, ok := pending[after(c)]; ok && c.Action != edit.Removed && next.Action == edit.Changed {
			delete(pending, after(c))
			c.To = next.To
		}
		joined = append(joined, c)
	}
	for _, c := range second {
		if _, ok := pending[before(c)]; ok {
			joined = append(joined, c)
		}
	}
	return joined
}
