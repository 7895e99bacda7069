package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

func TestMigrateTellsWhatIsNotAsItWas(t *testing.T) {
	dir := clitest.WorkDir(t)
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	db, err := dec.DecodeAll([]byte(clitest.ReadFile(t, "../../../testdata/indexes/db/schema-3.db.zst")), nil)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "schema-3.db"), db, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := clitest.RunProgram(t, dir, "bindery", "migrate", "schema-3.db", "out", "--verify", "--report", "-")
	if got.Status != 0 || !strings.Contains(got.Stderr, "derived data that the database does not store (4: ") {
		t.Errorf("%+v", got)
	}
	var report struct{ Findings []any }
	if err := json.Unmarshal([]byte(got.Stdout), &report); err != nil || len(report.Findings) != 4 {
		t.Errorf("the report on standard output: %v\n%s", err, got.Stdout)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "migrate", "small.db", "plain", "--verify"); strings.Contains(got.Stderr,
		"dropped") || !strings.HasSuffix(got.Stderr, "verified\n") {
		t.Errorf("nothing to tell: %+v", got)
	}
}

func TestImageWithoutAName(t *testing.T) {
	dir := clitest.WorkDir(t)
	got := clitest.RunProgram(t, dir, "bindery", "build", "catalog", "cat", "--output", "oci:image", "--digest-file", "digest")
	want := "oci:image\n" + clitest.ReadFile(t, filepath.Join(dir, "digest")) + "\n"
	if got.Status != 0 || got.Stdout != want {
		t.Errorf("got %+v, want %q", got, want)
	}
}

func TestAccountOnStandardOutput(t *testing.T) {
	got := clitest.RunProgram(t, clitest.WorkDir(t), "bindery", "build", "catalog", "cat", "-t", "a/b:v1", "--output", "oci:image",
		"--metadata-file", "-")
	var account struct {
		Digest     string
		References []string
	}
	if err := json.Unmarshal([]byte(got.Stdout), &account); err != nil || got.Status != 0 ||
		len(account.References) != 1 || account.References[0] != "a/b@"+account.Digest {
		t.Errorf("%v: %+v", err, got)
	}
}

func TestLayoutsAreNamedWithTheirTags(t *testing.T) {
	dir := clitest.WorkDir(t)
	for _, tag := range []string{"v1", "v2"} {
		if got := clitest.RunProgram(t, dir, "bindery", "build", "catalog", "cat", "-t", "a/b:"+tag, "--label", "tag="+tag,
			"--output", "oci:image"); got.Status != 0 {
			t.Fatal(got)
		}
	}
	for args, want := range map[string]string{
		"render oci:image":           `holds 2 images, and none is chosen by a tag, or by @ and its number if it has none: "v1", "v2"`,
		"render oci:image:v3":        `has no image with the tag "v3": its tags are "v1", "v2"`,
		"render image":               "is an OCI image layout, not a catalog: write oci:image:TAG",
		"validate image":             "write oci:image:TAG",
		"serve image":                "write oci:image:TAG",
		"build catalog image -t a/b": "write oci:image:TAG",
	} {
		if got := clitest.RunProgram(t, dir, "bindery", strings.Fields(args)...); got.Status != 1 ||
			!strings.Contains(got.Stderr, want) {
			t.Errorf("%s: got %+v, want %q", args, got, want)
		}
	}
}

func TestExamplesUnderTheOtherName(t *testing.T) {
	got := clitest.RunProgram(t, ".", "opm", "render", "--help")
	if !strings.Contains(got.Stdout, "\n  opm render index.db") || strings.Contains(got.Stdout, "bindery") {
		t.Errorf("%+v", got)
	}
}

// Problems name files by their path from the working directory, so that editors can open them.
func TestProblemsNameFilesThatCanBeOpened(t *testing.T) {
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "broken", "a", "catalog.yaml"),
		"schema: olm.package\nname: a\n  defaultChannel: x\n")
	clitest.WriteFile(t, filepath.Join(dir, "odd", "a", "catalog.json"),
		strings.Replace(clitest.PackageText("a"), "{", `{"unheard-of": 1,`, 1))
	clitest.WriteFile(t, filepath.Join(dir, "more", "catalog.json"), clitest.PackageText("b"))
	for _, from := range []string{"", filepath.Join(dir, "")} {
		for _, args := range []string{
			"validate broken", "render broken", "list packages broken", "diff broken broken", "graph broken",
			"migrate broken out", "build catalog broken -t a/b:v1 --dry-run",
			"catalog merge broken more", "validate odd", "render odd", "build catalog odd -t a/b:v1 --dry-run",
			"catalog rm odd nosuch", "index rm -f odd -o nosuch -t a/b:v1 --dry-run",
		} {
			list := strings.Fields(args)
			for i, word := range list {
				if word == "broken" || word == "odd" || word == "more" {
					list[i] = filepath.Join(from, word)
				}
			}
			want := filepath.Join(from, "broken", "a", "catalog.yaml") + ":"
			if strings.Contains(args, "odd") {
				want = filepath.Join(from, "odd", "a", "catalog.json") + ":1"
			}
			if got := clitest.RunProgram(t, dir, "bindery", list...); !strings.Contains(got.Stderr, want) ||
				from == "" && strings.Contains(got.Stderr, dir) {
				t.Errorf("%s: want %s: %.500q", args, want, got.Stderr)
			}
		}
	}
}
