package change_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	_ "modernc.org/sqlite" // the driver

	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/edit/edittest"
	"github.com/operator-bindery/bindery/internal/testing/extent"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// meaning are queries for the meaningful content of a database: without entry ids, trailing newlines of manifests, and
// bundles in no channel.
var meaning = map[string]string{
	"bundle": `SELECT name, rtrim(coalesce(CAST(csv AS TEXT), ''), char(10)), rtrim(coalesce(CAST(bundle AS TEXT), ''), char(10)),
		bundlepath, skiprange, version, replaces, skips, substitutesfor FROM operatorbundle WHERE name IN used`,
	"package": `SELECT name, default_channel FROM package`,
	"channel": `SELECT name, package_name, head_operatorbundle_name FROM channel`,
	"entry": `SELECT DISTINCT e.channel_name, e.package_name, e.operatorbundle_name, r.operatorbundle_name
		FROM channel_entry e LEFT JOIN channel_entry r ON r.entry_id = e.replaces`,
	"image": `SELECT DISTINCT image, operatorbundle_name FROM related_image WHERE operatorbundle_name IN used`,
	// Constraints are properties; opm also stores them as dependencies.
	"dependency": `SELECT DISTINCT type, operatorbundle_name, operatorbundle_version, operatorbundle_path, value FROM dependencies
		WHERE operatorbundle_name IN used AND type <> 'olm.constraint'`,
	"property": `SELECT type, operatorbundle_name, operatorbundle_version, operatorbundle_path, value FROM properties WHERE operatorbundle_name IN used
		UNION SELECT type, operatorbundle_name, operatorbundle_version, operatorbundle_path, value FROM dependencies
		WHERE operatorbundle_name IN used AND type = 'olm.constraint'`,
	"deprecated": `SELECT operatorbundle_name FROM deprecated WHERE operatorbundle_name IN used`,
	"api": `SELECT group_name, version, kind, plural FROM api a WHERE EXISTS (SELECT 1 FROM api_provider p WHERE p.group_name = a.group_name
		AND p.version = a.version AND p.kind = a.kind AND p.operatorbundle_name IN used)`,
	"provided": `SELECT group_name, version, kind, operatorbundle_name, operatorbundle_version, operatorbundle_path FROM api_provider
		WHERE operatorbundle_name IN used`,
	"required": `SELECT group_name, version, kind, operatorbundle_name, operatorbundle_version, operatorbundle_path FROM api_requirer
		WHERE operatorbundle_name IN used`,
}

// rowsOf returns the rows of a database as texts.
func rowsOf(t testing.TB, path string) []string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out []string
	for what, query := range meaning {
		rows, err := db.Query("WITH used AS (SELECT DISTINCT operatorbundle_name FROM channel_entry) " + query)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			text := what
			for i, v := range values {
				var value any
				if columns[i] == "value" && json.Unmarshal([]byte(v.String), &value) == nil {
					v.String = fmt.Sprint(value) // equal however it is escaped
				}
				text += fmt.Sprintf(" %q", v.String)
			}
			out = append(out, text)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(out)
	return out
}

// TestRowsAreKept adds a package to every recorded database of the last schema version and removes it: the meaningful
// rows of the other packages stay the same. Rows of APIs that opm deleted although their bundles exist are restored.
func TestRowsAreKept(t *testing.T) {
	var databases atomic.Int64
	all := recorded.All(t)
	t.Run("databases", func(t *testing.T) {
		for n, name := range all.Databases(t) {
			if n%extent.Stride(1) != 0 {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				path := all.Database(t, name)
				db, err := sqlite.Open(context.Background(), path, sqlite.Options{})
				if err != nil {
					return // an invalid one
				}
				version, _ := db.SchemaVersion()
				err = db.Load(context.Background())
				repaired := slices.ContainsFunc(db.Findings(),
					func(f sqlite.Finding) bool { return f.Kind == sqlite.Repaired })
				if err = errors.Join(err, db.Close()); version < 13 || err != nil || repaired {
					return
				}
				databases.Add(1)
				before := rowsOf(t, path)
				for _, e := range []change.Edit{adding(edittest.Additions(t, "zzz 1.0.0 @a"), edit.AddOptions{}),
					removalOf("zzz")} {
					if _, err := e.InPlace(context.Background(), path, change.Options{}); err != nil {
						t.Fatal(err)
					}
				}
				after := slices.DeleteFunc(rowsOf(t, path), func(row string) bool {
					api := strings.HasPrefix(row, "api ") || strings.HasPrefix(row, "provided ") ||
						strings.HasPrefix(row, "required ")
					return api && !slices.Contains(before, row)
				})
				if d := edittest.Differences(after, before); d != "" {
					t.Error(d)
				}
			})
		}
	})
	if databases.Load() < int64(20/extent.Stride(1)) {
		t.Errorf("%d databases", databases.Load())
	}
}

// TestOwnEdgesOfRecordedSequences compares the columns with bundles' own edges with opm's, after the recorded sequences
// in replaces mode.
func TestOwnEdgesOfRecordedSequences(t *testing.T) {
	all := recorded.All(t)
	for _, s := range edittest.Sequences {
		if strings.Contains(s.Database, "semver") || s.Database == "skippatch" {
			continue // in other modes the columns equal the channels
		}
		t.Run(s.Database, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir() + "/index.db"
			if s.From != "" {
				data, err := os.ReadFile(all.Database(t, s.From))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, step := range s.Steps {
				if _, err := inPlace(path, change.Database, asEdit(t, step)); (err == nil) != (step.Kind == nil) {
					t.Fatal(err)
				}
			}
			if d := edittest.Differences(columns(t, path), columns(t, all.Database(t, s.Database))); d != "" {
				t.Error(d)
			}
		})
	}
}

// columns formats the edges that the bundles of a database declare for themselves.
func columns(t testing.TB, path string) []string {
	t.Helper()
	db, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	origins, err := db.Origins(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for name, o := range origins {
		slices.Sort(o.Skips)
		out = append(out,
			fmt.Sprintf("%s replaces %s skips %s substitutes for %s", name, o.Replaces, o.Skips, o.SubstitutesFor))
	}
	slices.Sort(out)
	return out
}
