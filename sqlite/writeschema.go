package sqlite

import (
	"context"
	"database/sql"
	"fmt"
)

// pageSize is the page size of every database of opm.
const pageSize = 4096

// writtenSchema creates an empty index database of the last schema version. The migration time is constant, so that the
// same catalog gives the same file.
var writtenSchema = []string{
	`CREATE TABLE schema_migrations (
	version bigint NOT NULL,
	timestamp DATETIME DEFAULT CURRENT_TIMESTAMP
)`,
	`INSERT INTO schema_migrations VALUES (13, '1970-01-01 00:00:00')`,
	`CREATE TABLE operatorbundle (
	name TEXT PRIMARY KEY,
	csv TEXT,
	bundle TEXT,
	bundlepath TEXT,
	skiprange TEXT,
	version TEXT,
	replaces TEXT,
	skips TEXT,
	substitutesfor TEXT
)`,
	`CREATE UNIQUE INDEX pk ON operatorbundle(name, version, bundlepath)`,
	`CREATE TABLE package (
	name TEXT PRIMARY KEY,
	default_channel TEXT,
	FOREIGN KEY(name, default_channel) REFERENCES channel(package_name, name) ON DELETE CASCADE
)`,
	`CREATE TABLE channel (
	name TEXT,
	package_name TEXT,
	head_operatorbundle_name TEXT,
	PRIMARY KEY(name, package_name),
	FOREIGN KEY(head_operatorbundle_name) REFERENCES operatorbundle(name) ON DELETE CASCADE
)`,
	`CREATE TABLE channel_entry (
	entry_id INTEGER PRIMARY KEY,
	channel_name TEXT,
	package_name TEXT,
	operatorbundle_name TEXT,
	replaces INTEGER,
	depth INTEGER,
	FOREIGN KEY(replaces) REFERENCES channel_entry(entry_id) DEFERRABLE INITIALLY DEFERRED,
	FOREIGN KEY(channel_name, package_name) REFERENCES channel(name, package_name) ON DELETE CASCADE
)`,
	`CREATE TABLE api (
	group_name TEXT,
	version TEXT,
	kind TEXT,
	plural TEXT NOT NULL,
	PRIMARY KEY(group_name, version, kind)
)`,
	apiTable("api_provider"),
	apiTable("api_requirer"),
	apiTrigger("api_provider"),
	apiTrigger("api_requirer"),
	`CREATE TABLE related_image (
	image TEXT,
	operatorbundle_name TEXT,
	FOREIGN KEY(operatorbundle_name) REFERENCES operatorbundle(name) ON DELETE CASCADE
)`,
	valueTable("dependencies"),
	valueTable("properties"),
	`CREATE TABLE deprecated (
	operatorbundle_name TEXT PRIMARY KEY
)`,
}

const ofBundle = "FOREIGN KEY(operatorbundle_name, operatorbundle_version, operatorbundle_path) REFERENCES " +
	"operatorbundle(name, version, bundlepath) ON DELETE CASCADE"

func apiTable(name string) string {
	return `CREATE TABLE ` + name + ` (
	group_name TEXT,
	version TEXT,
	kind TEXT,
	operatorbundle_name TEXT,
	operatorbundle_version TEXT,
	operatorbundle_path TEXT,
	` + ofBundle + ` DEFERRABLE INITIALLY DEFERRED,
	FOREIGN KEY(group_name, version, kind) REFERENCES api(group_name, version, kind) ON DELETE CASCADE
)`
}

func valueTable(name string) string {
	return `CREATE TABLE ` + name + ` (
	type TEXT,
	value TEXT,
	operatorbundle_name TEXT,
	operatorbundle_version TEXT,
	operatorbundle_path TEXT,
	` + ofBundle + `
)`
}

// apiTrigger removes an API that no bundle provides or requires any more. opm's trigger of this name also removes one
// that is still provided if no bundle requires any API.
func apiTrigger(table string) string {
	const same = "group_name = OLD.group_name AND version = OLD.version AND kind = OLD.kind"
	return `CREATE TRIGGER ` + table + `_cleanup AFTER DELETE ON ` + table + `
	WHEN NOT EXISTS (SELECT 1 FROM api_provider WHERE ` + same + `)
		AND NOT EXISTS (SELECT 1 FROM api_requirer WHERE ` + same + `)
	BEGIN
		DELETE FROM api WHERE ` + same + `;
	END`
}

// The statements that fill the tables. An API gets the last plural that a bundle declares.
const (
	insertBundle  = "INSERT INTO operatorbundle VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
	insertPackage = "INSERT INTO package VALUES (?, ?)"
	insertChannel = "INSERT INTO channel VALUES (?, ?, ?)"
	insertEntry   = "INSERT INTO channel_entry VALUES (?, ?, ?, ?, ?, ?)"
	insertAPI     = "INSERT INTO api VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET plural = excluded.plural WHERE " +
		"excluded.plural != ''"
	// If no bundle declares the plural of an API, that of another version may be known.
	completePlurals = `UPDATE api SET plural = coalesce((SELECT max(o.plural) FROM api o
		WHERE o.group_name = api.group_name AND o.kind = api.kind), '') WHERE plural = ''`
	insertProvider   = "INSERT INTO api_provider VALUES (?, ?, ?, ?, ?, ?)"
	insertRequirer   = "INSERT INTO api_requirer VALUES (?, ?, ?, ?, ?, ?)"
	insertImage      = "INSERT INTO related_image VALUES (?, ?)"
	insertDependency = "INSERT INTO dependencies VALUES (?, ?, ?, ?, ?)"
	insertProperty   = "INSERT INTO properties VALUES (?, ?, ?, ?, ?)"
	insertDeprecated = "INSERT INTO deprecated VALUES (?)"
)

// statements are the prepared statements of one connection.
type statements struct {
	conn     *sql.Conn
	prepared map[string]*sql.Stmt
}

// run executes a statement, which is prepared on first use. With arguments it runs without the context: otherwise the
// library starts a goroutine for every row to watch the context.
func (s *statements) run(ctx context.Context, statement string, args ...any) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(args) > 0 {
		ctx = context.WithoutCancel(ctx)
	}
	stmt := s.prepared[statement]
	if stmt == nil {
		var err error
		if stmt, err = s.conn.PrepareContext(ctx, statement); err != nil {
			return err
		}
		s.prepared[statement] = stmt
	}
	if _, err := stmt.ExecContext(ctx, args...); err != nil {
		return fmt.Errorf("%.40s...: %w", statement, err)
	}
	return nil
}

func (s *statements) close() {
	for _, stmt := range s.prepared {
		_ = stmt.Close() // the connection is closed next and reports errors
	}
}
