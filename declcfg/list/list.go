// Package list builds tables of the packages, channels, bundles and images of a catalog.
//
// The catalog must be valid. It is read package by package, and of each bundle only the values in the tables are kept,
// so that memory does not grow with the manifests.
package list

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/lifecycle"
)

// Listing is a catalog for which tables can be built. It is safe for concurrent use.
type Listing struct {
	packages   []pkg // sorted by name
	lifecycles []lifecycle.Package
}

// pkg has the table values of a package.
type pkg struct {
	Package
	channels []channel // sorted by name
}

// channel has the table values of a channel.
type channel struct {
	name, head  string
	deprecation *string
	entries     []entry // by name
}

// entry is a row of the table of bundles, with the images that the bundle needs.
type entry struct {
	Bundle
	related []string
}

// Package is a row of the table of packages.
type Package struct {
	Name           string `json:"name"`
	DisplayName    string `json:"displayName"`
	DefaultChannel string `json:"defaultChannel"`
	// Deprecation is the message of the package's deprecation; nil if it is not deprecated.
	Deprecation *string `json:"deprecation,omitempty"`
}

// Channel is a row of the table of channels.
type Channel struct {
	Package string `json:"package"`
	Name    string `json:"name"`
	Head    string `json:"head"`
	// Deprecation is the message of the channel's deprecation; nil if it is not deprecated.
	Deprecation *string `json:"deprecation,omitempty"`
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
	// Version is the version of the bundle, with its release if it has one; empty if the bundle is not in the catalog.
	Version string `json:"version"`
	// Deprecation is the message of the bundle's deprecation; nil if it is not deprecated.
	Deprecation *string `json:"deprecation,omitempty"`

	order declcfg.VersionRelease
}

// Bundles are rows of the table of bundles.
type Bundles []Bundle

// Packages lists all packages by name.
func (l *Listing) Packages() []Package {
	rows := []Package{}
	for _, p := range l.packages {
		rows = append(rows, p.Package)
	}
	return rows
}

// Channels lists the channels of one package, or of all if pkg is empty, sorted by package and name.
func (l *Listing) Channels(pkg string) ([]Channel, error) {
	packages, err := l.packagesNamed(pkg)
	if err != nil {
		return nil, err
	}
	rows := []Channel{}
	for _, p := range packages {
		for _, ch := range p.channels {
			rows = append(rows, Channel{Package: p.Name, Name: ch.name, Head: ch.head, Deprecation: ch.deprecation})
		}
	}
	return rows, nil
}

// Bundles lists the channel entries of one package, or of all if pkg is empty, sorted by package, channel and name.
func (l *Listing) Bundles(pkg string) (Bundles, error) {
	packages, err := l.packagesNamed(pkg)
	if err != nil {
		return nil, err
	}
	rows := Bundles{}
	for _, p := range packages {
		for _, ch := range p.channels {
			for _, e := range ch.entries {
				rows = append(rows, e.Bundle)
			}
		}
	}
	return rows, nil
}

// Lifecycles lists the lifecycles in the order of the catalog: by package. What a blob has of the wrong type is empty.
func (l *Listing) Lifecycles() []lifecycle.Package {
	return append([]lifecycle.Package{}, l.lifecycles...)
}

// packagesNamed returns the package with a name, or all if the name is empty.
func (l *Listing) packagesNamed(name string) ([]pkg, error) {
	if name == "" {
		return l.packages, nil
	}
	e := &declcfg.NotFoundError{Kind: "package", Name: name}
	for i, p := range l.packages {
		if p.Name == name {
			return l.packages[i : i+1], nil
		}
		e.Known = append(e.Known, p.Name)
	}
	return nil, e
}

// Table has rows of cells and a header.
type Table struct {
	Header []string
	Rows   [][]string
}

// PackageTable returns the table of packages.
func PackageTable(rows []Package) Table {
	t := Table{Header: []string{"NAME", "DISPLAY NAME", "DEFAULT CHANNEL"}}
	for _, r := range rows {
		t.Rows = append(t.Rows, []string{r.Name, r.DisplayName, r.DefaultChannel})
	}
	return t
}

// LifecycleTable returns the table of the phases of all versions.
func LifecycleTable(rows []lifecycle.Package) Table {
	t := Table{Header: []string{"PACKAGE", "VERSION", "PHASE", "START", "END", "OPENSHIFT"}}
	for _, r := range rows {
		for _, v := range r.Versions {
			for _, p := range v.Phases {
				t.Rows = append(t.Rows, []string{r.Package, v.Name, p.Name, p.StartDate, p.EndDate,
					strings.Join(v.OpenShift(), ",")})
			}
		}
	}
	return t
}

// ChannelTable returns the table of channels.
func ChannelTable(rows []Channel) Table {
	t := Table{Header: []string{"PACKAGE", "CHANNEL", "HEAD"}}
	for _, r := range rows {
		t.Rows = append(t.Rows, []string{r.Package, r.Name, r.Head})
	}
	return t
}

// Table returns the table of bundles, with whole names of images: they are copied out of it.
func (rows Bundles) Table() Table {
	t := Table{Header: []string{"PACKAGE", "CHANNEL", "VERSION", "BUNDLE", "REPLACES", "SKIPS", "SKIP RANGE",
		"DEPRECATED",
		"IMAGE"}}
	for _, r := range rows {
		deprecated := ""
		if r.Deprecation != nil {
			deprecated = "yes"
		}
		t.Rows = append(t.Rows,
			[]string{r.Package, r.Channel, r.Version, r.Name, r.Replaces, strings.Join(r.Skips, ","),
				r.SkipRange, deprecated, r.Image})
	}
	return t
}

// SortByVersion sorts rows of bundles by package, channel and version, lowest first. Bundles that are not in the
// catalog come first.
func (rows Bundles) SortByVersion() {
	slices.SortStableFunc(rows, func(a, b Bundle) int {
		return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.Channel, b.Channel),
			a.order.Compare(b.order))
	})
}

// InChannels returns the rows of the named channels, or all if there are none. A name that no row has is a
// *[declcfg.NotFoundError].
func (rows Bundles) InChannels(channels []string) (Bundles, error) {
	if len(channels) == 0 {
		return rows, nil
	}
	kept := Bundles{}
	found := map[string]bool{}
	for _, r := range rows {
		found[r.Channel] = true
		if slices.Contains(channels, r.Channel) {
			kept = append(kept, r)
		}
	}
	for _, name := range channels {
		if !found[name] {
			return nil, &declcfg.NotFoundError{Kind: "channel", Name: name, Known: slices.Sorted(maps.Keys(found))}
		}
	}
	return kept, nil
}

// OPMTable returns the table of bundles as opm prints it.
func (rows Bundles) OPMTable() Table {
	t := Table{Header: []string{"PACKAGE", "CHANNEL", "BUNDLE", "REPLACES", "SKIPS", "SKIP RANGE", "IMAGE"}}
	for _, r := range rows {
		t.Rows = append(t.Rows,
			[]string{r.Package, r.Channel, r.Name, r.Replaces, strings.Join(r.Skips, ","), r.SkipRange, r.Image})
	}
	return t
}

// Write writes the table with columns two spaces apart. clean makes the text of each cell safe to print.
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
