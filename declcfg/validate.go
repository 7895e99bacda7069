package declcfg

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/versions"
)

// Validate checks the catalog against every rule of the file-based catalog specification that opm enforces. It returns
// nil, or a *[ValidationError] with all problems. It takes time linear in bundles and edges.
func (c *Catalog) Validate() error { return validate(c, false, problemList{}).problems.err() }

// ValidateAnyImages is like [Catalog.Validate] without the rule that images are pull specs, which opm does not apply to
// databases.
func (c *Catalog) ValidateAnyImages() error { return validate(c, true, problemList{}).problems.err() }

// ValidGraph is like [Catalog.Graph], for a catalog that must be valid. Its error is that of [Catalog.Validate].
func (c *Catalog) ValidGraph() (*Graph, error) { return validGraph(c, false) }

// ValidGraphAnyImages is like [Catalog.ValidGraph] by the rules of [Catalog.ValidateAnyImages].
func (c *Catalog) ValidGraphAnyImages() (*Graph, error) { return validGraph(c, true) }

func validGraph(c *Catalog, anyImages bool) (*Graph, error) {
	v := validate(c, anyImages, problemList{})
	if err := v.problems.err(); err != nil {
		return nil, err
	}
	return v.graph, nil
}

// validate adds the problems of a catalog to a list.
func validate(c *Catalog, anyImages bool, problems problemList) *validator {
	v := &validator{problems: problems}
	v.graph = newGraph(c, anyImages, &v.problems)
	for _, pkg := range v.graph.Packages {
		v.validatePackage(pkg)
	}
	return v
}

// maxNotes is the maximum number of notes about one catalog.
const maxNotes = 100

type validator struct {
	graph     *Graph
	problems  problemList
	notes     []Problem
	moreNotes int // notes that were only counted
}

// report adds a problem of a part of the graph.
func (v *validator) report(p Problem, rule, format string, args ...any) {
	p.Rule, p.stage = rule, stageGraph
	v.problems.report(p, format, args...)
}

func (v *validator) validatePackage(pkg *PackageNode) {
	at := Problem{Position: pkg.Pos, Package: pkg.Name}
	defaultMissing := false
	switch {
	case pkg.DefaultChannel == "":
		v.report(at, RuleDefaultChannel, "default channel must be set")
	case pkg.Default() == nil:
		defaultMissing = true
	}
	if len(pkg.Channels) == 0 && !defaultMissing {
		v.report(at, RuleEmpty, "package must contain at least one channel")
	}
	checked := map[*BundleNode]bool{}
	for _, channel := range pkg.Channels {
		v.validateChannel(channel, checked)
	}
	if defaultMissing {
		missing := at
		missing.Channel = pkg.DefaultChannel
		missing.detail = fmt.Sprintf("default channel %s not found in channels list", fault.Quote(pkg.DefaultChannel))
		missing.path = []any{"defaultChannel"}
		// For opm a missing default channel is one without bundles; the message mentions both.
		v.report(missing, RuleDefaultChannel, "channel must contain at least one bundle")
	}
	v.versions(pkg, at)
	if pkg.Deprecation != nil && *pkg.Deprecation == "" {
		v.report(at, RuleDeprecation, "invalid deprecation: message must be set")
	}
}

func (v *validator) validateChannel(channel *ChannelNode, checked map[*BundleNode]bool) {
	at := Problem{Position: channel.Pos, Package: channel.Package.Name, Channel: channel.Name}
	if len(channel.Entries) == 0 {
		v.report(at, RuleEmpty, "channel must contain at least one bundle")
	} else if err := channel.checkChain(); err != nil {
		broken := at
		if len(channel.Heads()) == 0 {
			broken.detail = channel.cycle()
		}
		v.report(broken, RuleGraph, "%s", bounded(err.Error()))
	}
	for _, e := range channel.Entries {
		v.validateEntry(at, e)
		v.dangling(at, e)
		if e.Bundle != nil && !checked[e.Bundle] {
			checked[e.Bundle] = true
			v.validateBundle(at, e.Bundle)
		}
	}
	if channel.Deprecation != nil && *channel.Deprecation == "" {
		v.report(at, RuleDeprecation, "invalid deprecation: message must be set")
	}
}

// dangling adds a note about a replaced bundle without an entry in the channel. At the end of a truncated channel that
// is usual, elsewhere a misspelled name.
func (v *validator) dangling(at Problem, e *entryNode) {
	if e.Replaces == "" || e.Channel.Entry(e.Replaces) != nil {
		return
	}
	at.Bundle, at.path = e.Name, []any{"entries", e.index, "replaces"}
	v.note(at, RuleReplaces, "entry %s of channel %s of package %s replaces %s, which has no entry in the channel",
		e.Name, e.Channel.Name, e.Channel.Package.Name, e.Replaces)
}

// note adds a note, which names are quoted in. opm says nothing of it.
func (v *validator) note(at Problem, rule, format string, names ...string) {
	if len(v.notes) == maxNotes {
		v.moreNotes++
		return
	}
	quoted := make([]any, len(names))
	for i, name := range names {
		quoted[i] = fault.Quote(name)
	}
	at.Rule, at.stage, at.Message = rule, stageGraph, fmt.Sprintf(format, quoted...)
	v.notes = append(v.notes, at)
}

func (v *validator) validateEntry(at Problem, e *entryNode) {
	if len(e.Skips) == 0 && e.SkipRange == "" {
		return
	}
	at.Bundle = e.Name
	at.path = []any{"entries", e.index}
	for i, skip := range e.Skips {
		if skip == "" {
			v.report(at, RuleGraph, "skip[%d] is empty", i)
		}
	}
	if e.SkipRange == "" {
		return
	}
	at.path = []any{"entries", e.index, "skipRange"}
	if _, err := versions.ParseRange(e.SkipRange); errors.Is(err, versions.ErrLong) {
		v.report(at, RuleLimit, "invalid skipRange %.40q...: %v", e.SkipRange, err)
	} else if err != nil {
		v.report(at, RuleSkipRange, "invalid skipRange %q: %v", e.SkipRange, err)
	}
}

func (v *validator) validateBundle(at Problem, b *BundleNode) {
	at.Bundle, at.Position = b.Name, b.Pos
	switch {
	case b.Image == "" && !b.HasObjects:
		v.report(at, RuleImage, "bundle image must be set")
	case b.Image == "":
		v.note(at, RuleNoImage, "bundle %s of package %s has no image: OLM v1 cannot install it", b.Name, b.Package)
	}
	if release := b.PackageProperty.Release; release != "" && len(b.Version.Release) > 0 {
		if len(b.Version.Version.Build) > 0 {
			v.report(at, RuleVersion, "cannot use build metadata in version with a release version")
		}
		if want := b.Package + "-v" + b.Version.kubernetesSafe(); b.Name != want {
			v.report(at, RuleVersion, "bundle name %q does not match normalized name %q", b.Name, want)
		}
	}
	if b.Deprecation != nil && *b.Deprecation == "" {
		v.report(at, RuleDeprecation, "invalid deprecation: message must be set")
	}
}

// versions checks that no two bundles in channels of the package have the same version and release.
func (v *validator) versions(pkg *PackageNode, at Problem) {
	type group struct {
		version VersionRelease
		names   []string
	}
	groups := map[string]*group{}
	for _, b := range pkg.Bundles {
		if !b.inChannel || b.PackageProperty.Version == "" {
			continue
		}
		key := b.Version.String()
		if groups[key] == nil {
			groups[key] = &group{version: b.Version}
		}
		groups[key].names = append(groups[key].names, b.Name)
	}
	var duplicates []*group
	for _, g := range groups {
		if len(g.names) > 1 {
			duplicates = append(duplicates, g)
		}
	}
	if len(duplicates) == 0 {
		return
	}
	slices.SortFunc(duplicates, func(a, b *group) int {
		return cmp.Or(a.version.Compare(b.version), cmp.Compare(a.version.String(), b.version.String()))
	})
	texts := make([]string, len(duplicates))
	for i, g := range duplicates {
		texts[i] = fmt.Sprintf("{%s: [%s]}", g.version, joinNames(g.names, ", "))
	}
	v.report(at, RuleVersion, "duplicate versions found in bundles: [%s]", errors.New(strings.Join(texts, " ")))
}
