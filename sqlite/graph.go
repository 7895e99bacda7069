package sqlite

import (
	"database/sql"
	"fmt"
	"math"

	"github.com/operator-bindery/bindery/internal/fault"
)

// none is the entry id that represents NULL.
const none = math.MinInt64

// graph is the content of a database except the manifests.
type graph struct {
	packages map[string]*pkg
	bundles  map[string]*bundle
	entries  map[int64]*entry
	order    []*entry // sorted by entry id
}

type pkg struct {
	name           string
	declared       bool // has a row in table package, and not only channels or entries
	defaultChannel string
	channels       map[string]*channel
	entries        []*entry
}

type channel struct{ head string }

// entry is a row of channel_entry: one edge, or the end of a chain.
type entry struct {
	id       int64
	channel  string
	bundle   string
	replaces int64 // id of another entry, or none
	depth    int64
}

// bundle is a row of operatorbundle with its rows in other tables.
type bundle struct {
	rowid         int64
	name          string
	version       text
	path          text
	skipRange     text
	hasCSV        bool
	manifests     *manifests
	problem       error // why the row cannot be used
	deprecated    bool  // by the table or by a property
	properties    []propertyRow
	dependencies  []propertyRow
	provided      []gvk
	required      []gvk
	images        []string
	declared      originColumns
	inSomeChannel bool
}

func (g *graph) pkg(name string) *pkg {
	p := g.packages[name]
	if p == nil {
		p = &pkg{name: name, channels: map[string]*channel{}}
		g.packages[name] = p
	}
	return p
}

// readGraph reads the small tables. Rows without the names that locate them are findings.
func (db *DB) readGraph(r *reader, bundles map[string]*bundle) (*graph, error) {
	g := &graph{packages: map[string]*pkg{}, bundles: bundles, entries: map[int64]*entry{}}
	for _, read := range []func(*reader, *graph) error{
		db.readPackages, db.readChannels, db.readEntries, db.readRelatedImages, db.readDeprecated,
	} {
		if err := read(r, g); err != nil {
			return nil, err
		}
	}
	for _, table := range []struct {
		name string
		into func(*bundle) *[]propertyRow
	}{
		{"properties", func(b *bundle) *[]propertyRow { return &b.properties }},
		{"dependencies", func(b *bundle) *[]propertyRow { return &b.dependencies }},
	} {
		if err := db.readProperties(r, g, table.name, table.into); err != nil {
			return nil, err
		}
	}
	for _, table := range []struct {
		name string
		into func(*bundle) *[]gvk
	}{
		{"api_provider", func(b *bundle) *[]gvk { return &b.provided }},
		{"api_requirer", func(b *bundle) *[]gvk { return &b.required }},
	} {
		if err := db.readAPIs(r, g, table.name, table.into); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (db *DB) readPackages(r *reader, g *graph) error {
	columns := []string{"name", "default_channel"}
	return r.forEachRow(db.schema, "package", columns, func(row []sql.RawBytes) error {
		var name, channel text
		if err := r.texts(columns, row, &name, &channel); err != nil {
			return err
		}
		if name.null {
			db.findings.add(Finding{Kind: Dropped, Reason: "a row of table package has no name"})
			return nil
		}
		p := g.pkg(name.s)
		if p.declared {
			return fmt.Errorf("%w: package %s appears twice", ErrInvalid, fault.Quote(name.s))
		}
		p.declared = true
		p.defaultChannel = channel.s
		return nil
	})
}

func (db *DB) readChannels(r *reader, g *graph) error {
	columns := []string{"name", "package_name", "head_operatorbundle_name"}
	return r.forEachRow(db.schema, "channel", columns, func(row []sql.RawBytes) error {
		var name, pkg, head text
		if err := r.texts(columns, row, &name, &pkg, &head); err != nil {
			return err
		}
		if name.null || pkg.null {
			db.findings.add(Finding{Kind: Dropped, Package: pkg.s, Channel: name.s,
				Reason: "a row of table channel has no name or no package"})
			return nil
		}
		p := g.pkg(pkg.s)
		if p.channels[name.s] != nil {
			return fmt.Errorf("%w: channel %s of package %s appears twice", ErrInvalid, fault.Quote(name.s),
				fault.Quote(pkg.s))
		}
		p.channels[name.s] = &channel{head.s}
		return nil
	})
}

func (db *DB) readEntries(r *reader, g *graph) error {
	columns := []string{"channel_name", "package_name", "operatorbundle_name", "entry_id", "replaces", "depth"}
	return r.forEachRow(db.schema, "channel_entry", columns, func(row []sql.RawBytes) error {
		var channel, pkg, bundle text
		if err := r.texts(columns, row, &channel, &pkg, &bundle); err != nil {
			return err
		}
		e := &entry{channel: channel.s, bundle: bundle.s}
		for i, target := range []*int64{&e.id, &e.replaces, &e.depth} {
			n, err := integer(columns[3+i], row[3+i])
			if err != nil {
				return err
			}
			*target = n
		}
		if channel.null || pkg.null || bundle.null || e.id == none {
			db.findings.add(Finding{Kind: Dropped, Package: pkg.s, Channel: channel.s, Bundle: bundle.s,
				Reason: fmt.Sprintf("entry %d of table channel_entry has no channel, package or bundle", e.id)})
			return nil
		}
		if g.entries[e.id] != nil {
			return fmt.Errorf("%w: entry %d appears twice", ErrInvalid, e.id)
		}
		g.entries[e.id] = e
		g.order = append(g.order, e)
		p := g.pkg(pkg.s)
		p.entries = append(p.entries, e)
		if b := g.bundles[bundle.s]; b != nil {
			b.inSomeChannel = true
		} else {
			db.findings.add(Finding{Kind: Dropped, Package: pkg.s, Channel: channel.s, Bundle: bundle.s,
				Reason: "the channel has an entry for a bundle that is not in the database"})
		}
		return nil
	})
}

// bundleOf returns the bundle that a row belongs to. Rows of missing bundles have no effect and are findings.
func (db *DB) bundleOf(g *graph, table string, name text) *bundle {
	if b := g.bundles[name.s]; b != nil && !name.null {
		return b
	}
	db.findings.add(Finding{Kind: Dropped, Bundle: name.s, Field: table,
		Reason: "rows of a bundle that is not in the database"})
	return nil
}

func (db *DB) readRelatedImages(r *reader, g *graph) error {
	columns := []string{"operatorbundle_name", "image"}
	return r.forEachRow(db.schema, "related_image", columns, func(row []sql.RawBytes) error {
		var name, image text
		if err := r.texts(columns, row, &name, &image); err != nil {
			return err
		}
		if b := db.bundleOf(g, "related_image", name); b != nil && image.s != "" {
			b.images = append(b.images, image.s)
		}
		return nil
	})
}

func (db *DB) readDeprecated(r *reader, g *graph) error {
	columns := []string{"operatorbundle_name"}
	return r.forEachRow(db.schema, "deprecated", columns, func(row []sql.RawBytes) error {
		var name text
		if err := r.texts(columns, row, &name); err != nil {
			return err
		}
		if b := db.bundleOf(g, "deprecated", name); b != nil {
			b.deprecated = true
		}
		return nil
	})
}

func (db *DB) readProperties(r *reader, g *graph, table string, into func(*bundle) *[]propertyRow) error {
	columns := []string{"operatorbundle_name", "type", "value"}
	seen := map[*bundle]map[propertyRow]bool{}
	return r.forEachRow(db.schema, table, columns, func(row []sql.RawBytes) error {
		var name, typ, value text
		if err := r.texts(columns, row, &name, &typ, &value); err != nil {
			return err
		}
		b := db.bundleOf(g, table, name)
		if b == nil {
			return nil
		}
		p := propertyRow{typ.s, value.s}
		if seen[b] == nil {
			seen[b] = map[propertyRow]bool{}
		}
		if seen[b][p] {
			return nil // adding a bundle to a package repeated the rows of the others
		}
		seen[b][p] = true
		*into(b) = append(*into(b), p)
		return nil
	})
}

// readAPIs reads the APIs that bundles provide or require. Up to version 5 the rows belong to channel entries.
func (db *DB) readAPIs(r *reader, g *graph, table string, into func(*bundle) *[]gvk) error {
	columns := []string{"operatorbundle_name", "group_name", "version", "kind", "operatorbundle_version",
		"operatorbundle_path", "channel_entry_id"}
	byEntry := db.schema.hasColumn(table, "channel_entry_id")
	return r.forEachRow(db.schema, table, columns, func(row []sql.RawBytes) error {
		var name, group, version, kind, bundleVersion, bundlePath text
		if err := r.texts(columns, row, &name, &group, &version, &kind, &bundleVersion, &bundlePath); err != nil {
			return err
		}
		if byEntry {
			id, err := integer(columns[6], row[6])
			if err != nil {
				return err
			}
			if e := g.entries[id]; e != nil {
				name = text{s: e.bundle}
			} else {
				name = text{null: true}
			}
		}
		b := db.bundleOf(g, table, name)
		if b == nil {
			return nil
		}
		stale := !byEntry && (bundleVersion != b.version || bundlePath != b.path || b.version.null || b.path.null)
		if stale && db.options.Compat == CompatOPM {
			return nil // opm finds the rows of a bundle by name, version and path
		}
		*into(b) = append(*into(b), gvk{group.s, version.s, kind.s})
		return nil
	})
}
