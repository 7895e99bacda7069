package edit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// Mode is how added bundles find their place in a channel.
type Mode string

const (
	// Replaces takes the edges that bundles wish for: replaces and skips of their ClusterServiceVersions.
	Replaces Mode = "replaces"
	// SemVer orders the bundles of a channel by version; each replaces the one below.
	SemVer Mode = "semver"
	// SemVerSkipPatch is as SemVer, but a bundle skips those of the same minor version with lower patch numbers.
	SemVerSkipPatch Mode = "semver-skippatch"
)

// Modes returns the modes.
func Modes() []Mode { return []Mode{Replaces, SemVer, SemVerSkipPatch} }

// ParseMode returns the mode of that name, in any case of letters.
func ParseMode(name string) (Mode, error) {
	if m := Mode(strings.ToLower(name)); slices.Contains(Modes(), m) {
		return m, nil
	}
	//lint:ignore ST1005 opm's text
	return "", fmt.Errorf("Invalid channel update mode: %q is none of %v", name, Modes())
}

// AddOptions say how bundles are added. The zero value adds in the mode Replaces.
type AddOptions struct {
	Mode Mode
	// OverwriteLatest lets a bundle take the place of one of the same name, if that is not replaced by another. It has an
	// effect in the mode Replaces only.
	OverwriteLatest bool
	// SubstitutesFor lets bundles substitute for others.
	SubstitutesFor bool
	// AnyImages takes images that are no pull specs, as [declcfg.Catalog.ValidateAnyImages] does.
	AnyImages bool
	// Permissive adds what can be added, and reports the rest in Account.Problems.
	Permissive bool
	// Origins are what is known of the bundles in the catalog beyond their channel entries. They may be nil.
	Origins Origins
	// Manifests are what is known of bundles of which the catalog has the skeleton only. They may be nil.
	Manifests Manifests
}

// Bounds of what one call of [Add] makes, as bundles can multiply channels, chains and skips: far beyond real packages, of
// which the largest have some thousand edges and some ten channels.
const (
	maxChannels = 1000    // of one added bundle
	maxEdges    = 250_000 // entries and skips of all channels of one package that are computed again
)

// maxRounds is how often a permissive edit of a package is tried again without the bundles that were found wanting.
const maxRounds = 16

// found is a problem with the additions that are to blame; none of them means all of the package.
type found struct {
	Problem
	culprits []*candidate
	// soft is set if the edit can be done all the same, permissively.
	soft bool
}

// candidate is an addition with what was found out about it.
type candidate struct {
	*Addition
	name, image string
	channels    []string
	wish        Origin
	version     version
}

// problem makes a problem of the candidate.
func (n *candidate) problem(kind error, format string, args ...any) found {
	return found{
		Problem:  Problem{Package: n.Bundle.Package, Bundle: n.name, Image: n.image, Kind: kind, Message: fmt.Sprintf(format, args...)},
		culprits: []*candidate{n},
	}
}

// Add adds bundles to a catalog. In the mode Replaces an addition may name bundles of the catalog or of the same batch;
// the order of the additions has no meaning. The rules for heads and default channels are in docs/edit.md. Bundles that
// no edge reaches any longer are removed, as an upgrade graph cannot hold them: the account reports them.
func Add(c *declcfg.Catalog, additions []Addition, o AddOptions) (*declcfg.Catalog, *Account, error) {
	o.Mode = cmp.Or(o.Mode, Replaces)
	if _, err := ParseMode(string(o.Mode)); err != nil {
		return nil, nil, err
	}
	a := &adder{catalog: c, options: o, account: &Account{Origins: Origins{}}}
	a.collect(additions)
	names := map[string]bool{}
	byPackage := map[string][]*candidate{}
	for _, n := range a.candidates {
		names[n.Bundle.Package] = true
		byPackage[n.Bundle.Package] = append(byPackage[n.Bundle.Package], n)
	}
	parts, problems := split(c, names)
	for _, p := range problems {
		a.report(found{Problem: p, culprits: byPackage[p.Package]})
	}
	a.sane(parts)
	edited := map[string]*part{}
	for _, name := range sorted(names) {
		a.addPackage(name, parts[name], byPackage[name], edited)
	}
	if len(a.problems) > 0 && !o.Permissive {
		return nil, nil, asError(a.problems)
	}
	a.account.Problems = a.problems
	a.account.finish()
	return join(c, edited), a.account, nil
}

// adder is one call of Add.
type adder struct {
	catalog    *declcfg.Catalog
	options    AddOptions
	account    *Account
	candidates []*candidate
	bad        map[*candidate]bool
	problems   []Problem
}

func (a *adder) report(f found) {
	if a.bad == nil {
		a.bad = map[*candidate]bool{}
	}
	a.problems = append(a.problems, f.Problem)
	for _, n := range f.culprits {
		a.bad[n] = true
	}
}

// collect checks the additions one by one.
func (a *adder) collect(additions []Addition) {
	type key struct{ pkg, name string }
	seen := map[key]*candidate{}
	for i := range additions {
		if additions[i].Bundle == nil {
			a.report(found{Problem: Problem{Kind: ErrInvalid, Message: fmt.Sprintf("addition %d has no bundle", i)}})
			continue
		}
		n := &candidate{Addition: &additions[i], name: additions[i].Bundle.Name, image: additions[i].Bundle.Image}
		tooMany := false
		for _, channel := range n.Channels {
			if tooMany = len(n.channels) == maxChannels; tooMany {
				break
			}
			if channel = strings.TrimSpace(channel); channel != "" && !slices.Contains(n.channels, channel) {
				n.channels = append(n.channels, channel)
			}
		}
		if tooMany {
			a.report(n.problem(ErrLimit, "bundle %q (%s) names more than %d channels", n.name, n.image, maxChannels))
			continue
		}
		n.wish = Origin{n.Replaces, clean(n.Skips), n.SubstitutesFor}
		k := key{n.Bundle.Package, n.name}
		if first := seen[k]; first != nil {
			if first.image == n.image && n.image != "" {
				p := n.problem(nil, "bundle %q (%s) is given twice", n.name, n.image)
				a.account.Notes = append(a.account.Notes, p.Problem)
				continue
			}
			a.report(n.problem(ErrVersionExists, "Bundle already added that provides package and csv: %s and %s are both bundle %q of package %q",
				orNoImage(first.image), orNoImage(n.image), n.name, n.Bundle.Package))
			continue
		}
		seen[k] = n
		a.candidates = append(a.candidates, n)
		var err error
		n.version, err = versionOf(n.Bundle)
		switch {
		case n.name == "" || n.Bundle.Package == "":
			a.report(n.problem(ErrInvalid, "bundle %q (%s): name and package must be set", n.name, n.image))
		case err != nil:
			a.report(n.problem(ErrInvalid, "bundle %q (%s): %v", n.name, n.image, err))
		case len(n.channels) == 0:
			a.report(n.problem(ErrInvalid, "bundle %q (%s) names no channel", n.name, n.image))
		}
	}
}

// clean are names without empty ones, each once.
func clean(names []string) []string {
	var out []string
	seen := map[string]bool{"": true}
	for _, s := range names {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

func orNoImage(image string) string {
	if image == "" {
		return "a bundle without an image"
	}
	return image
}

// addPackage edits one package, again without those that are to blame for problems if the edit is permissive.
func (a *adder) addPackage(name string, old *part, all []*candidate, edited map[string]*part) {
	news := slices.DeleteFunc(slices.Clone(all), func(n *candidate) bool { return a.bad[n] })
	if len(news) < len(all) && !a.options.Permissive {
		return // what else is wrong may only come of that
	}
	before := old
	if old == nil {
		old = newPart(name)
	}
	for round := 0; len(news) > 0 && round < maxRounds; round++ {
		e := &packageEdit{adder: a, old: old, part: old.clone(), news: news, why: reasons{}, origins: Origins{}}
		e.apply()
		hard := false
		for _, f := range e.found {
			a.problems = append(a.problems, f.Problem)
			hard = hard || !f.soft
		}
		if !hard {
			edited[name] = e.part
			maps.Copy(a.account.Origins, e.origins)
			for _, n := range news {
				if m := e.part.bundles[n.name]; before != nil && before.bundles[n.name] != nil && m != nil {
					a.account.Changes = append(a.account.Changes, Change{Action: Changed, Kind: KindBundle, Package: name, Bundle: n.name,
						From: before.bundles[n.name].blob.Image, To: m.blob.Image, Why: "it was overwritten"})
					before = before.clone()
					before.bundles[n.name] = m
				}
			}
			a.account.compare(before, e.part, e.why)
			return
		}
		if !a.options.Permissive {
			return
		}
		news = e.withoutCulprits()
	}
	for _, n := range news {
		a.problems = append(a.problems, n.problem(ErrGraph, "bundle %s is left out with the others of package %s", n.name, name).Problem)
	}
}

// packageEdit is one try to add bundles to a package.
type packageEdit struct {
	*adder
	old     *part
	part    *part
	news    []*candidate
	why     reasons
	found   []found
	origins Origins
	made    int // edges, see maxEdges

	// byChannel are the news by the channels that they want to be in; nil until wanting is asked.
	byChannel map[string][]*candidate
}

// tooMany reports that the package gets more edges than it may.
func (e *packageEdit) tooMany(channel string) {
	e.found = append(e.found, found{culprits: e.wanting(channel), Problem: Problem{Package: e.part.name, Channel: channel, Kind: ErrLimit,
		Message: fmt.Sprintf("package %s: more than %d entries and skips in the channels that the added bundles change", e.part.name, maxEdges)}})
}

func (e *packageEdit) apply() {
	if e.options.Mode == Replaces {
		e.addReplaces()
	} else {
		e.addSemVer()
	}
}

func (e *packageEdit) withoutCulprits() []*candidate {
	guilty := map[*candidate]bool{}
	for _, f := range e.found {
		if f.soft {
			continue
		}
		if len(f.culprits) == 0 {
			return nil
		}
		for _, n := range f.culprits {
			guilty[n] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(e.news), func(n *candidate) bool { return guilty[n] })
}

// valid checks the edited package by the rules of file-based catalogs.
func (e *packageEdit) valid() {
	for _, p := range e.part.check(e.options.AnyImages) {
		f := found{Problem: p}
		for _, n := range e.news {
			if n.name == p.Bundle {
				f.culprits = []*candidate{n}
				break
			}
			if p.Channel != "" && slices.Contains(n.channels, p.Channel) {
				f.culprits = append(f.culprits, n)
			}
		}
		e.found = append(e.found, f)
	}
}
