package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

// maxSchemaVersion is the last version that opm wrote.
const maxSchemaVersion = 13

// The tables of an index database in all versions. The value reports whether the table is read.
var indexTables = map[string]bool{
	"schema_migrations": true,
	"operatorbundle":    true,
	"package":           true,
	"channel":           true,
	"channel_entry":     true,
	"api":               false,
	"api_provider":      true,
	"api_requirer":      true,
	"related_image":     true,
	"dependencies":      true,
	"properties":        true,
	"deprecated":        true,
}

// The columns that every version has and that reading requires.
var requiredColumns = map[string][]string{
	"operatorbundle": {"name", "csv", "bundle"},
	"package":        {"name", "default_channel"},
	"channel":        {"name", "package_name", "head_operatorbundle_name"},
	"channel_entry":  {"entry_id", "channel_name", "package_name", "operatorbundle_name", "replaces", "depth"},
}

// The triggers of an index database. They delete unused rows of the api table and have no effect on reading.
var indexTriggers = []string{"api_provider_cleanup", "api_requirer_cleanup"}

// schema lists the known tables and columns that a database has.
type schema struct {
	version    int
	hasVersion bool
	columns    map[string]map[string]bool // by table; column names in lower case
}

func (s *schema) has(table string) bool { return s.columns[table] != nil }

func (s *schema) hasColumn(table, column string) bool { return s.columns[table][column] }

// tables returns the existing tables that are read.
func (s *schema) tables() []string {
	var names []string
	for name := range s.columns {
		if indexTables[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// column returns the name of a column for a SELECT, or NULL if the database does not have it.
func (s *schema) column(table, column string) string {
	if s.hasColumn(table, column) || column == "rowid" {
		return column
	}
	return "NULL"
}

// object is a row of sqlite_schema.
type object struct{ kind, name, table, sql string }

// readSchema checks every object of the database before any table is read: objects that could run code of the
// database's author are refused.
func readSchema(ctx context.Context, c *sql.Conn) (*schema, error) {
	objects, err := readObjects(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &schema{columns: map[string]map[string]bool{}}
	for _, o := range objects {
		if err := checkObject(ctx, c, o); err != nil {
			return nil, err
		}
		table := strings.ToLower(o.name)
		if _, known := indexTables[table]; o.kind == "table" && known {
			if s.columns[table], err = readColumns(ctx, c, o.name); err != nil {
				return nil, err
			}
		}
	}
	for _, table := range []string{"operatorbundle", "package", "channel", "channel_entry"} {
		if !s.has(table) {
			return nil, fmt.Errorf("%w: table %q is missing", ErrUnsupported, table)
		}
		for _, column := range requiredColumns[table] {
			if !s.hasColumn(table, column) {
				return nil, fmt.Errorf("%w: table %q has no column %q", ErrUnsupported, table, column)
			}
		}
	}
	return s, s.readVersion(ctx, c)
}

func readObjects(ctx context.Context, c *sql.Conn) ([]object, error) {
	const most = 1000
	rows, err := c.QueryContext(ctx, "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema LIMIT ?",
		most+1)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var objects []object
	for rows.Next() {
		var o object
		if err := rows.Scan(&o.kind, &o.name, &o.table, &o.sql); err != nil {
			return nil, fmt.Errorf("%w: its schema: %w", ErrDamaged, err)
		}
		objects = append(objects, o)
	}
	if len(objects) > most {
		return nil, fmt.Errorf("%w: its schema has more than %d objects", ErrLimit, most)
	}
	return objects, rows.Err()
}

func checkObject(ctx context.Context, c *sql.Conn, o object) error {
	refuse := func(what string) error {
		return fmt.Errorf("%w: it has %s %s, which an index database never has", ErrUnsupported, what,
			fault.Quote(o.name))
	}
	switch o.kind {
	case "table":
		var kind string
		var withoutRowID bool
		err := c.QueryRowContext(ctx, "SELECT type, wr FROM pragma_table_list WHERE schema = 'main' AND name = ?",
			o.name).Scan(&kind, &withoutRowID)
		if err != nil {
			return fmt.Errorf("%w: table %s: %w", ErrDamaged, fault.Quote(o.name), err)
		}
		if kind != "table" {
			return refuse("the " + kind + " table")
		}
		if _, known := indexTables[strings.ToLower(o.name)]; known && withoutRowID {
			return refuse("the WITHOUT ROWID table")
		}
		var hidden int
		if err := c.QueryRowContext(ctx, "SELECT coalesce(max(hidden), 0) FROM pragma_table_xinfo(?)", o.name).Scan(
			&hidden); err != nil {
			return err
		}
		if hidden != 0 {
			return refuse("a generated column in table")
		}
	case "index":
		var expressions, partial int
		if err := c.QueryRowContext(ctx, "SELECT count(*) FROM pragma_index_xinfo(?) WHERE cid < -1", o.name).Scan(
			&expressions); err != nil {
			return err
		}
		if err := c.QueryRowContext(ctx, "SELECT count(*) FROM pragma_index_list(?) WHERE name = ? AND partial",
			o.table, o.name).Scan(&partial); err != nil {
			return err
		}
		if expressions > 0 || partial > 0 {
			return refuse("the expression index")
		}
	case "trigger":
		if !slices.Contains(indexTriggers, strings.ToLower(o.name)) {
			return refuse("the trigger")
		}
	default:
		return refuse("the " + o.kind)
	}
	return nil
}

func readColumns(ctx context.Context, c *sql.Conn, table string) (map[string]bool, error) {
	rows, err := c.QueryContext(ctx, "SELECT name FROM pragma_table_xinfo(?)", table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		columns[strings.ToLower(name)] = true
	}
	return columns, rows.Err()
}

// readVersion reads the version that the last writer set. The columns that exist determine what is read, so the version
// only has to be a known one.
func (s *schema) readVersion(ctx context.Context, c *sql.Conn) error {
	if !s.has("schema_migrations") {
		return nil
	}
	if !s.hasColumn("schema_migrations", "version") {
		return fmt.Errorf("%w: table %q has no column %q", ErrUnsupported, "schema_migrations", "version")
	}
	rows, err := c.QueryContext(ctx, "SELECT version FROM schema_migrations LIMIT 2")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if s.hasVersion {
			return fmt.Errorf("%w: it has several schema versions", ErrUnsupported)
		}
		var version any
		if err := rows.Scan(&version); err != nil {
			return err
		}
		n, ok := version.(int64)
		if !ok || n < 0 || n > maxSchemaVersion {
			return fmt.Errorf("%w: schema version %s is unknown, 0 to %d are known", ErrUnsupported,
				fault.Quote(fmt.Sprint(version)), maxSchemaVersion)
		}
		s.version, s.hasVersion = int(n), true
	}
	return rows.Err()
}
