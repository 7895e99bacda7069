package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Facts are the content of a database's tables according to plain SQL queries: no graph is walked in Go, nothing is
// repaired or left out. They serve to verify a catalog that was read in another way.
type Facts struct {
	Packages map[string]*packageFacts
	Bundles  map[string]*bundleFacts // including those in no channel
}

type packageFacts struct {
	DefaultChannel string
	Channels       map[string]*ChannelFacts
}

// ChannelFacts are the facts of one channel. Edges are all references between entries; Chain are those reachable from
// the entries of least depth.
type ChannelFacts struct {
	Head    string
	Entries map[string]bool
	Edges   map[Edge]bool
	Chain   map[Edge]bool
}

// Edge leads from a bundle to one that it replaces or skips.
type Edge struct{ From, To string }

// bundleFacts are the facts of one bundle. Properties are texts of the form "TYPE VALUE", with the value as JSON with
// sorted keys. Objects are the SHA-256 digests of the manifests with their counts.
type bundleFacts struct {
	Version       string
	Image         string
	SkipRange     string
	Properties    map[string]bool
	RelatedImages map[string]bool
	Objects       map[string]int
}

// Facts reads the facts. It takes a pass over all manifests.
func (db *DB) Facts(ctx context.Context) (*Facts, error) {
	ctx, cancel := db.deadline(ctx)
	defer cancel()
	f := &Facts{Packages: map[string]*packageFacts{}, Bundles: map[string]*bundleFacts{}}
	for _, read := range []func(context.Context, *Facts) error{db.bundleFacts, db.packageFacts, db.edgeFacts,
		db.propertyFacts, db.imageFacts} {
		if err := read(ctx, f); err != nil {
			return nil, db.wrap(classify(ctx, err))
		}
	}
	return f, nil
}

// strings calls fn for every row of a query, with NULLs as empty strings.
func (db *DB) strings(ctx context.Context, query string, fn func(row []string) error) (err error) {
	conn, err := db.conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values := make([]sql.NullString, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	row := make([]string, len(columns))
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		for i, v := range values {
			row[i] = v.String
		}
		if err := fn(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// fromCSV returns an SQL expression for a value of a bundle's ClusterServiceVersion.
func fromCSV(path string) string {
	return "CASE WHEN json_valid(CAST(csv AS TEXT)) THEN json_extract(CAST(csv AS TEXT), '" + path + "') END"
}

func (db *DB) bundleFacts(ctx context.Context, f *Facts) error {
	version, skipRange, path := fromCSV("$.spec.version"), fromCSV(`$.metadata.annotations."olm.skipRange"`), "''"
	if db.schema.hasColumn("operatorbundle", "version") {
		version = "coalesce(nullif(version, ''), " + version + ")"
	}
	if db.schema.hasColumn("operatorbundle", "skiprange") {
		skipRange = "skiprange"
	}
	if db.schema.hasColumn("operatorbundle", "bundlepath") {
		path = "bundlepath"
	}
	query := fmt.Sprintf("SELECT name, %s, %s, %s, CAST(bundle AS TEXT) FROM operatorbundle WHERE name IS NOT NULL",
		version, path, skipRange)
	return db.strings(ctx, query, func(row []string) error {
		b := &bundleFacts{Version: row[1], Image: row[2], SkipRange: row[3], Properties: map[string]bool{},
			RelatedImages: map[string]bool{}, Objects: map[string]int{}}
		f.Bundles[row[0]] = b
		dec := json.NewDecoder(strings.NewReader(row[4]))
		for {
			var object json.RawMessage
			if err := dec.Decode(&object); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return nil // reading the catalog reports it
			}
			b.Objects[ObjectDigest(object)]++
		}
	})
}

// ObjectDigest returns the digest of a manifest in facts.
func ObjectDigest(object []byte) string {
	sum := sha256.Sum256(object)
	return hex.EncodeToString(sum[:])
}

func (db *DB) packageFacts(ctx context.Context, f *Facts) error {
	const query = `SELECT p.name, p.default_channel, c.name, c.head_operatorbundle_name
		FROM package p LEFT JOIN channel c ON c.package_name = p.name WHERE p.name IS NOT NULL`
	return db.strings(ctx, query, func(row []string) error {
		p := f.Packages[row[0]]
		if p == nil {
			p = &packageFacts{DefaultChannel: row[1], Channels: map[string]*ChannelFacts{}}
			f.Packages[row[0]] = p
		}
		if row[2] != "" {
			p.Channels[row[2]] = &ChannelFacts{Head: row[3], Entries: map[string]bool{}, Edges: map[Edge]bool{},
				Chain: map[Edge]bool{}}
		}
		return nil
	})
}

func (db *DB) edgeFacts(ctx context.Context, f *Facts) error {
	const query = `WITH RECURSIVE
		tip(package_name, channel_name, depth) AS (SELECT package_name, channel_name, min(depth) FROM channel_entry GROUP BY 1, 2),
		chain(entry_id, replaces) AS (
			SELECT e.entry_id, e.replaces FROM tip CROSS JOIN channel_entry e USING (package_name, channel_name, depth)
			UNION
			SELECT e.entry_id, e.replaces FROM chain CROSS JOIN channel_entry e ON e.entry_id = chain.replaces)
		SELECT e.package_name, e.channel_name, e.operatorbundle_name, r.operatorbundle_name, e.entry_id IN (SELECT entry_id FROM chain)
		FROM channel_entry e LEFT JOIN channel_entry r ON r.entry_id = e.replaces`
	return db.strings(ctx, query, func(row []string) error {
		p := f.Packages[row[0]]
		if p == nil || p.Channels[row[1]] == nil || f.Bundles[row[2]] == nil {
			return nil
		}
		c := p.Channels[row[1]]
		c.Entries[row[2]] = true
		if row[3] != "" {
			c.Edges[Edge{row[2], row[3]}] = true
			if row[4] == "1" {
				c.Chain[Edge{row[2], row[3]}] = true
			}
		}
		return nil
	})
}

// apiQuery selects the bundle and the property value of the rows of api_provider or api_requirer.
func (db *DB) apiQuery(table string) string {
	const value = "json_object('group', a.group_name, 'kind', a.kind, 'version', a.version)"
	if db.schema.hasColumn(table, "channel_entry_id") {
		return "SELECT e.operatorbundle_name, " + value + " FROM " + table +
			" a JOIN channel_entry e ON e.entry_id = a.channel_entry_id"
	}
	return "SELECT a.operatorbundle_name, " + value + " FROM " + table + " a"
}

func (db *DB) propertyFacts(ctx context.Context, f *Facts) error {
	const csv = "CASE WHEN json_valid(CAST(csv AS TEXT)) THEN CAST(csv AS TEXT) ELSE '{}' END"
	var queries []string
	if db.schema.has("api_provider") {
		queries = append(queries, "SELECT 'olm.gvk', x.* FROM ("+db.apiQuery("api_provider")+") x")
	}
	if db.schema.has("api_requirer") {
		queries = append(queries, "SELECT 'olm.gvk.required', x.* FROM ("+db.apiQuery("api_requirer")+") x")
	} else {
		queries = append(queries,
			`SELECT 'olm.gvk.required', name, json_object('group', substr(a.value->>'name', instr(a.value->>'name', '.') + 1), 'kind', a.value->>'kind', 'version', a.value->>'version')
				FROM operatorbundle, json_each(`+csv+`, '$.spec.customresourcedefinitions.required') a`,
			`SELECT 'olm.gvk.required', name, json_object('group', a.value->>'group', 'kind', a.value->>'kind', 'version', a.value->>'version')
				FROM operatorbundle, json_each(`+csv+`, '$.spec.apiservicedefinitions.required') a`)
	}
	if db.schema.has("properties") {
		queries = append(queries, "SELECT type, operatorbundle_name, CAST(value AS TEXT) FROM properties")
	} else {
		annotation := fromCSV(`$.metadata.annotations."olm.properties"`)
		queries = append(queries, `SELECT a.value->>'type', name, a.value->'value' FROM operatorbundle, json_each(
			CASE WHEN json_valid(`+annotation+`) THEN `+annotation+` ELSE '[]' END) a WHERE a.type = 'object'`)
	}
	if db.schema.has("dependencies") {
		queries = append(queries, `SELECT type || '.required', operatorbundle_name, CASE type
			WHEN 'olm.gvk' THEN json_object('group', value->>'group', 'kind', value->>'kind', 'version', value->>'version')
			ELSE json_object('packageName', value->>'packageName', 'versionRange', value->>'version') END
			FROM (SELECT type, operatorbundle_name, CAST(value AS TEXT) value FROM dependencies)
			WHERE type IN ('olm.gvk', 'olm.package') AND json_valid(value)`,
			"SELECT type, operatorbundle_name, CAST(value AS TEXT) FROM dependencies WHERE type NOT IN ('olm.gvk', "+
				"'olm.package')")
	}
	for _, query := range queries {
		err := db.strings(ctx, query, func(row []string) error {
			if b := f.Bundles[row[1]]; b != nil {
				b.Properties[PropertyText(row[0], []byte(row[2]))] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// PropertyText returns the text of a property in facts.
func PropertyText(typ string, value []byte) string {
	dec := json.NewDecoder(strings.NewReader(string(value)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return typ + " " + string(value)
	}
	canonical, err := json.Marshal(v)
	if err != nil {
		return typ + " " + string(value)
	}
	return typ + " " + string(canonical)
}

func (db *DB) imageFacts(ctx context.Context, f *Facts) error {
	if !db.schema.has("related_image") {
		return nil
	}
	return db.strings(ctx, "SELECT operatorbundle_name, image FROM related_image", func(row []string) error {
		if b := f.Bundles[row[0]]; b != nil && row[1] != "" {
			b.RelatedImages[row[1]] = true
		}
		return nil
	})
}
