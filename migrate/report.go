package migrate

import (
	"cmp"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/sqlite"
)

// Report describes a migration. Its JSON form is stable: fields are added, and never renamed or removed.
type Report struct {
	// Source is the migrated reference. Output is the written directory, empty if only images were written.
	Source string `json:"source"`
	Output string `json:"output"`
	// Image is the source's name with its digest if it is an image.
	Image string `json:"image,omitempty"`
	// Images are the written images with their digests.
	Images []string `json:"images,omitempty"`
	// SchemaVersion is that of the database; absent for a directory and for a database without one.
	SchemaVersion *int   `json:"schemaVersion,omitempty"`
	Level         string `json:"level"`
	Format        string `json:"format"`
	Compat        string `json:"compat,omitempty"`
	// Packages are sorted by name and include those that were left out.
	Packages []PackageReport `json:"packages"`
	// Findings describe what was derived, repaired, dropped and quarantined.
	Findings []sqlite.Finding `json:"findings"`
	// Verification is set if it was requested.
	Verification *verification `json:"verification,omitempty"`
}

// Written returns the number of packages that were written.
func (r *Report) Written() (n int) {
	for _, p := range r.Packages {
		if p.Output != nil {
			n++
		}
	}
	return n
}

// Repairs returns the number of repairs.
func (r *Report) Repairs() (n int) {
	for _, f := range r.Findings {
		if f.Altered() {
			n++
		}
	}
	return n
}

// PackageReport has the counts of a package in source and output. Source is absent for a directory.
type PackageReport struct {
	Name        string  `json:"name"`
	Quarantined string  `json:"quarantined,omitempty"` // why the package was left out
	Source      *Counts `json:"source,omitempty"`
	Output      *Counts `json:"output,omitempty"`
}

// Counts are the numbers of items in a package. Edges are distinct pairs of a bundle and one that it replaces or skips,
// per channel. Properties do not include manifests, which count as objects.
type Counts struct {
	DefaultChannel string            `json:"defaultChannel"`
	Heads          map[string]string `json:"heads"` // per channel
	Channels       int               `json:"channels"`
	Entries        int               `json:"entries"`
	Edges          int               `json:"edges"`
	Bundles        int               `json:"bundles"`
	Properties     int               `json:"properties"`
	RelatedImages  int               `json:"relatedImages"`
	Objects        int               `json:"objects"`
	Deprecations   int               `json:"deprecations"`
}

// verification is the result of comparing the output with the source.
type verification struct {
	Same bool `json:"same"`
	// Differences are the items in which they differ. One with a reason is explained by a finding; one without is a
	// failure.
	Differences []difference `json:"differences"`
}

// difference is an item that only one side has, or that differs.
type difference struct {
	Package string `json:"package"`
	Channel string `json:"channel,omitempty"`
	Bundle  string `json:"bundle,omitempty"`
	What    string `json:"what"`
	Source  string `json:"source,omitempty"`
	Output  string `json:"output,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// sourceCounts counts the facts of a database per package.
func sourceCounts(f *sqlite.Facts) map[string]*Counts {
	out := map[string]*Counts{}
	for name, p := range f.Packages {
		c := &Counts{DefaultChannel: p.DefaultChannel, Heads: map[string]string{}, Channels: len(p.Channels)}
		bundles := map[string]bool{}
		for channel, ch := range p.Channels {
			c.Heads[channel] = ch.Head
			c.Entries += len(ch.Entries)
			c.Edges += len(ch.Edges)
			for b := range ch.Entries {
				bundles[b] = true
			}
		}
		for b := range bundles {
			facts := f.Bundles[b]
			c.Bundles++
			c.Properties += len(facts.Properties)
			c.RelatedImages += len(facts.RelatedImages)
			for _, n := range facts.Objects {
				c.Objects += n
			}
		}
		out[name] = c
	}
	return out
}

// outputCounts counts blobs while they are written.
type outputCounts struct {
	counts map[string]*Counts
}

func (o *outputCounts) countsOf(pkg string) *Counts {
	if o.counts == nil {
		o.counts = map[string]*Counts{}
	}
	c := o.counts[pkg]
	if c == nil {
		c = &Counts{Heads: map[string]string{}}
		o.counts[pkg] = c
	}
	return c
}

func (o *outputCounts) add(b declcfg.Blob) {
	if b.BlobPackage() == "" {
		return
	}
	c := o.countsOf(b.BlobPackage())
	switch b := b.(type) {
	case *declcfg.Package:
		c.DefaultChannel = b.DefaultChannel
	case *declcfg.Channel:
		c.Channels++
		c.Entries += len(b.Entries)
		below := map[string]bool{}
		for _, e := range b.Entries {
			to := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(e.Skips), e.Replaces))))
			for _, name := range to {
				if name != "" {
					c.Edges++
					below[name] = below[name] || name != e.Name
				}
			}
		}
		for _, e := range b.Entries {
			if !below[e.Name] {
				c.Heads[b.Name] = max(c.Heads[b.Name], e.Name)
			}
		}
	case *declcfg.Bundle:
		c.Bundles++
		c.RelatedImages += len(b.RelatedImages)
		for _, p := range b.Properties {
			if p.Type == declcfg.PropertyBundleObject {
				c.Objects++
			} else {
				c.Properties++
			}
		}
	case *declcfg.Deprecations:
		c.Deprecations += len(b.Entries)
	}
}

// packageReports combines the counts of both sides.
func packageReports(source, output map[string]*Counts, findings []sqlite.Finding) []PackageReport {
	byName := map[string]*PackageReport{}
	at := func(name string) *PackageReport {
		if byName[name] == nil {
			byName[name] = &PackageReport{Name: name}
		}
		return byName[name]
	}
	for name, c := range source {
		at(name).Source = c
	}
	for name, c := range output {
		at(name).Output = c
	}
	for _, f := range findings {
		if f.Kind == sqlite.Quarantined {
			at(f.Package).Quarantined = f.Reason
		}
	}
	reports := make([]PackageReport, 0, len(byName))
	for _, r := range byName {
		reports = append(reports, *r)
	}
	slices.SortFunc(reports, func(a, b PackageReport) int { return cmp.Compare(a.Name, b.Name) })
	return reports
}
