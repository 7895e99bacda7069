package build

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/build/internal/grouping"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/spool"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// content is the part of one package below configs. The empty name stands for the blobs of no package.
type content struct {
	pkg     string
	entries []layers.Entry

	// For compositions: the reference, the stacked layer, and the layer to compare with the rebuilt one.
	of             *composed
	stacked, proof *Layer
}

// size returns the length of the content in bytes.
func (c content) size() int64 {
	if c.stacked != nil {
		return cmp.Or(c.stacked.Content, c.stacked.Size) / int64(max(1, len(c.stacked.Packages)))
	}
	return layers.Layer{Entries: c.entries}.Size()
}

// planner divides a catalog into packages.
type planner struct {
	fsys    fs.FS
	s       *blobSpool
	at      *places
	changed map[string]bool // packages that are not taken from files
	private bool            // files are copied to the spool, because fsys is closed before they are needed
	entries map[string][]layers.Entry
}

// files adds files of a catalog directory. A file of one package is used unchanged; one of several is split.
func (p *planner) files(ctx context.Context, files []File) error {
	for _, f := range inOrderOfPlacing(files) {
		if !slices.ContainsFunc(f.Packages, func(pkg string) bool { return !p.changed[pkg] }) {
			continue
		}
		if len(f.Packages) == 1 {
			pkg := f.Packages[0]
			e, err := layers.File(p.at.assignName(pkg, f.Path), p.fsys, f.Path)
			if err == nil && p.private {
				e, err = p.s.copyOf(ctx, e)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", f.Path, err)
			}
			e.Digest = f.Digest
			p.entries[pkg] = append(p.entries[pkg], e)
			continue
		}
		spans, err := split(ctx, p.fsys, f.Path, p.s, p.changed)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		kept := 0
		for _, pkg := range f.Packages {
			if p.changed[pkg] {
				continue
			}
			kept++
			p.entries[pkg] = append(p.entries[pkg], p.s.entry(p.at.assignName(pkg, f.Path), spans[pkg]))
		}
		if len(spans) != kept {
			return fmt.Errorf("%s: %w", f.Path, layers.ErrChanged)
		}
	}
	return nil
}

// inOrderOfPlacing sorts files that keep their names first, so that moved files cannot take these names.
func inOrderOfPlacing(files []File) []File {
	sorted := slices.Clone(files)
	slices.SortFunc(sorted, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	keeps := func(f File) int {
		if len(f.Packages) != 1 {
			return 1
		}
		if _, ok := nativeName(f.Packages[0], f.Path); ok {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(sorted, func(a, b File) int { return keeps(a) - keeps(b) })
	return sorted
}

// split writes the blobs of a file to the spool, each in the format of the file, and returns the spans of each package.
// Blobs of some packages are skipped. It holds one document at a time.
func split(ctx context.Context, fsys fs.FS, name string, s *blobSpool,
	without map[string]bool) (_ map[string][]spool.Span, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	spans := map[string][]spool.Span{}
	docs, reader := canon.NewSplitter(f, canon.Limits{}), declcfg.NewReader(declcfg.LoadOptions{})
	for {
		doc, err := docs.Next()
		if err == io.EOF {
			return spans, nil
		}
		if err != nil {
			return nil, err
		}
		format := declcfg.FormatYAML
		if doc.JSON {
			format = declcfg.FormatJSON
		}
		c, err := reader.Read(ctx, bytes.NewReader(doc.Data), name)
		if err != nil {
			return nil, err
		}
		for b, err := range c.Blobs() {
			if err != nil {
				return nil, err
			}
			pkg := packageOf(b)
			if without[pkg] {
				continue
			}
			if spans[pkg], err = s.add(spans[pkg], b, format); err != nil {
				return nil, err
			}
		}
	}
}

// blobs writes a stream of blobs to the spool and adds it, one file per package.
func (p *planner) blobs(ctx context.Context, blobs iter.Seq2[declcfg.Blob, error],
	format func(pkg string) declcfg.Format) error {
	spans := map[string][]spool.Span{}
	for b, err := range blobs {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		pkg := packageOf(b)
		if p.fsys != nil && !p.changed[pkg] {
			return fmt.Errorf("a blob of package %q, which is not one of the changed packages", pkg)
		}
		if spans[pkg], err = p.s.add(spans[pkg], b, format(pkg)); err != nil {
			return err
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(spans)) {
		e := p.s.entry(p.at.assignName(pkg, "catalog."+format(pkg).Extension()), spans[pkg])
		p.entries[pkg] = append(p.entries[pkg], e)
	}
	return nil
}

// sortedContents checks the names of the packages and sorts by them, and the files of each by theirs.
func sortedContents(entries map[string][]layers.Entry) ([]content, error) {
	sorted, err := cataloglayer.Sorted(entries)
	all := make([]content, len(sorted))
	for i, p := range sorted {
		all[i] = content{pkg: p.Name, entries: p.Files}
	}
	return all, err
}

func filesOf(contents []content) []opmcache.Package {
	all := make([]opmcache.Package, len(contents))
	for i, c := range contents {
		all[i] = opmcache.Package{Name: c.pkg, Files: c.entries}
	}
	return all
}

// reservedLayers is the number of layers out of a hundred that are reserved for the server, the base and the layers on
// top. So the division of the packages does not depend on the number of base layers.
const reservedLayers = 10

// contentBudget returns the number of package layers in an image with at most most layers, of which others are used for
// other purposes.
func contentBudget(most, others int) int {
	return most - max(others, min(reservedLayers, most/10))
}

// group divides the packages among at most budget layers: as in the previous image as far as that goes, else by the
// rule of package grouping. The groups are sorted by their first packages.
func group(all []content, budget int, previous *Previous) ([][]content, error) {
	if budget < 1 {
		return nil, fmt.Errorf("%w for the %d packages: allow more layers", ErrTooFewLayers, len(all))
	}
	packages := make([]grouping.Package, len(all))
	byName := make(map[string]content, len(all))
	for i, c := range all {
		packages[i] = grouping.Package{Name: c.pkg, Size: c.size()}
		byName[c.pkg] = c
	}
	names, kept := [][]string(nil), false
	if previous != nil {
		names, kept = grouping.Keep(previous.Groups, packages, budget)
	}
	if !kept {
		names = grouping.Divide(packages, budget)
	}
	groups := make([][]content, len(names))
	for i, g := range names {
		for _, pkg := range g {
			groups[i] = append(groups[i], byName[pkg])
		}
	}
	return groups, nil
}

// Planned describes an image that has not been built: its layers as far as they are known without writing them.
type Planned struct {
	Layers []PlannedLayer `json:"layers"`
	Totals struct {
		// Layers is the number of layers of the platform with the most layers.
		Layers       int   `json:"layers"`
		Packages     int   `json:"packages"`
		Uncompressed int64 `json:"uncompressed"`
	} `json:"totals"`
}

// PlannedLayer is a layer of a plan.
type PlannedLayer struct {
	Kind LayerKind `json:"kind"`
	// Platform is the only platform with the layer, in the form OS/ARCHITECTURE; empty if all have it.
	Platform string `json:"platform,omitempty"`
	// Packages are the packages whose catalogs are in the layer, sorted.
	Packages []string `json:"packages,omitempty"`
	// Size is the compressed size of a base layer. Uncompressed is the size of the files of another layer, without the
	// caches, which are built when the layer is written.
	Size         int64 `json:"bytes,omitempty"`
	Uncompressed int64 `json:"uncompressed,omitempty"`
}

// Plan determines which layers [Catalog] would write. It reads the manifest and the configuration of the base, and
// writes only temporary files in o.Dir.
func (in CatalogInput) Plan(ctx context.Context, o Options) (_ *Planned, err error) {
	var s *blobSpool
	content, err := in.planParts(ctx, &o, &s)
	if err != nil {
		return nil, err
	}
	defer func() {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	settled, err := planLayers(ctx, &o, "", content)
	if err != nil {
		return nil, err
	}
	return settled.planned(&o), closeBases(settled.bases)
}

func (s settled) planned(o *Options) *Planned {
	p := &Planned{Layers: []PlannedLayer{}}
	add := func(l PlannedLayer) {
		p.Layers = append(p.Layers, l)
		p.Totals.Uncompressed += l.Uncompressed
		p.Totals.Packages += len(l.Packages)
	}
	platforms := o.platforms()
	for i, of := range platforms {
		only := ""
		if len(platforms) > 1 {
			only = platform.Name(of)
		}
		below := 0
		if b := s.bases[i]; b != nil {
			for _, l := range b.layers {
				add(PlannedLayer{Kind: LayerBase, Platform: only, Size: l.Size})
			}
			below = len(b.layers)
		}
		if len(o.Servers) > 0 {
			add(PlannedLayer{Kind: LayerServer, Platform: only, Uncompressed: o.Servers[i].layer().Size()})
			below++
		}
		p.Totals.Layers = max(p.Totals.Layers, below+len(s.parts))
	}
	for _, part := range s.parts {
		add(PlannedLayer{Kind: part.kind, Packages: part.packages, Uncompressed: part.layer.Size()})
	}
	return p
}
