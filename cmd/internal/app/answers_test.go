package app_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/app"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/internal/yamlout"
)

// otherOutputs are the commands whose --output is not the form of an answer, with what it is.
var otherOutputs = map[string]string{
	"render": "a catalog", "init": "a catalog", "migrate": "a catalog", "template render": "a catalog",
	"template convert": "a template", "render-template": "a catalog", "convert-template": "a template",
	"graph": "a drawing", "sbom": "documents of SPDX and CycloneDX",
	"bundle manifests": "objects for a cluster", "bundle extract": "objects for a cluster", "bundle unpack-job": "objects for a cluster",
	"registry initialize": "a file",
}

// answers are lines of all commands with an answer. A line with a mark of exclamation changes something: it is not
// repeated.
var answers = []string{
	"version", "schema", "cache info", "cache prune --dry-run", "validate cat", "check cat --profile opm", "check --list", "check --explain olmv1.package-name",
	"list packages small.db", "list channels small.db etcd", "list bundles small.db etcd", "list images small.db", "list images small.db --by bundle",
	"diff cat small.db", "diff --manifests bundle bundle --install-namespace etcd --watch-namespace etcd", "resolve small.db etcd", "resolve --v0 small.db etcd",
	"bundle validate bundle", "registry mirror small.db --to mirror.example.com",
	"inspect HOST/acme/catalog:v1", "verify HOST/acme/catalog:v1", "tags HOST/acme/catalog", "tree HOST/acme/catalog:v1",
	"copy HOST/acme/catalog:v1 oci:copied:v1 !", "sign HOST/acme/catalog:v1 --sign-key signing.key --sign-passphrase-file passphrase !", "verify HOST/acme/catalog:v1 --key signing.pub",
	"attest HOST/acme/catalog:v1 --type https://example.com/t/v1 --predicate predicate.json --sign-key signing.key --sign-passphrase-file passphrase !",
	"attach HOST/acme/catalog:v1 predicate.json --type application/vnd.example.note !",
	"mirror plan -c set.yaml", "mirror run -c set.yaml --workspace ws docker://HOST/m !", "mirror resources -c set.yaml --workspace ws docker://HOST/m --dry-run",
	"mirror publish -c set.yaml --workspace ws docker://HOST/m --dry-run", "mirror verify -c set.yaml --workspace ws docker://HOST/m",
	"mirror inventory docker://HOST/m --to stock !", "mirror delete -c delete.yaml --workspace ws docker://HOST/m --dry-run",
}

// Every command with an answer has it as text, as JSON and as YAML, names these forms where another is asked for, and
// says the same in both documents, with the fields in one order.
func TestAnswersAreTextJSONAndYAML(t *testing.T) {
	r, dir := testregistry.New(t), clitest.WorkDir(t)
	if err := os.CopyFS(filepath.Join(dir, "bundle"), os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
		t.Fatal(err)
	}
	clitest.WriteFile(t, filepath.Join(dir, "passphrase"), "secret")
	clitest.WriteFile(t, filepath.Join(dir, "predicate.json"), `{"tested": true}`)
	const set = "apiVersion: mirror.openshift.io/v2alpha1\nkind: "
	clitest.WriteFile(t, filepath.Join(dir, "set.yaml"), set+"ImageSetConfiguration\nmirror:\n  additionalImages:\n  - name: "+r.Host()+"/acme/catalog:v1\n")
	clitest.WriteFile(t, filepath.Join(dir, "delete.yaml"), set+"DeleteImageSetConfiguration\ndelete:\n  additionalImages:\n  - name: "+r.Host()+"/acme/catalog:v1\n")
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	clitest.Done(t, dir, "bindery", "build", "catalog", "cat", "-t", r.Host()+"/acme/catalog:v1", "--server", "none", "--push", "--use-http")
	clitest.Done(t, dir, "bindery", "keys", "generate", "--name", "signing", "--sign-passphrase-file", "passphrase")
	run := func(line string, format string) clitest.Result {
		args := strings.Fields(strings.NewReplacer("HOST", r.Host(), " !", "").Replace(line))
		return clitest.RunProgram(t, dir, "bindery", append(args, "-o", format, "--use-http")...)
	}

	seen := map[string]bool{}
	for _, line := range answers {
		seen[clitest.CommandIn(strings.Fields(line))] = true
		if got := run(line, "nosuch"); got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, `invalid --output value "nosuch", expected (text|json|yaml`) {
			t.Errorf("%s: an unknown form: %+v", line, got)
		}
		asYAML := run(line, "yaml")
		if asYAML.Stdout == "" || strings.Contains(asYAML.Stderr, "error:") || strings.HasPrefix(asYAML.Stdout, "{") {
			t.Errorf("%s: %+v", line, asYAML)
		}
		if strings.HasSuffix(line, " !") {
			continue
		}
		asJSON, asText := run(line, "json"), run(line, "text")
		want, err := yamlout.AppendYAML(nil, []byte(asJSON.Stdout))
		if err != nil || string(want) != asYAML.Stdout || asJSON.Status != asYAML.Status || asText.Status != asYAML.Status {
			t.Errorf("%s: %v: the answers differ: %+v, %+v, %+v", line, err, asJSON, asYAML, asText.Status)
		}
		if strings.HasPrefix(asText.Stdout, "{") {
			t.Errorf("%s: the text is JSON", line)
		}
	}

	p := &option.Session{Program: &program.Program{Name: "bindery", Stdout: &cmdline.Pipe{W: io.Discard}, Stderr: io.Discard}}
	var walk func(prefix string, all []*cli.Command)
	walk = func(prefix string, all []*cli.Command) {
		for _, c := range all {
			name := strings.TrimSpace(prefix + " " + c.Name)
			walk(name, c.Subcommands)
			for _, f := range c.Flags {
				s, ok := f.(*cli.StringFlag)
				if !ok || s.Name != "output" || otherOutputs[strings.TrimPrefix(name, "alpha ")] != "" {
					continue
				}
				if !slices.Contains(s.Aliases, "o") || !strings.Contains(s.Usage, "(text|json|yaml") || s.Value != "text" {
					t.Errorf("%s: --output is %+v", name, s)
				}
				if !seen[strings.TrimPrefix(name, "alpha ")] && !c.Hidden {
					t.Errorf("%s: no line of it is tried", name)
				}
			}
		}
	}
	walk("", app.New(p).Commands)
}
