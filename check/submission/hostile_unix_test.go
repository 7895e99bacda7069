//go:build unix

package submission_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/check/submission"
)

// found returns the errors about a repository, each with its rule.
func found(t *testing.T, root string) string {
	t.Helper()
	run, err := rules.NewRun(rules.Options{Profiles: []rules.Profile{rules.Community}}, submission.Rules())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	place := submission.Place{Kind: submission.Whole}
	if err := submission.Open(dir.FS()).Check(t.Context(), run, place, submission.Options{AllBundles: true}); err != nil {
		return "cannot be checked: " + err.Error()
	}
	var b strings.Builder
	for _, f := range run.Report("", rules.OnRepository).Findings {
		if f.Severity == rules.Error {
			b.WriteString(f.Rule + ": " + f.Text() + "\n")
		}
	}
	return b.String()
}

const annotations = "annotations:\n  operators.operatorframework.io.bundle.package.v1: demo\n" +
	"  operators.operatorframework.io.bundle.channels.v1: stable\n"

// What a repository has is input: files that are none, that lead out, that are large or multiply.
func TestHostileRepositories(t *testing.T) {
	base := func() map[string]string {
		return map[string]string{
			"config.yaml":            "organization: community-operators\n",
			"operators/demo/ci.yaml": "updateGraph: replaces-mode\n",
			"operators/demo/1.0.0/metadata/annotations.yaml":              annotations,
			"operators/demo/1.0.0/manifests/a.clusterserviceversion.yaml": "metadata: {name: demo.v1.0.0}\nspec: {version: 1.0.0}\n",
		}
	}
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += string(c) + ": &" + string(c) + " [*" + strings.Repeat(string(c-1)+", *", 8) + string(c-1) + "]\n"
	}
	for name, test := range map[string]struct {
		change func(t *testing.T, root string)
		want   string
	}{
		"an alias that multiplies": {func(t *testing.T, root string) { write(t, root, "operators/demo/ci.yaml", bomb) },
			"operators/demo/ci.yaml"},
		"a file that is too large": {func(t *testing.T, root string) {
			write(t, root, "operators/demo/ci.yaml", strings.Repeat("# comment\n", 1<<20))
		}, "limit"},
		"a deep value": {func(t *testing.T, root string) {
			write(t, root, "operators/demo/ci.yaml", strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000))
		}, "operators/demo/ci.yaml"},
		"a FIFO": {func(t *testing.T, root string) {
			replace(t, root, "operators/demo/ci.yaml", func(name string) error { return syscall.Mkfifo(name, 0o644) })
		}, "is not a regular file"},
		"a link that leads out": {func(t *testing.T, root string) {
			replace(t, root, "operators/demo/1.0.0/manifests/a.clusterserviceversion.yaml", func(name string) error {
				return os.Symlink("/etc/passwd", name)
			})
		}, "a.clusterserviceversion.yaml"},
		"a directory that is a link out": {func(t *testing.T, root string) {
			if err := os.Symlink("/etc", filepath.Join(root, "operators/demo/2.0.0")); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"an operator that is a link to itself": {func(t *testing.T, root string) {
			if err := os.Symlink("loop", filepath.Join(root, "operators/loop")); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"a catalog that is a FIFO": {func(t *testing.T, root string) {
			write(t, root, "config.yaml", "allowed_bundle_registries: [quay.io/a]\n")
			write(t, root, "catalogs/v4.17/demo/catalog.yaml", "")
			replace(t, root, "catalogs/v4.17/demo/catalog.yaml", func(name string) error { return syscall.Mkfifo(name, 0o644) })
		}, "it is not a regular file"},
		"many channels": {func(t *testing.T, root string) {
			write(t, root, "operators/demo/1.0.0/metadata/annotations.yaml", strings.Replace(annotations, "stable", strings.Repeat("a,", 100_000), 1))
		}, "more than 200 channels"},
		"a pattern that is none": {func(t *testing.T, root string) {
			write(t, root, "config.yaml", "tests: [{name: check_operator_name, ignore_operators: [\"(\"]}]\n")
		}, "submission.config: config.yaml:1"},
		"text that is not UTF-8": {func(t *testing.T, root string) {
			write(t, root, "operators/demo/1.0.0/metadata/annotations.yaml", "annotations: \xff\n")
		}, "annotations.yaml"},
		"a name with control characters": {func(t *testing.T, root string) {
			write(t, root, "operators/de\x1b[2Jmo/ci.yaml", "a: {\n")
		}, "ci.yaml"},
		"skips without end": {func(t *testing.T, root string) {
			write(t, root, "operators/demo/1.0.0/manifests/a.clusterserviceversion.yaml",
				"metadata: {name: demo.v1.0.0}\nspec:\n  version: 1.0.0\n  skips:\n"+strings.Repeat("  - demo.v1.0.0\n", 100_000))
		}, "check_upgrade_graph_loop"},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, base())
			test.change(t, root)
			if got := found(t, root); !strings.Contains(got, test.want) {
				t.Errorf("%.2000s\nlacks %q", got, test.want)
			}
		})
	}
}

func replace(t *testing.T, root, name string, with func(name string) error) {
	t.Helper()
	name = filepath.Join(root, name)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := with(name); err != nil {
		t.Fatal(err)
	}
}
