package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/sqlite"
)

// verifier compares the output with the facts of a database, one package at a time.
type verifier struct {
	facts    *sqlite.Facts
	findings []sqlite.Finding
	images   map[[2]string][]string // images that repairs replaced, by package and bundle
	level    edit.Level
	result   verification
}

// verify reads the catalog in dir again. The result has all differences; the error is a *VerificationError if a finding
// does not explain one of them.
func verify(ctx context.Context, dir string, facts *sqlite.Facts, findings []sqlite.Finding,
	o Options) (*verification, error) {
	v := &verifier{facts: facts, findings: findings, level: o.Render.Level,
		result: verification{Differences: []difference{}}}
	v.images = map[[2]string][]string{}
	for _, f := range findings {
		if f.Altered() && f.Field == "relatedImages" && f.After != "" {
			at := [2]string{f.Package, f.Bundle}
			v.images[at] = append(v.images[at], f.After)
		}
	}
	written, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range written {
		if facts.Packages[e.Name()] == nil {
			v.differ(difference{Package: e.Name(), What: "package", Output: "written"}, false)
		}
	}
	for i, name := range sortedKeys(facts.Packages) {
		if o.Progress != nil {
			o.Progress(StepVerify, i+1, len(facts.Packages), name)
		}
		c, err := loadPackage(ctx, filepath.Join(dir, name), o)
		if errors.Is(err, fs.ErrNotExist) {
			v.differ(difference{Package: name, What: "package", Source: "there"}, true)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("verify package %q: %w", name, err)
		}
		if err := v.verifyPackage(name, c); err != nil {
			return nil, fmt.Errorf("verify package %q: %w", name, err)
		}
	}
	var failures []difference
	for _, d := range v.result.Differences {
		if d.Reason == "" {
			failures = append(failures, d)
		}
	}
	v.result.Same = len(failures) == 0
	if !v.result.Same {
		return &v.result, &verificationError{failures}
	}
	return &v.result, nil
}

func loadPackage(ctx context.Context, dir string, o Options) (*declcfg.Catalog, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	fsys, err := declcfg.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	return declcfg.Load(ctx, fsys, declcfg.LoadOptions{Jobs: o.Render.Jobs, Limits: o.Render.Limits})
}

// differ adds a difference. If it is explainable, a matching finding gives its reason.
func (v *verifier) differ(d difference, explainable bool) {
	if at := slices.IndexFunc(v.findings, func(f sqlite.Finding) bool { return repaired(f, d) }); at >= 0 {
		d.Reason = v.findings[at].Reason
		if v.findings[at].Before == d.Source {
			d.Output = v.findings[at].After
		}
	} else if explainable {
		if at := slices.IndexFunc(v.findings, func(f sqlite.Finding) bool { return explains(f, d) }); at >= 0 {
			d.Reason = v.findings[at].Reason
		}
	}
	v.result.Differences = append(v.result.Differences, d)
}

// explains reports whether a finding is the reason why something was not written. It must be about exactly that: a lost
// icon, or an orphaned row, does not explain a missing package, entry or property.
func explains(f sqlite.Finding, d difference) bool {
	if f.Kind != sqlite.Dropped && f.Kind != sqlite.Quarantined {
		return false
	}
	field := ""
	if d.What == whatProperty {
		field = "dependencies"
	}
	samePackage := f.Package == d.Package || f.Package == "" && f.Bundle != ""
	return f.Field == field && f.Bundle == d.Bundle && samePackage && (f.Channel == "" || f.Channel == d.Channel)
}

// repaired reports whether a difference is a requested repair of exactly this value to exactly this value. For one of
// several values, such as an image of many, only the old value is compared.
func repaired(f sqlite.Finding, d difference) bool {
	fields := map[string][]string{
		"default channel": {"defaultChannel"}, "image": {"image"}, "related image": {"relatedImages"},
		"edge": {"replaces", "skips"},
	}
	there := f.Package == d.Package && f.Channel == d.Channel && f.Bundle == d.Bundle
	if !f.Altered() || !there || !slices.Contains(fields[d.What], f.Field) {
		return false
	}
	if f.Field == "skips" {
		return d.Output == ""
	}
	return f.Before == d.Source && (d.Output == "" || f.After == d.Output)
}

// whatProperty is the What of a difference in the properties of a bundle.
const whatProperty = "property"

// withValues returns a difference of the same package and channel with other values.
func (d difference) withValues(bundle, what, source, output string) difference {
	d.Bundle, d.What, d.Source, d.Output = bundle, what, source, output
	return d
}

// compareValues compares one value of both sides.
func (v *verifier) compareValues(d difference, source, output string) {
	if source != output {
		d.Source, d.Output = source, output
		v.differ(d, false)
	}
}

func (v *verifier) verifyPackage(name string, c *declcfg.Catalog) error {
	facts := v.facts.Packages[name]
	graph, err := c.GraphAnyImages()
	if err != nil {
		return err
	}
	node := graph.Package(name)
	if len(graph.Packages) != 1 || node == nil {
		return fmt.Errorf("its directory holds %d packages", len(graph.Packages))
	}
	v.compareValues(difference{Package: name, What: "default channel"}, facts.DefaultChannel, node.DefaultChannel)
	for _, channel := range node.Channels {
		if facts.Channels[channel.Name] == nil {
			v.differ(difference{Package: name, Channel: channel.Name, What: "channel", Output: "written"}, false)
		}
	}
	for _, channel := range sortedKeys(facts.Channels) {
		if written := node.Channel(channel); written != nil {
			v.verifyChannel(name, facts.Channels[channel], written)
		} else {
			v.differ(difference{Package: name, Channel: channel, What: "channel", Source: "there"}, true)
		}
	}
	for i := range c.Bundles {
		if err := v.verifyBundle(name, &c.Bundles[i]); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) verifyChannel(pkg string, facts *sqlite.ChannelFacts, written *declcfg.ChannelNode) {
	at := difference{Package: pkg, Channel: written.Name}
	entries, edges := map[string]bool{}, map[sqlite.Edge]bool{}
	for _, e := range written.Entries {
		entries[e.Name] = true
		if e.Replaces != "" {
			edge := sqlite.Edge{From: e.Name, To: e.Replaces}
			edges[edge] = true
			if !facts.Chain[edge] {
				v.differ(at.withValues(e.Name, "replaces", "", e.Replaces), false)
			}
		}
		for _, skip := range e.Skips {
			edges[sqlite.Edge{From: e.Name, To: skip}] = true
		}
		if b := v.facts.Bundles[e.Name]; b != nil {
			d := at
			d.Bundle, d.What = e.Name, "skipRange"
			v.compareValues(d, b.SkipRange, e.SkipRange)
		}
	}
	v.sets(at, "entry", facts.Entries, entries)
	for edge := range edges {
		if !facts.Edges[edge] {
			v.differ(at.withValues(edge.From, "edge", "", edge.To), false)
		}
	}
	for edge := range facts.Edges {
		if entries[edge.From] && !edges[edge] {
			v.differ(at.withValues(edge.From, "edge", edge.To, ""), false)
		}
	}
	head := ""
	if e, err := written.Head(); err == nil {
		head = e.Name
	}
	if head != facts.Head {
		v.differ(at.withValues(facts.Head, "head", facts.Head, head), true)
	}
}

// sets compares sets of bundle names. A finding may explain a name that is only in the source; nothing explains one
// that is only in the output.
func (v *verifier) sets(at difference, what string, source, output map[string]bool) {
	for _, name := range sortedKeys(source) {
		if !output[name] {
			v.differ(at.withValues(name, what, "there", ""), true)
		}
	}
	for _, name := range sortedKeys(output) {
		if !source[name] {
			v.differ(at.withValues(name, what, "", "written"), false)
		}
	}
}

func (v *verifier) verifyBundle(pkg string, b *declcfg.Bundle) error {
	at := difference{Package: pkg, Bundle: b.Name}
	facts := v.facts.Bundles[b.Name]
	if facts == nil {
		at.What, at.Output = "bundle", "written"
		v.differ(at, false)
		return nil
	}
	with := func(what string) difference { d := at; d.What = what; return d }
	v.compareValues(with("image"), facts.Image, b.Image)
	p, err := b.PackageProperty()
	if err != nil {
		return err
	}
	v.compareValues(with("version"), facts.Version, p.Version)
	properties, images := map[string]bool{}, map[string]bool{}
	metadata := false
	for _, p := range b.Properties {
		switch {
		case p.Type == declcfg.PropertyCSVMetadata && v.level.Includes(
			edit.LevelCSVMetadata) && !facts.Properties[sqlite.PropertyText(p.Type, p.Value)]:
			metadata = true // derived from the manifests, which it replaces
		case p.Type != declcfg.PropertyBundleObject:
			properties[sqlite.PropertyText(p.Type, p.Value)] = true
		}
	}
	for _, text := range sortedKeys(properties) {
		// The olm.package property may be derived from the columns for package and version.
		if !facts.Properties[text] && !strings.HasPrefix(text, declcfg.PropertyPackage+" ") {
			v.differ(at.withValues(at.Bundle, whatProperty, "", text), false)
		}
	}
	for _, text := range sortedKeys(facts.Properties) {
		if !properties[text] {
			v.differ(at.withValues(at.Bundle, whatProperty, text, ""), true)
		}
	}
	for _, image := range b.RelatedImages {
		images[image.Image] = true
	}
	for _, image := range sortedKeys(facts.RelatedImages) {
		if !images[image] {
			v.differ(at.withValues(at.Bundle, "related image", image, ""), false)
		}
	}
	for _, image := range v.images[[2]string{pkg, b.Name}] {
		if !images[image] {
			v.differ(at.withValues(at.Bundle, "repaired image", image, ""), false)
		}
	}
	if metadata {
		return nil
	}
	objects, err := b.Objects()
	if err != nil {
		return err
	}
	written := map[string]int{}
	for _, object := range objects {
		written[sqlite.ObjectDigest(object)]++
	}
	for digest, n := range facts.Objects {
		v.compareValues(with("manifest "+digest), fmt.Sprint(n), fmt.Sprint(written[digest]))
	}
	v.compareValues(with("number of manifests"), fmt.Sprint(total(facts.Objects)), fmt.Sprint(total(written)))
	return nil
}

func total(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
