package list

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/lifecycle"
)

// Load reads a catalog in the order of [declcfg.Catalog.Blobs] and validates it. Its error is that of the stream, or a
// *[declcfg.ValidationError].
func Load(blobs iter.Seq2[declcfg.Blob, error]) (*Listing, error) { return loadListing(blobs, false) }

// LoadPackages is like [Load], for listings that are used for [Listing.Packages] only. Display names need the manifests
// of bundles, all else does without.
func LoadPackages(blobs iter.Seq2[declcfg.Blob, error]) (*Listing, error) {
	return loadListing(blobs, true)
}

func loadListing(blobs iter.Seq2[declcfg.Blob, error], packagesOnly bool) (*Listing, error) {
	l := loader{packagesOnly: packagesOnly, names: map[string]string{}, part: &declcfg.Catalog{}}
	for blob, err := range blobs {
		if err != nil {
			return nil, err
		}
		if err := l.add(blob); err != nil {
			return nil, err
		}
	}
	if err := l.finish(); err != nil {
		return nil, err
	}
	// The validity of a package does not depend on others: the problems of the invalid packages are all problems.
	if err := l.invalid.Validate(); err != nil {
		return nil, err
	}
	return &Listing{l.packages, l.lifecycles}, nil
}

// loader holds one package at a time.
type loader struct {
	packagesOnly bool

	packages   []pkg
	lifecycles []lifecycle.Package
	invalid    declcfg.Catalog // the blobs of all invalid packages

	name    string // of the current package
	part    *declcfg.Catalog
	heads   map[string]bool   // of its default channel
	display map[string]string // display names by bundle
	names   map[string]string // of images, without duplicates
}

func (l *loader) add(blob declcfg.Blob) error {
	if declcfg.Rank(blob.BlobSchema()) == declcfg.RankOther {
		if m, ok := blob.(*declcfg.Meta); ok && m.Schema == lifecycle.Schema {
			p, _ := lifecycle.Read(m.Blob) // its mistakes are for "check" to report
			l.lifecycles = append(l.lifecycles, *p)
		}
		return nil
	}
	if name := blob.BlobPackage(); name != l.name {
		if name < l.name {
			return fmt.Errorf("package %q comes after package %q: the blobs are not in the order of packages", name,
				l.name)
		}
		if err := l.finish(); err != nil {
			return err
		}
		l.name, l.part, l.heads, l.display = name, &declcfg.Catalog{}, nil, map[string]string{}
	}
	if b, ok := blob.(*declcfg.Bundle); ok {
		if l.heads == nil {
			l.heads = defaultHeads(l.part)
		}
		if l.heads[b.Name] {
			l.display[b.Name] = displayName(b)
		}
		b.Reduce()
	}
	l.part.Add(blob)
	return nil
}

// defaultHeads returns the names of the heads of a package's default channel: their display name is that of the
// package.
func defaultHeads(c *declcfg.Catalog) map[string]bool {
	heads := map[string]bool{}
	for i := range c.Packages {
		for j := range c.Channels {
			if c.Channels[j].Name != c.Packages[i].DefaultChannel {
				continue
			}
			for _, head := range c.Channels[j].Heads() {
				heads[head] = true
			}
		}
	}
	return heads
}

// finish stores the table values of the current package.
func (l *loader) finish() error {
	c := l.part
	g, err := c.ValidGraph()
	if err != nil {
		l.invalid.Append(c)
		return nil
	}
	for _, p := range g.Packages {
		row := pkg{Package: Package{Name: p.Name, DefaultChannel: p.DefaultChannel, Deprecation: p.Deprecation}}
		related := map[string][]string{}
		for _, b := range p.Bundles {
			if l.packagesOnly {
				break
			}
			for _, r := range b.RelatedImages {
				related[b.Name] = append(related[b.Name], l.intern(r.Image))
			}
		}
		for _, ch := range p.Channels {
			head, err := ch.Head()
			if err != nil {
				return err
			}
			if ch == p.Default() {
				row.DisplayName = l.display[head.Name]
			}
			if l.packagesOnly {
				continue
			}
			out := channel{name: ch.Name, head: head.Name, deprecation: ch.Deprecation}
			for _, e := range ch.Entries {
				b := Bundle{Package: p.Name, Channel: ch.Name, Name: e.Name, Replaces: e.Replaces, Skips: e.Skips,
					SkipRange: e.SkipRange}
				if e.Bundle != nil {
					b.Image, b.Deprecation = l.intern(e.Bundle.Image), e.Bundle.Deprecation
					b.order, b.Version = e.Bundle.Version, e.Bundle.Version.String()
				}
				if b.Skips == nil {
					b.Skips = []string{}
				}
				out.entries = append(out.entries, entry{b, related[e.Name]})
			}
			row.channels = append(row.channels, out)
		}
		l.packages = append(l.packages, row)
	}
	return nil
}

func (l *loader) intern(s string) string {
	if known, ok := l.names[s]; ok {
		return known
	}
	l.names[s] = s
	return s
}

// displayName returns the display name in a bundle's ClusterServiceVersion or else in its metadata; empty if there is
// none or it cannot be read.
func displayName(b *declcfg.Bundle) string {
	if csv, err := b.CSV(); err == nil && csv != nil {
		if name := declcfg.ReadCSV(csv).DisplayName(); name != "" {
			return name
		}
	}
	for _, p := range b.Properties {
		if p.Type == declcfg.PropertyCSVMetadata {
			var v struct {
				DisplayName string `json:"displayName"`
			}
			if json.Unmarshal(p.Value, &v) == nil {
				return v.DisplayName
			}
		}
	}
	return ""
}
