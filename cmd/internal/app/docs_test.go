package app_test

import (
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/app"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/testing/manual"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/internal/version"
)

// parsedOnly is the list of the documented commands that do not run in a test, as they need a cluster, a server, much
// time or files of the reader: their names and flags are those of the program anyway. A line is a page and a
// command.
const parsedOnly = "testdata/docs-parsed.txt"

// mostParsedOnly bounds that list. It may only shrink.
const mostParsedOnly = 54

// documented returns the commands of the pages below docs that do not run as a whole, by page. Those behind a prompt
// are among them, and what is piped into or out of a command is not.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	pages, err := manual.All(os.DirFS("../../.."), "docs/**", "CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, p := range pages {
		if slices.Contains(pagesThatRun, p.Path) || p.Path == "docs/reference/commands.md" {
			continue
		}
		for _, b := range p.Blocks {
			for _, line := range strings.Split(strings.ReplaceAll(b.Text, "\\\n", " "), "\n") {
				line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
				if words := shellWords(line); len(words) > 1 && words[0] == "bindery" {
					out[p.Path] = append(out[p.Path], strings.Join(strings.Fields(line), " "))
				}
			}
		}
	}
	return out
}

// shellWords returns the words of the first command of a line: quotes are removed, and a comment, a pipe, a redirection
// or an ampersand ends it.
func shellWords(line string) (words []string) {
	var word strings.Builder
	var quote rune
	began := false
	flush := func() {
		if began {
			words = append(words, word.String())
		}
		word.Reset()
		began = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, began = r, true
		case r == ' ':
			flush()
		case strings.ContainsRune("|<>;&", r) || r == '#' && !began:
			flush()
			return words
		default:
			word.WriteRune(r)
			began = true
		}
	}
	flush()
	return words
}

// Every command of the documentation is one that the program has, with flags that it has. All but those that are listed
// run, in a directory with the files that they name; example hosts stand for a registry. A check may find something,
// and a comparison differences: that is status 1.
func TestDocumentedCommands(t *testing.T) {
	skip := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(clitest.ReadFile(t, parsedOnly)), "\n") {
		skip[line] = true
	}
	if len(skip) > mostParsedOnly {
		t.Errorf("%d commands are only parsed, %d at most", len(skip), mostParsedOnly)
	}
	run, found := 0, map[string]bool{}
	files := docsDir(t)
	docsFiles(t, files)
	images := docsRegistry(t, files)
	for page, lines := range documented(t) {
		t.Run(page, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(files)); err != nil {
				t.Fatal(err)
			}
			clitest.WriteFile(t, filepath.Join(dir, "policy.json"),
				strings.ReplaceAll(clitest.ReadFile(t, filepath.Join(files, "policy.json")), files, dir))
			registry := images.Copy(t)
			clitest.WriteFile(t, filepath.Join(dir, "registries.conf"),
				clitest.ReadFile(t, testregistry.Recorded(t).RegistriesConf(t, testregistry.RecordedHost)))
			hosts := strings.NewReplacer("registry.example.com", registry.Host(), "mirror.example.com:5000",
				registry.Host(),
				"mirror.example.com", registry.Host(), "quay.io/acme", registry.Host()+"/acme")
			clitest.WriteFile(t, filepath.Join(dir, "indexes.txt"), "index.db -> "+registry.Host()+"/acme/listed:v1\n")
			for _, line := range lines {
				args := shellWords(hosts.Replace(line))
				args = serverless(t, args)
				if slices.Contains(pagesOfMirrors, page) {
					continue // they run in order, in another test
				}
				if name := page + " " + strings.Join(shellWords(line), " "); skip[name] {
					found[name] = true
					continue
				}
				run++
				args = args[1:]
				cmd := clitest.Command(dir, "bindery", args...)
				cmd.Env = append(cmd.Env, "BINDERY_USE_HTTP=true", "BINDERY_SIGN_PASSPHRASE=open sesame",
					"CONTAINERS_REGISTRIES_CONF="+filepath.Join(dir, "registries.conf"))
				got := clitest.Finish(t, cmd)
				answered := (args[0] == "check" || args[0] == "diff") && got.Status == 1 && got.Stdout != "" &&
					!strings.Contains(got.Stderr, "error: ")
				if got.Status != 0 && !answered {
					t.Errorf("%s\nstatus %d\n%s", line, got.Status, got.Stderr)
				}
			}
		})
	}
	for line := range skip {
		if !found[line] {
			t.Errorf("%s: no page has %q", parsedOnly, line)
		}
	}
	t.Logf("%d commands ran, %d were only parsed", run, len(found))
}

// serverless parses a command, and adds that the image that it builds gets no server, if the command says nothing about one:
// to pack the program of the tests as the server takes seconds, and is what other tests are about.
func serverless(t *testing.T, args []string) []string {
	t.Helper()
	p := &option.Session{Program: &program.Program{Stdin: strings.NewReader(""), Stdout: &cmdline.Pipe{W: io.Discard}, Stderr: io.Discard}}
	line, err := cmdline.Parse(app.New(p), args)
	if err != nil {
		t.Errorf("%s\n%v", strings.Join(args, " "), err)
	}
	leaf := line.Leaf()
	if leaf == nil || !slices.ContainsFunc(leaf.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), "server") }) {
		return args
	}
	given := func(names ...string) bool {
		return slices.ContainsFunc(args, func(arg string) bool {
			name, _, _ := strings.Cut(arg, "=")
			return slices.Contains(names, name)
		})
	}
	if !given("-t", "--tag", "--push") || given("--server", "--binary-image", "--base", "--generate") {
		return args
	}
	return append(slices.Clone(args), "--server", "none")
}

// The commands in the steps of CI systems that pages show are ones that the program has, with flags that it has.
func TestDocumentedSteps(t *testing.T) {
	pages, err := manual.All(os.DirFS("../../.."), "docs/**")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	step := regexp.MustCompile(`^\s*- (?:run: )?(bindery .*)`)
	for _, p := range pages {
		for _, b := range p.Blocks {
			for _, line := range strings.Split(b.Text, "\n") {
				m := step.FindStringSubmatch(line)
				if b.Language != "yaml" || m == nil {
					continue
				}
				found++
				p := &option.Session{Program: &program.Program{Stdin: strings.NewReader(""), Stdout: &cmdline.Pipe{W: io.Discard}, Stderr: io.Discard}}
				if _, err := cmdline.Parse(app.New(p), shellWords(m[1])); err != nil {
					t.Errorf("%s\n%v", m[1], err)
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("%d commands", found)
	}
}

// blockWith returns the block of a page that begins with a text.
func blockWith(t *testing.T, name, begin string) string {
	t.Helper()
	page, err := manual.Read(os.DirFS("../../../docs"), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range page.Blocks {
		if strings.HasPrefix(block.Text, begin) {
			return block.Text
		}
	}
	t.Fatalf("no block begins with %q", begin)
	return ""
}

// docsDir returns a directory with the files that the pages name.
func docsDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	clitest.CopyFile(t, "../../../testdata/db/small.db", filepath.Join(dir, "index.db"))
	clitest.Done(t, dir, "bindery", "migrate", "index.db", "catalog")
	for _, b := range []string{"bundle", "widget-bundle-v1.2", "widget-bundle-v1.3", "OLD", "NEW"} {
		if err := os.CopyFS(filepath.Join(dir, b), os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
			t.Fatal(err)
		}
		// The pages install the bundle for all namespaces as well.
		csv := filepath.Join(dir, b, "manifests", "etcdoperator.v0.9.4.clusterserviceversion.yaml")
		modes := regexp.MustCompile(`supported: false(\s+type: AllNamespaces)`)
		clitest.WriteFile(t, csv, modes.ReplaceAllString(clitest.ReadFile(t, csv), "supported: true$1"))
	}
	clitest.WriteFile(t, filepath.Join(dir, "data.yaml"),
		blockWith(t, "guides/check.md", "allowed_olm_image_registry_prefixes"))
	return dir
}

// docsFiles adds to dir what pages name beside that: databases, directories of bundles and package manifests, a key
// pair, an image and an index image in layouts.
func docsFiles(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"small.db", "old.db", "new.db", "medium.db"} {
		clitest.CopyFile(t, "../../../testdata/db/small.db", filepath.Join(dir, name))
	}
	signingFiles(t, exampleKeys(t), dir, "release.key --signatures")
	for _, name := range []string{"key", "pub"} {
		clitest.CopyFile(t, filepath.Join(dir, "release."+name), filepath.Join(dir, "ci."+name))
	}
	clitest.ExampleTemplates(t, dir)
	clitest.Submission(t, dir)
	clitest.NewBundle(t, filepath.Join(dir, "new-bundle"))
	for from, to := range map[string]string{recorded.Export(t): "manifests",
		"../../../testdata/fbc/mini": "other", "../../../testdata/bundles/etcd/0.9.4": "etcd"} {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	clitest.Done(t, dir, "bindery", "build", "catalog", "catalog", "-t", "catalog:v1", "--server", "none")
}

// docsRegistry returns a registry with the images that the pages read.
func docsRegistry(t *testing.T, dir string) *testregistry.Registry {
	t.Helper()
	registry := testregistry.New(t)
	for _, image := range []string{"catalog catalog --server none --cache none -t acme/catalog:v1 -t acme/catalog:v2",
		"bundle bundle -t acme/etcd:v0.9.4 -t acme/etcd:v0.9.2 -t acme/etcd:v0.9",
		"bundle new-bundle -t acme/etcd:v0.9.5",
		"bundle bundle -t acme/operator-bundle:v1.2.0",
		"catalog catalog --server none --cache none -t released:v4.19", "bundle bundle -t acme/widget-bundle:v1.2.0"} {
		args := strings.Fields("build " + image + " --push --use-http")
		for i := range args {
			if args[i] == "-t" {
				args[i+1] = registry.Host() + "/" + args[i+1]
			}
		}
		clitest.Done(t, dir, "bindery", args...)
	}
	return registry
}

// The waivers of the documentation are valid, and accept what they name.
func TestDocumentedWaivers(t *testing.T) {
	dir := docsDir(t)
	waivers := blockWith(t, "guides/check.md", "waivers:")
	until := regexp.MustCompile(`until: .*`)
	clitest.WriteFile(t, filepath.Join(dir, "waivers.yaml"), until.ReplaceAllString(waivers, "until: 9999-12-31"))
	got := clitest.RunProgram(t, dir, "bindery", "check", "catalog", "--profile", "olmv1", "--skip", "olmv1.dependency",
		"--waivers", "waivers.yaml")
	if got.Status != 0 || !strings.Contains(got.Stdout, "2 waived") {
		t.Errorf("%+v", got)
	}
}

// The pages name every flag that is only there for what they are about.
func TestDocumentedFlags(t *testing.T) {
	for _, c := range []struct {
		page, command string
		categories    []string
	}{
		{"guides/olmv1.md", "bundle manifests", []string{"cluster and extension", "output"}},
		{"guides/check.md", "check", []string{"which rules", "the cluster", "the release"}},
		{"guides/olmv1.md", "resolve", []string{"what is requested", "answer"}},
	} {
		page := clitest.ReadFile(t, "../../../docs/"+c.page)
		help := clitest.Done(t, t.TempDir(), "bindery", append(strings.Fields(c.command), "--help-all")...)
		for _, category := range c.categories {
			_, part, ok := strings.Cut(help, "Flags: "+category+":\n")
			if !ok {
				t.Errorf("%s has no flags of %q", c.command, category)
			}
			part, _, _ = strings.Cut(part, "\n\n")
			for _, m := range regexp.MustCompile(`(?m)^ {2}(?:-(\w), | {4})--([a-z0-9-]+)`).FindAllStringSubmatch(part,
				-1) {
				if !strings.Contains(page, "--"+m[2]) && (m[1] == "" || !strings.Contains(page, "`-"+m[1]+" ")) {
					t.Errorf("%s does not name --%s", c.page, m[2])
				}
			}
		}
	}
}

// The table of exit statuses on the page of the command line has those of the manual page.
func TestDocumentedStatuses(t *testing.T) {
	page := clitest.ReadFile(t, "../../../docs/reference/cli.md")
	_, table, _ := strings.Cut(page, "\n| status | meaning |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	number := regexp.MustCompile(`\d+`)
	documented := map[string]bool{}
	for _, line := range strings.Split(table, "\n") {
		for _, n := range number.FindAllString(strings.SplitN(line, "|", 3)[1], -1) {
			documented[n] = true
		}
	}
	known := map[string]bool{}
	for _, s := range app.ManSections() {
		for _, item := range s.Items {
			for _, n := range number.FindAllString(item[0], -1) {
				if s.Title == "EXIT STATUS" {
					known[n] = true
				}
			}
		}
	}
	if len(known) < 5 || !maps.Equal(documented, known) {
		t.Errorf("documented %v, in the manual page %v", documented, known)
	}
}

// The page about proofs says which versions of other programs bindery has and is compared with.
func TestDocumentedPeers(t *testing.T) {
	page := clitest.ReadFile(t, "../../../docs/explain/proofs.md")
	module := func(dir, path string) string {
		found := regexp.MustCompile(`(?m)^\s+` + regexp.QuoteMeta(path) + ` (v\S+)`).FindStringSubmatch(clitest.ReadFile(t,
			filepath.Join("../../..", dir, "go.mod")))
		if found == nil {
			t.Fatalf("%s of %q: not in go.mod", path, dir)
		}
		return found[1]
	}
	crdify := module("", "sigs.k8s.io/crdify")
	crdify = crdify[strings.LastIndexByte(crdify, '-')+1:]
	for peer, want := range map[string]string{
		"opm (operator-registry)": version.Compatible,
		"operator-framework/api":  module("", "github.com/operator-framework/api"),
		"Kubernetes":              module("", "k8s.io/apiextensions-apiserver") + " of the modules",
		"crdify":                  "commit " + crdify[:7],
		"cosign":                  strings.TrimPrefix(module("hack/sigstore", "github.com/sigstore/cosign/v3"), "v"),
	} {
		if !strings.Contains(page, "\n| "+peer+" | "+want) {
			t.Errorf("the table of the page does not name %s %s", peer, want)
		}
	}
	if want := "kube-apiserver " + strings.TrimPrefix(module("hack/cluster", "k8s.io/kubernetes"), "v"); !strings.Contains(page, want) {
		t.Errorf("the page does not name %s", want)
	}
	differences := clitest.ReadFile(t, "../../../docs/differences-from-opm.md")
	if !strings.Contains(differences, "compatible with ("+version.Compatible+",") {
		t.Errorf("the page on differences from opm does not name %s", version.Compatible)
	}
}

// The links of the page about installing, made in a directory that is the first on the PATH, are opm and oc-mirror.
func TestDocumentedLinks(t *testing.T) {
	bin := t.TempDir()
	block := blockWith(t, "guides/install.md", "sudo ln -s")
	cmd := exec.Command("sh", "-eu", "-c", strings.NewReplacer("sudo ", "", "/usr/local/bin", bin).Replace(block)+
		"opm version\noc-mirror version\n")
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+clitest.BinDir+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "OpmVersion") != 1 {
		t.Errorf("%v\n%s", err, out)
	}
	for _, name := range []string{"opm", "oc-mirror"} {
		if to, err := os.Readlink(filepath.Join(bin, name)); err != nil || to != filepath.Join(clitest.BinDir, "bindery") {
			t.Errorf("%s leads to %q, %v", name, to, err)
		}
	}
}
