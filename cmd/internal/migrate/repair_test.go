package migrate_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// changedDatabase writes small.db, changed by SQL statements, to a directory as index.db.
func changedDatabase(t *testing.T, statements ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	path := filepath.Join(dir, "index.db")
	clitest.CopyFile(t, "../../../testdata/db/small.db", path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A related image that is not a pull spec makes a database unreadable, unless it is read as opm does or repaired.
func TestMigrateRepairs(t *testing.T) {
	dir := changedDatabase(t,
		"INSERT INTO related_image (image, operatorbundle_name) VALUES ('oci://quay.io/kuadrant/wasm-shim:v0.5.0', "+
			"'etcdoperator.v0.9.2')")
	got := clitest.RunProgram(t, dir, "bindery", "migrate", "index.db", "refused")
	if got.Status != 1 || !strings.Contains(got.Stderr, "hint: --repair ") {
		t.Errorf("%+v", got)
	}
	got = clitest.RunProgram(t, dir, "bindery", "migrate", "index.db", "repaired", "--repair", "--verify", "--report", "-")
	if got.Status != 4 || !strings.Contains(got.Stderr, "repairs were made (1)") ||
		!strings.Contains(got.Stdout,
			`"before": "oci://quay.io/kuadrant/wasm-shim:v0.5.0",`+"\n"+
				`      "after": "quay.io/kuadrant/wasm-shim:v0.5.0",`) {
		t.Errorf("%+v", got)
	}
	clitest.Done(t, dir, "bindery", "validate", "repaired")
	clitest.Done(t, dir, "bindery", "migrate", "repaired", "again", "--repair")

	clitest.Done(t, dir, "opm", "migrate", "index.db", "as-opm")
	if text := clitest.ReadFile(t, filepath.Join(dir, "as-opm", "etcd", "catalog.json")); !strings.Contains(text,
		`"oci://quay.io/kuadrant/wasm-shim:v0.5.0"`) {
		t.Error("opm writes the image as it is")
	}
	if text := clitest.Done(t, dir, "bindery", "render", "index.db", "--compat=opm"); !strings.Contains(text,
		`"oci://quay.io/kuadrant/wasm-shim:v0.5.0"`) {
		t.Error("opm renders the image as it is")
	}
	got = clitest.RunProgram(t, dir, "opm", "validate", "as-opm")
	if want := `package \"etcd\" bundle \"etcdoperator.v0.9.2\" relatedImages[1].image: invalid image pull spec \"oci://quay.io/kuadrant/wasm-shim:v0.5.0\": invalid reference format`; got.Status != 1 || !strings.Contains(got.Stderr, want) {
		t.Errorf("%+v", got)
	}

	clitest.WriteFile(t, filepath.Join(dir, "list"), "index.db out-list\n")
	if got := clitest.RunProgram(t, dir, "bindery", "migrate", "--from-file", "list", "--repair"); got.Status != 4 ||
		!strings.Contains(got.Stderr, "repairs were made in 1 of 1 line") {
		t.Errorf("%+v", got)
	}
}

// Started as opm, the error about a database begins as opm's does and has the problems of all packages.
func TestOpmInvalidDatabase(t *testing.T) {
	dir := changedDatabase(t, "UPDATE channel_entry SET replaces = NULL WHERE replaces IS NOT NULL",
		"UPDATE operatorbundle SET replaces = NULL")
	tree := "invalid index:\n"
	for _, c := range []struct{ args, want string }{
		{"render index.db", `render reference "index.db": ` + tree},
		{"migrate index.db out",
			`level=fatal msg="render catalog image: render reference \"index.db\": invalid index:\n`},
		{"alpha list packages index.db", `level=fatal msg="render reference \"index.db\": invalid index:\n`},
	} {
		got := clitest.RunProgram(t, dir, "opm", strings.Fields(c.args)...)
		if got.Status != 1 || !strings.Contains(got.Stderr, c.want) || strings.Count(got.Stderr,
			"invalid package") != 2 || strings.Count(got.Stderr, "invalid index") != 1 {
			t.Errorf("%s: %+v", c.args, got)
		}
	}
}

// Started as opm, packages with a related image that is not a pull spec can be edited and exported, as opm does not
// parse these images.
func TestOpmEditsAnyImages(t *testing.T) {
	conf := testregistry.Recorded(t).RegistriesConf(t, testregistry.RecordedHost)
	const image = "quay.io/foo/bar@"
	for _, args := range []string{
		"registry add -d index.db -b etcd --image-ref-template " + clitest.RefTemplate,
		"registry rm -d index.db -o silicom-sts-operator",
		"registry prune -d index.db -p etcd",
		"registry prune-stranded -d index.db",
		"registry deprecatetruncate -d index.db -b 127.0.0.1:5056/community/etcd:v0.9.0",
		"index add -f index.db -b etcd -t acme/db:v2 --server none --image-ref-template " + clitest.RefTemplate,
		"index add -f index.db -b etcd --generate --image-ref-template " + clitest.RefTemplate,
		"index rm -f index.db -o silicom-sts-operator -t acme/db:v2 --server none",
		"index export -i index.db -p etcd -f out --registries-conf " + conf + " --no-cache",
	} {
		t.Run(args, func(t *testing.T) {
			dir := changedDatabase(t,
				"INSERT INTO related_image (image, operatorbundle_name) VALUES ('"+image+"', 'etcdoperator.v0.9.2')")
			clitest.NewBundle(t, filepath.Join(dir, "etcd"))
			list := strings.Fields(args)
			got := clitest.RunProgram(t, dir, "bindery", list...)
			if got.Status == 0 {
				t.Error("accepted under the name bindery")
			}
			if strings.Contains(got.Stderr,
				"invalid image pull spec") && list[1] != "export" && !strings.Contains(got.Stderr, "migrate --repair") {
				t.Errorf("no hint in %s", got.Stderr)
			}
			clitest.Done(t, dir, "opm", list...)
			out := map[string]string{"registry": "index.db", "index": "oci:db.oci:v2"}[list[0]]
			switch {
			case strings.Contains(args, "--generate"):
				out = "database/index.db"
			case list[1] == "export":
				clitest.ReadFile(t, filepath.Join(dir, "out", "etcd", "package.yaml"))
				return
			}
			if text := clitest.Done(t, dir, "opm", "render", out); !strings.Contains(text, `"`+image+`"`) {
				t.Errorf("the image is not in the new database")
			}
		})
	}
}
