// Package list makes tables of what a catalog holds: its packages, channels and bundles.
//
// A catalog must be valid to be listed. It is read as a stream, and of each bundle only what a table shows is kept, so
// that memory does not grow with the manifests in it.
package list

import (
	"encoding/json"
	"io"
	"iter"
	"strings"
	"text/tabwriter"

	"github.com/operator-bindery/bindery/declcfg"
)

// Listing is a catalog of which tables can be made. It is safe for concurrent use.
type Listing struct {
	graph   *declcfg.Graph
	display map[[2]string]string // by package and bundle
}

// Load reads a catalog and validates it. Its error is that of the stream, or a *[declcfg.ValidationError].
func Load(blobs iter.Seq2[declcfg.Blob, error]) (*Listing, error) {
	l := &Listing{display: map[[2]string]string{}}
	var c declcfg.Catalog
	for blob, err := range blobs {
		if err != nil {
			return nil, err
		}
		if b, ok := blob.(*declcfg.Bundle); ok {
			if name := displayName(b); name != "" {
				l.display[[2]string{b.Package, b.Name}] = name
			}
			b.Reduce()
		}
		c.Add(blob)
	}
	if err := declcfg.Validate(&c); err != nil {
		return nil, err
	}
	var err error
	l.graph, err = declcfg.NewGraph(&c)
	return l, err
}

// displayName is the name for people of a bundle's operator: from its ClusterServiceVersion, or else from the metadata
// that stands for it; empty where there is none or it cannot be read.
func displayName(b *declcfg.Bundle) string {
	if csv, err := b.CSV(); err == nil && csv != nil {
		var v struct {
			Spec struct {
				DisplayName string `json:"displayName"`
			} `json:"spec"`
		}
		if json.Unmarshal(csv, &v) == nil {
			return v.Spec.DisplayName
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

// Package is a row of the table of packages.
type Package struct {
	Name           string `json:"name"`
	DisplayName    string `json:"displayName"`
	DefaultChannel string `json:"defaultChannel"`
}

// Channel is a row of the table of channels.
type Channel struct {
	Package string `json:"package"`
	Name    string `json:"name"`
	Head    string `json:"head"`
}

// Bundle is a row of the table of bundles: one entry of a channel.
type Bundle struct {
	Package   string   `json:"package"`
	Channel   string   `json:"channel"`
	Name      string   `json:"name"`
	Replaces  string   `json:"replaces"`
	Skips     []string `json:"skips"`
	SkipRange string   `json:"skipRange"`
	Image     string   `json:"image"`
}

// Packages lists all packages by name.
func (l *Listing) Packages() []Package {
	rows := []Package{}
	for _, p := range l.graph.Packages {
		row := Package{Name: p.Name, DefaultChannel: p.DefaultChannel}
		if ch := p.Default(); ch != nil {
			if head, err := ch.Head(); err == nil {
				row.DisplayName = l.display[[2]string{p.Name, head.Name}]
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// Channels lists the channels of one package, or of all where pkg is empty, by package and name.
func (l *Listing) Channels(pkg string) ([]Channel, error) {
	packages, err := l.packages(pkg)
	if err != nil {
		return nil, err
	}
	rows := []Channel{}
	for _, p := range packages {
		for _, ch := range p.Channels {
			head, err := ch.Head()
			if err != nil {
				return nil, err
			}
			rows = append(rows, Channel{Package: p.Name, Name: ch.Name, Head: head.Name})
		}
	}
	return rows, nil
}

// Bundles lists the entries of the channels of one package, or of all where pkg is empty, by package, channel and name.
func (l *Listing) Bundles(pkg string) ([]Bundle, error) {
	packages, err := l.packages(pkg)
	if err != nil {
		return nil, err
	}
	rows := []Bundle{}
	for _, p := range packages {
		for _, ch := range p.Channels {
			for _, e := range ch.Entries {
				row := Bundle{Package: p.Name, Channel: ch.Name, Name: e.Name, Replaces: e.Replaces, Skips: e.Skips, SkipRange: e.SkipRange}
				if e.Bundle != nil {
					row.Image = e.Bundle.Image
				}
				if row.Skips == nil {
					row.Skips = []string{}
				}
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

func (l *Listing) packages(name string) ([]*declcfg.PackageNode, error) {
	if name == "" {
		return l.graph.Packages, nil
	}
	p := l.graph.Package(name)
	if p == nil {
		e := &declcfg.NotFoundError{Kind: "package", Name: name}
		for _, p := range l.graph.Packages {
			e.Known = append(e.Known, p.Name)
		}
		return nil, e
	}
	return []*declcfg.PackageNode{p}, nil
}

// Table is rows of cells under a header.
type Table struct {
	Header []string
	Rows   [][]string
}

// PackageTable is the table of packages.
func PackageTable(rows []Package) Table {
	t := Table{Header: []string{"NAME", "DISPLAY NAME", "DEFAULT CHANNEL"}}
	for _, r := range rows {
		t.Rows = append(t.Rows, []string{r.Name, r.DisplayName, r.DefaultChannel})
	}
	return t
}

// ChannelTable is the table of channels.
func ChannelTable(rows []Channel) Table {
	t := Table{Header: []string{"PACKAGE", "CHANNEL", "HEAD"}}
	for _, r := range rows {
		t.Rows = append(t.Rows, []string{r.Package, r.Name, r.Head})
	}
	return t
}

// BundleTable is the table of bundles.
func BundleTable(rows []Bundle) Table {
	t := Table{Header: []string{"PACKAGE", "CHANNEL", "BUNDLE", "REPLACES", "SKIPS", "SKIP RANGE", "IMAGE"}}
	for _, r := range rows {
		t.Rows = append(t.Rows, []string{r.Package, r.Channel, r.Name, r.Replaces, strings.Join(r.Skips, ","), r.SkipRange, r.Image})
	}
	return t
}

// Write writes the table with columns two spaces apart. clean makes the text of each cell safe to show.
func (t Table) Write(w io.Writer, clean func(string) string) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	line := func(cells []string) error {
		for i, c := range cells {
			if i > 0 {
				if _, err := io.WriteString(tw, "\t"); err != nil {
					return err
				}
			}
			if _, err := io.WriteString(tw, clean(c)); err != nil {
				return err
			}
		}
		_, err := io.WriteString(tw, "\n")
		return err
	}
	if err := line(t.Header); err != nil {
		return err
	}
	for _, row := range t.Rows {
		if err := line(row); err != nil {
			return err
		}
	}
	return tw.Flush()
}
