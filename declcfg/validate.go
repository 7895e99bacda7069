package declcfg

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// maxSkipRange bounds the length of a skipRange in bytes: what is longer is no range that a person or a tool wrote.
const maxSkipRange = 4096

// Validate checks a catalog against every rule of the file-based catalog specification that opm enforces. It returns
// nil, or a *[ValidationError] with all problems. It takes time linear in bundles and edges.
func Validate(c *Catalog) error {
	_, err := ValidGraph(c)
	return err
}

// ValidGraph is [NewGraph] of a catalog that is valid. Its error is that of [Validate].
func ValidGraph(c *Catalog) (*Graph, error) {
	g, problems := newGraph(c)
	v := validator{problems: problems}
	for _, pkg := range g.Packages {
		v.pkg(pkg)
	}
	if len(v.problems) > 0 {
		return nil, &ValidationError{Problems: v.problems}
	}
	return g, nil
}

type validator struct {
	problems []Problem
}

// report adds a problem of a graph's node.
func (v *validator) report(p Problem, rule, format string, args ...any) {
	p.Rule, p.Message, p.stage = rule, fmt.Sprintf(format, args...), stageGraph
	v.problems = append(v.problems, p)
}

func (v *validator) pkg(pkg *PackageNode) {
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
		v.channel(channel, checked)
	}
	if defaultMissing {
		missing := at
		missing.Channel = pkg.DefaultChannel
		// A default channel that is not there is one without bundles, to opm; the message says both.
		v.report(missing, RuleDefaultChannel, "channel must contain at least one bundle")
		last := &v.problems[len(v.problems)-1]
		last.detail = fmt.Sprintf("default channel %q not found in channels list", pkg.DefaultChannel)
		last.path = []any{"defaultChannel"}
	}
	v.versions(pkg, at)
	if pkg.Deprecation != nil && *pkg.Deprecation == "" {
		v.report(at, RuleDeprecation, "invalid deprecation: message must be set")
	}
}

func (v *validator) channel(channel *ChannelNode, checked map[*BundleNode]bool) {
	at := Problem{Position: channel.Pos, Package: channel.Package.Name, Channel: channel.Name}
	if len(channel.Entries) == 0 {
		v.report(at, RuleEmpty, "channel must contain at least one bundle")
	} else if err := channel.checkChain(); err != nil {
		v.report(at, RuleGraph, "%v", err)
	}
	for _, e := range channel.Entries {
		v.entry(at, e)
		if e.Bundle != nil && !checked[e.Bundle] {
			checked[e.Bundle] = true
			v.bundle(at, e.Bundle)
		}
	}
	if channel.Deprecation != nil && *channel.Deprecation == "" {
		v.report(at, RuleDeprecation, "invalid deprecation: message must be set")
	}
}

func (v *validator) entry(at Problem, e *Entry) {
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
	if len(e.SkipRange) > maxSkipRange {
		v.report(at, RuleLimit, "invalid skipRange %.40q...: longer than %d bytes", e.SkipRange, maxSkipRange)
	} else if _, err := semver.ParseRange(e.SkipRange); err != nil {
		v.report(at, RuleSkipRange, "invalid skipRange %q: %v", e.SkipRange, err)
	}
}

func (v *validator) bundle(at Problem, b *BundleNode) {
	at.Bundle, at.Position = b.Name, b.Pos
	if b.Image == "" && !b.HasObjects {
		v.report(at, RuleImage, "bundle image must be set")
	}
	if release := b.PackageProperty.Release; release != "" && len(b.Version.Release) > 0 {
		if len(b.Version.Version.Build) > 0 {
			v.report(at, RuleVersion, "cannot use build metadata in version with a release version")
		}
		if want := b.Package + "-v" + b.Version.KubernetesSafe(); b.Name != want {
			v.report(at, RuleVersion, "bundle name %q does not match normalized name %q", b.Name, want)
		}
	}
	if b.Deprecation != nil && *b.Deprecation == "" {
		v.report(at, RuleDeprecation, "invalid deprecation: message must be set")
	}
}

// versions checks that no two bundles of the package, among those in channels, have the same version and release.
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
		texts[i] = fmt.Sprintf("{%s: [%s]}", g.version, strings.Join(g.names, ", "))
	}
	v.report(at, RuleVersion, "duplicate versions found in bundles: [%s]", strings.Join(texts, " "))
}
