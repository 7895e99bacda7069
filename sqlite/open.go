package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"

	driver "modernc.org/sqlite"

	"github.com/operator-bindery/bindery/internal/fault"
)

// DB is an open index database. It is safe for concurrent use; the database is loaded once.
type DB struct {
	path    string
	options Options
	source  *source
	pool    *sql.DB
	base    *sql.Conn // holds the read transaction that excludes writers until Close
	schema  *schema

	load     loadOnce
	findings findings
}

// Open opens a database of any schema version for reading and checks its structure. It writes neither to the file nor
// next to it. Errors name the path; their classes are ErrNotDatabase, ErrDamaged, ErrUnsupported, ErrLocked, ErrLimit,
// and those of the file system.
func Open(ctx context.Context, path string, o Options) (_ *DB, err error) {
	o.Limits = o.Limits.withDefaults()
	o.Jobs = cmp.Or(max(o.Jobs, 0), runtime.GOMAXPROCS(0))
	db := &DB{path: path, options: o}
	defer func() {
		if err != nil {
			err = db.wrap(errors.Join(err, db.Close()))
		}
	}()
	if db.source, err = openSource(ctx, path, o); err != nil {
		return nil, err
	}
	if db.pool, err = db.source.pool(); err != nil {
		return nil, err
	}
	db.pool.SetMaxOpenConns(4)
	ctx, cancel := db.deadline(ctx)
	defer cancel()
	if err := db.lockState(ctx); err != nil {
		return nil, classify(ctx, err)
	}
	if db.schema, err = readSchema(ctx, db.base); err != nil {
		return nil, classify(ctx, err)
	}
	if err := db.quickCheck(ctx); err != nil {
		return nil, classify(ctx, err)
	}
	return db, nil
}

// Close releases the database. Delivered blobs stay valid.
func (db *DB) Close() error {
	var errs []error
	if db.base != nil {
		errs = append(errs, db.base.Close())
		db.base = nil
	}
	if db.pool != nil {
		errs = append(errs, db.pool.Close())
		db.pool = nil
	}
	if db.source != nil {
		errs = append(errs, db.source.remove())
		db.source = nil
	}
	return errors.Join(errs...)
}

// SchemaVersion returns the version of the database's schema, 0 to 13. Databases of the first releases of opm have
// none.
func (db *DB) SchemaVersion() (version int, has bool) { return db.schema.version, db.schema.hasVersion }

func (db *DB) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("database %s: %w", fault.Quote(db.path), err)
}

// deadline bounds the time of one step, such as opening or loading.
func (db *DB) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, db.options.Limits.Time,
		fmt.Errorf("%w: reading took longer than %v", ErrLimit, db.options.Limits.Time))
}

// lockState takes the shared lock and keeps it, so that all connections see the same state of the database.
func (db *DB) lockState(ctx context.Context) error {
	var err error
	if db.base, err = db.conn(ctx); err != nil {
		return err
	}
	if _, err := db.base.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	var n int
	return db.base.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&n)
}

// Limits of a connection, see https://www.sqlite.org/c3ref/c_limit_attached.html.
const (
	limitLength   = 0
	limitAttached = 7
)

// conn returns a new connection to the database with its limits set. The caller must close it.
func (db *DB) conn(ctx context.Context) (*sql.Conn, error) {
	c, err := db.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	for id, value := range map[int]int{limitLength: db.options.Limits.ValueBytes, limitAttached: 0} {
		if _, err := driver.Limit(c, id, value); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// spareTables are the tables whose content is also in other tables and the manifests. The value is the table that must
// exist for that.
var spareTables = map[string]string{"api_provider": "properties", "api_requirer": "dependencies"}

// quickCheck checks the structure of the database. Damage without loss of needed data is a finding, not an error.
func (db *DB) quickCheck(ctx context.Context) error {
	problem, err := firstProblem(ctx, db.base, "PRAGMA quick_check(1)")
	if err != nil || problem == "" {
		return err
	}
	repaired := Finding{Kind: Repaired,
		Reason: "the file is damaged, but not in the tables that are read: " + fault.Quote(problem)}
	for _, table := range db.schema.tables() {
		here, err := firstProblem(ctx, db.base, fmt.Sprintf("PRAGMA quick_check(%q)", table))
		if err != nil {
			return err
		}
		if here == "" {
			continue
		}
		if again := spareTables[table]; again == "" || !db.schema.has(again) {
			return fmt.Errorf("%w: table %q: %s", ErrDamaged, table, fault.Quote(here))
		}
		delete(db.schema.columns, table)
		repaired.Field = table
		repaired.Reason = "the table is damaged; what it holds was taken from other tables and the " +
			"ClusterServiceVersions: " + fault.Quote(here)
	}
	db.findings.add(repaired)
	return nil
}

func firstProblem(ctx context.Context, c *sql.Conn, check string) (string, error) {
	var problem string
	if err := c.QueryRowContext(ctx, check).Scan(&problem); err != nil {
		return "", err
	}
	if problem == "ok" {
		return "", nil
	}
	return problem, nil
}
