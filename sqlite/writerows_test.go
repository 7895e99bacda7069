package sqlite_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// meaning are queries for the meaningful content of a database, which ids and the order of rows are not.
var meaning = map[string]string{
	"schema_migrations": "SELECT version FROM schema_migrations",
	"package":           "SELECT name, default_channel FROM package",
	"channel":           "SELECT package_name, name, head_operatorbundle_name FROM channel",
	"channel_entry": `SELECT e.package_name, e.channel_name, e.operatorbundle_name, e.depth, r.operatorbundle_name, r.channel_name, r.depth
		FROM channel_entry e LEFT JOIN channel_entry r ON r.entry_id = e.replaces`,
	"operatorbundle": "SELECT name, CAST(csv AS TEXT), bundlepath, skiprange, version, substitutesfor FROM " +
		"operatorbundle",
	"replaces":      "SELECT name, replaces, skips FROM operatorbundle",
	"manifests":     "SELECT name, CAST(bundle AS TEXT) FROM operatorbundle",
	"api":           "SELECT * FROM api",
	"api_provider":  "SELECT DISTINCT * FROM api_provider",
	"api_requirer":  "SELECT DISTINCT * FROM api_requirer",
	"related_image": "SELECT DISTINCT operatorbundle_name, image FROM related_image",
	"dependencies": "SELECT DISTINCT type, CAST(value AS TEXT), operatorbundle_name, operatorbundle_version, " +
		"operatorbundle_path FROM dependencies",
	"properties": "SELECT DISTINCT type, CAST(value AS TEXT), operatorbundle_name, operatorbundle_version, " +
		"operatorbundle_path FROM properties",
	"deprecated": "SELECT * FROM deprecated",
}

// rowsOf returns the rows of a query as sorted texts, with JSON and the order of manifests normalised.
func rowsOf(t *testing.T, path, query string) []string {
	t.Helper()
	db := writer(t, path, "mode=ro")
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		targets := make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		var line []string
		for _, v := range values {
			if !v.Valid {
				line = append(line, "NULL")
				continue
			}
			line = append(line, normalDocuments(v.String))
		}
		out = append(out, strings.Join(line, " | "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// normalDocuments sorts the JSON objects in a text and their keys. Other texts are unchanged.
func normalDocuments(text string) string {
	if !strings.HasPrefix(text, "{") {
		return text
	}
	var list []string
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	for {
		var v any
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			slices.Sort(list)
			return strings.Join(list, "\n")
		}
		if err != nil {
			return text
		}
		b, err := json.Marshal(v)
		if err != nil {
			return text
		}
		list = append(list, string(b))
	}
}

// otherRows are the tables of recorded databases in which opm's rows differ from ours, with the reason.
var otherRows = map[string]map[string]string{
	"constraint": {
		"dependencies": "a constraint is written to the properties, where opm finds it again",
		"properties":   "a constraint is written to the properties, where opm finds it again",
	},
	"deprec-readd":   truncated,
	"deprec-two":     truncated,
	"prune-stranded": truncated,
	"deprec-v1.2.0":  truncated,
	"semver": {
		"replaces": ofSemver,
		"api":      "of bundles whose manifests opm has thrown away, it is not known which dependencies were required APIs",
		"api_requirer": "of bundles whose manifests opm has thrown away, it is not known which dependencies were " +
			"required APIs",
	},
	"incremental-semver": {"replaces": ofSemver},
	"skippatch":          {"replaces": ofSemver},
	"subs":               {"replaces": ofSubstitutes},
	"subs-two-step":      {"replaces": ofSubstitutes},
}

const (
	ofSemver      = "opm's semver mode keeps what the ClusterServiceVersions say, which is not what the channels say"
	ofSubstitutes = "opm has changed what a bundle replaces that is skipped now, and of which no channel says it"
	ofTriggers    = "with the APIs of a deleted bundle, opm's triggers have deleted those that others provide"
)

var truncated = map[string]string{"api": ofTriggers, "api_provider": ofTriggers}

// stranded deletes the bundles in no channel and all their rows: they are not in the catalog.
func stranded(t *testing.T, path string) {
	t.Helper()
	db := writer(t, path, "_pragma=foreign_keys(0)")
	exec(t, db, "DROP TRIGGER api_provider_cleanup", "DROP TRIGGER api_requirer_cleanup",
		"CREATE TABLE gone AS SELECT name FROM operatorbundle WHERE name NOT IN (SELECT operatorbundle_name FROM "+
			"channel_entry)",
		"DELETE FROM operatorbundle WHERE name IN (SELECT name FROM gone)")
	for _, table := range []string{"api_provider", "api_requirer", "related_image", "dependencies", "properties",
		"deprecated"} {
		exec(t, db, "DELETE FROM "+table+" WHERE operatorbundle_name IN (SELECT name FROM gone)")
	}
	exec(t, db, `DELETE FROM api WHERE (group_name, version, kind) NOT IN
		(SELECT group_name, version, kind FROM api_provider UNION SELECT group_name, version, kind FROM api_requirer)`)
}

func testRows(t *testing.T, c recorded.Collection) {
	for _, name := range c.Databases(t) {
		if broken[name].why != "" || name == "corrupt-page" {
			continue
		}
		if _, ok := old[name]; ok || strings.HasPrefix(name, "schema-") || strings.HasPrefix(name, "down-") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			original := c.Database(t, name)
			catalog, _, err := read(t, original, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			path, _ := create(t, catalog.Blobs(), sqlite.WriteOptions{})
			stranded(t, original)
			for _, table := range []string{"schema_migrations", "package", "channel", "channel_entry", "operatorbundle",
				"replaces", "manifests", "api", "api_provider", "api_requirer", "related_image", "dependencies",
				"properties", "deprecated"} {
				got, want := rowsOf(t, path, meaning[table]), rowsOf(t, original, meaning[table])
				why := otherRows[name][table]
				if same := slices.Equal(got, want); same != (why == "") {
					t.Errorf("table %s: %s\n%s", table, why,
						difference(strings.Join(got, "\n"), strings.Join(want, "\n")))
				}
			}
		})
	}
}

func TestRowsOfRecorded(t *testing.T)    { testRows(t, recorded.Part(t)) }
func TestRowsOfAllRecorded(t *testing.T) { testRows(t, recorded.All(t)) }

// The last opm would render a written database to the same result as the original.
func testForOpm(t *testing.T, c recorded.Collection) {
	for _, name := range c.Databases(t) {
		if _, ok := broken[name]; ok {
			continue
		}
		golden := "golden/" + name + "/render.json"
		if _, ok := old[name]; ok || !c.Has(golden) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			catalog, _, err := read(t, c.Database(t, name), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			path, _ := create(t, catalog.Blobs(), sqlite.WriteOptions{})
			got, err := write(t, path, declcfg.FormatJSON, edit.LevelNone, sqlite.Options{Compat: sqlite.CompatOPM})
			if err != nil {
				t.Fatal(err)
			}
			want := string(c.File(t, golden))
			if name == "constraint" {
				// A constraint is written where opm does not lose it.
				got, want = edited(t, got, withoutConstraints), edited(t, want, func(*declcfg.Catalog) {})
			}
			if d := difference(got, want); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWrittenForOpm(t *testing.T)    { testForOpm(t, recorded.Part(t)) }
func TestAllWrittenForOpm(t *testing.T) { testForOpm(t, recorded.All(t)) }
