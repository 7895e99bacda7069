package catalog_test

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// withoutManifests lists the bundles of a database whose columns csv and bundle are NULL, and the bundles that are not
// heads.
func withoutManifests(t *testing.T, path string) (cleared, below []string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	names := func(query string) (names []string) {
		rows, err := db.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		return names
	}
	return names("SELECT name FROM operatorbundle WHERE csv IS NULL AND bundle IS NULL ORDER BY name"),
		names(
			"SELECT name FROM operatorbundle WHERE name NOT IN (SELECT head_operatorbundle_name FROM channel) ORDER " +
				"BY name")
}

// The modes semver and semver-skippatch keep only the manifests of heads in a database, as in opm. All are kept with a
// flag and in mode replaces.
func TestModeSemverKeepsTheManifestsOfHeads(t *testing.T) {
	for _, c := range []struct {
		args string
		none bool
	}{
		{"--mode semver", true},
		{"--mode semver-skippatch", true},
		{"--mode semver --keep-manifests", false},
		{"--mode semver-skippatch --keep-manifests", false},
		{"--mode replaces", false},
	} {
		for _, into := range []string{"registry add -d index.db", "catalog add index.db",
			"index add -f index.db --generate --output-format sqlite -d index.Dockerfile"} {
			t.Run(into+" "+c.args, func(t *testing.T) {
				dir, path := clitest.EditDir(t), "index.db"
				args := strings.Fields(into + " " + c.args + " --image-ref-template " + clitest.RefTemplate)
				if args[0] == "catalog" {
					args = append(args, "constraint-1", "constraint-2")
				} else {
					args = append(args, "-b", "constraint-1,constraint-2")
				}
				if args[0] == "index" {
					path = filepath.Join("database", "index.db")
				}
				clitest.Done(t, dir, "bindery", args...)
				cleared, below := withoutManifests(t, filepath.Join(dir, path))
				if len(below) < 5 || c.none && !slices.Equal(cleared, below) || !c.none && len(cleared) > 0 {
					t.Errorf("without manifests: %s\nno heads: %s", cleared, below)
				}
				// The resulting database can be read and extended.
				if got := channelsOf(t, dir, path); !strings.Contains(got,
					"synth-constraint/alpha=synth-constraint.v0.2.0") || !strings.Contains(got, "etcd/") {
					t.Error(got)
				}
				clitest.Done(t, dir, "bindery", "registry", "add", "-d", path, "-b", "etcd", "--image-ref-template",
					clitest.RefTemplate)
			})
		}
	}
}
