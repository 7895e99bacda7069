package edit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// Mode determines how added bundles are placed in a channel.
type Mode string

const (
	// Replaces uses the edges that bundles declare: replaces and skips of their ClusterServiceVersions.
	Replaces Mode = "replaces"
	// SemVer orders the bundles of a channel by version; each replaces the next lower one.
	SemVer Mode = "semver"
	// SemVerSkipPatch is like SemVer, but a bundle skips those of the same minor version with lower patch numbers.
	SemVerSkipPatch Mode = "semver-skippatch"
)

// Modes returns the modes.
func Modes() []Mode { return []Mode{Replaces, SemVer, SemVerSkipPatch} }

// ParseMode returns the mode with that name, ignoring case.
func ParseMode(name string) (Mode, error) {
	if m := Mode(strings.ToLower(name)); slices.Contains(Modes(), m) {
		return m, nil
	}
	//lint:ignore ST1005 opm's text
	return "", fmt.Errorf("Invalid channel update mode: %q is none of %v", name, Modes())
}

// AddOptions configure [Add]. The zero value adds in the mode Replaces.
type AddOptions struct {
	Mode Mode
	// OverwriteLatest lets a bundle replace the blob of the same name, if no other bundle replaces that one in the
	// graph. It has an effect in the mode Replaces only.
	OverwriteLatest bool
	// SubstitutesFor enables bundles that substitute for others.
	SubstitutesFor bool
	// AnyImages accepts images that are not pull specs, as [declcfg.Catalog.ValidateAnyImages] does.
	AnyImages bool
	// Permissive adds the valid bundles and reports the rest in Account.Problems.
	Permissive bool
	// Origins are the declared edges of the catalog's bundles, if known. They may be nil.
	Origins Origins
	// Manifests are values from manifests of bundles that the catalog has as skeletons. They may be nil.
	Manifests Manifests
}

// Limits of one call of [Add], as bundles can multiply channels, chains and skips. They are far beyond real packages,
// the largest of which have some thousand edges and some ten channels.
const (
	maxChannels = 1000    // of one added bundle
	maxEdges    = 250_000 // entries and skips in all recomputed channels of one package
)

// maxRounds is how often a permissive edit of a package is repeated without the bundles that caused problems.
const maxRounds = 16

// found is a problem with the additions that cause it; without any it concerns the whole package.
type found struct {
	Problem
	culprits []*candidate
	// soft is set if a permissive edit may continue in spite of it.
	soft bool
}

// candidate is an addition with derived values.
type candidate struct {
	*Addition
	name, image string
	channels    []string
	wish        declcfg.Origin
	version     version
}

// problem returns a problem caused by the candidate.
func (n *candidate) problem(kind error, format string, args ...any) found {
	return found{
		Problem: Problem{Package: n.Bundle.Package, Bundle: n.name, Image: n.image, Kind: kind,
			Message: fmt.Sprintf(format, args...)},
		culprits: []*candidate{n},
	}
}

// Add adds bundles to a catalog. In the mode Replaces each must have an edge to an existing bundle or to another added
// one; the order of the additions has no effect. The rules for heads and default channels are in
// docs/reference/edits.md.
//
// Bundles of the catalog that are no longer reachable are removed, because an upgrade graph cannot contain them: the
// account reports them.
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
		return nil, nil, ErrorOf(a.problems)
	}
	a.account.Problems = a.problems
	a.account.finish()
	return join(c, edited), a.account, nil
}

// adder is the state of one call of Add.
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
		n.wish = declcfg.Origin{Replaces: n.Replaces, Skips: clean(n.Skips), SubstitutesFor: n.SubstitutesFor}
		k := key{n.Bundle.Package, n.name}
		if first := seen[k]; first != nil {
			if first.image == n.image && n.image != "" {
				p := n.problem(nil, "bundle %q (%s) is given twice", n.name, n.image)
				a.account.Notes = append(a.account.Notes, p.Problem)
				continue
			}
			a.report(n.problem(ErrVersionExists,
				"Bundle already added that provides package and csv: %s and %s are both bundle %q of package %q",
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

// clean returns names without empty ones and duplicates.
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

// addPackage edits one package. A permissive edit is repeated without the additions that cause problems.
func (a *adder) addPackage(name string, old *part, all []*candidate, edited map[string]*part) {
	news := slices.DeleteFunc(slices.Clone(all), func(n *candidate) bool { return a.bad[n] })
	if len(news) < len(all) && !a.options.Permissive {
		return // other problems may be consequences of this one
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
					a.account.Changes = append(a.account.Changes,
						Change{Action: Changed, Kind: KindBundle, Package: name, Bundle: n.name,
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
		a.problems = append(a.problems,
			n.problem(ErrGraph, "bundle %s is left out with the others of package %s", n.name, name).Problem)
	}
}

// packageEdit is one attempt to add bundles to a package.
type packageEdit struct {
	*adder
	old     *part
	part    *part
	news    []*candidate
	why     reasons
	found   []found
	origins Origins
	made    int // number of edges, see maxEdges

	// byChannel has the added bundles by the channels that they declare; nil until wanting is called.
	byChannel map[string][]*candidate
}

// tooMany reports that the package would exceed the limit of edges.
func (e *packageEdit) tooMany(channel string) {
	e.found = append(e.found,
		found{culprits: e.wanting(channel), Problem: Problem{Package: e.part.name, Channel: channel, Kind: ErrLimit,
			Message: fmt.Sprintf("package %s: more than %d entries and skips in the channels that the added "+
				"bundles change",
				e.part.name, maxEdges)}})
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
