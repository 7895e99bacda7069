package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/testregistry"
)

// docsPages are the pages about OLM v1 whose commands run in a test.
var docsPages = []string{"guides/check.md", "guides/olmv1.md"}

// codeBlocks returns the indented blocks of a page, without their indentation.
func codeBlocks(page string) []string {
	var blocks []string
	var block []string
	for _, line := range strings.Split(page+"\n", "\n") {
		if strings.HasPrefix(line, "    ") {
			block = append(block, strings.TrimPrefix(line, "    "))
			continue
		}
		if block != nil {
			blocks = append(blocks, strings.Join(block, "\n")+"\n")
		}
		block = nil
	}
	return blocks
}

// blockWith returns the block of a page that begins with a text.
func blockWith(t *testing.T, page, begin string) string {
	t.Helper()
	for _, block := range codeBlocks(page) {
		if strings.HasPrefix(block, begin) {
			return block
		}
	}
	t.Fatalf("no block begins with %q", begin)
	return ""
}

// Every command of these pages runs in a directory with the files that it names, and against the registry that
// registry.example.com stands for. A check may find something, and a comparison differences: that is status 1.
func TestDocumentedCommands(t *testing.T) {
	for _, name := range docsPages {
		page := readFile(t, "../../docs/"+name)
		var lines []string
		for _, block := range codeBlocks(page) {
			for _, line := range strings.Split(block, "\n") {
				if line = strings.TrimSpace(line); strings.HasPrefix(line, "bindery ") {
					lines = append(lines, line)
				}
			}
		}
		t.Run(name, func(t *testing.T) {
			if len(lines) < 3 {
				t.Fatalf("%d commands", len(lines))
			}
			dir := docsDir(t)
			registry := docsRegistry(t, dir)
			writeFile(t, filepath.Join(dir, "registries.conf"),
				readFile(t, registry.RegistriesConf(t, "registry.example.com"))+
					readFile(t, testregistry.Recorded(t).RegistriesConf(t, testregistry.RecordedHost)))
			for _, line := range lines {
				args := strings.Fields(line)[1:]
				if writes := slices.Contains(args, "--push") || args[0] == "attach"; writes {
					for i := range args {
						args[i] = strings.Replace(args[i], "registry.example.com", registry.Host(), 1)
					}
					args = append(args, "--use-http")
				} else {
					args = append(args, "--registries-conf", "registries.conf")
				}
				got := runProgram(t, dir, "bindery", args...)
				answered := (args[0] == "check" || args[0] == "diff") && got.status == 1 && got.stdout != "" &&
					!strings.Contains(got.stderr, "error: ")
				if got.status != 0 && !answered {
					t.Errorf("%s\nstatus %d\n%s", line, got.status, got.stderr)
				}
			}
		})
	}
}

// docsDir returns a directory with the files that the pages name.
func docsDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	copyFile(t, "../../testdata/db/small.db", filepath.Join(dir, "index.db"))
	done(t, dir, "bindery", "migrate", "index.db", "catalog")
	for _, b := range []string{"bundle", "widget-bundle-v1.2", "widget-bundle-v1.3", "OLD", "NEW"} {
		if err := os.CopyFS(filepath.Join(dir, b), os.DirFS("../../testdata/bundles/etcd/0.9.4")); err != nil {
			t.Fatal(err)
		}
		// The pages install the bundle for all namespaces as well.
		csv := filepath.Join(dir, b, "manifests", "etcdoperator.v0.9.4.clusterserviceversion.yaml")
		modes := regexp.MustCompile(`supported: false(\s+type: AllNamespaces)`)
		writeFile(t, csv, modes.ReplaceAllString(readFile(t, csv), "supported: true$1"))
	}
	page := readFile(t, "../../docs/guides/check.md")
	writeFile(t, filepath.Join(dir, "data.yaml"), blockWith(t, page, "allowed_olm_image_registry_prefixes"))
	return dir
}

// docsRegistry returns a registry with the images that the pages read.
func docsRegistry(t *testing.T, dir string) *testregistry.Registry {
	t.Helper()
	registry := testregistry.New(t)
	for _, image := range []string{"catalog catalog --server none --cache none -t acme/catalog:v1",
		"catalog catalog --server none --cache none -t released:v4.19", "bundle bundle -t acme/widget-bundle:v1.2.0"} {
		args := strings.Fields("build " + image + " --push --use-http")
		at := slices.Index(args, "-t") + 1
		args[at] = registry.Host() + "/" + args[at]
		done(t, dir, "bindery", args...)
	}
	return registry
}

// The waivers of the documentation are valid, and accept what they name.
func TestDocumentedWaivers(t *testing.T) {
	dir := docsDir(t)
	waivers := blockWith(t, readFile(t, "../../docs/guides/check.md"), "waivers:")
	until := regexp.MustCompile(`until: .*`)
	writeFile(t, filepath.Join(dir, "waivers.yaml"), until.ReplaceAllString(waivers, "until: 9999-12-31"))
	got := runProgram(t, dir, "bindery", "check", "catalog", "--profile", "olmv1", "--skip", "olmv1.dependency",
		"--waivers", "waivers.yaml")
	if got.status != 0 || !strings.Contains(got.stdout, "2 waived") {
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
		{"guides/olmv1.md", "resolve", []string{"what is asked for", "answer"}},
	} {
		page := readFile(t, "../../docs/"+c.page)
		help := done(t, t.TempDir(), "bindery", append(strings.Fields(c.command), "--help-all")...)
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
