package submission_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/check/submission"
)

// tree writes a repository and returns its root.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestFind(t *testing.T) {
	root := tree(t, map[string]string{
		"config.yaml":                                "organization: certified-operators\n",
		"operators/demo/ci.yaml":                     "",
		"operators/demo/1.0.0/manifests/a.yaml":      "",
		"operators/demo/1.0.0/metadata/a.yaml":       "",
		"operators/demo/1.1.0/manifests/a.yaml":      "",
		"operators/none/README.md":                   "",
		"catalogs/v4.17/demo/catalog.yaml":           "",
		"docs/page.md":                               "",
		"plain/operators-of-mine/a/manifests/a.yaml": "",
	})
	for dir, want := range map[string]submission.Place{
		".":                              {Kind: submission.Whole},
		"operators":                      {Kind: submission.Whole},
		"catalogs":                       {Kind: submission.Whole},
		"docs":                           {},
		"operators/demo":                 {Kind: submission.OperatorOf, Operator: "demo"},
		"operators/demo/1.0.0":           {Kind: submission.BundleOf, Operator: "demo", Bundle: "1.0.0"},
		"operators/demo/1.0.0/manifests": {Kind: submission.BundleOf, Operator: "demo", Bundle: "1.0.0"},
		"operators/demo/1.1.0":           {Kind: submission.OperatorOf, Operator: "demo"},
		"catalogs/v4.17":                 {Kind: submission.CatalogOf, Catalog: "v4.17"},
		"catalogs/v4.17/demo":            {Kind: submission.CatalogOf, Catalog: "v4.17", Operator: "demo"},
	} {
		if want.Kind != submission.None {
			want.Root = root
		}
		got, err := submission.Find(filepath.Join(root, dir))
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", dir, got, err, want)
		}
	}
	if got, err := submission.Find(filepath.Join(root, "operators/none")); !errors.Is(err, submission.ErrNoBundle) {
		t.Errorf("a directory of an operator without a bundle: %+v, %v", got, err)
	}
	for config, want := range map[string]string{"organization: certified-operators\n": "certified", "{}\n": "", "a: {\n": "no YAML",
		"organization: acme\n": "\"acme\"", "organization: [a]\n": "a list"} {
		write(t, root, "config.yaml", config)
		profile, err := submission.Place{Root: root}.Profile()
		if err == nil && string(profile) != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: profile %q, %v, want %s", config, profile, err, want)
		}
	}
	for _, dir := range []string{tree(t, map[string]string{"manifests/a.yaml": "", "metadata/a.yaml": ""}),
		tree(t, map[string]string{"catalogs/v4.17/demo/catalog.yaml": ""})} {
		if got, err := submission.Find(dir); err != nil || got.Kind != submission.None {
			t.Errorf("a directory that is no repository: %+v, %v", got, err)
		}
	}
	if _, err := submission.Find(filepath.Join(root, "missing")); err == nil {
		t.Error("a missing directory is found")
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	name = filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
