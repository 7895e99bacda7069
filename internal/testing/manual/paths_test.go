package manual

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// formatNames are names of files that the program reads or writes under these names, and none has in the clone.
var formatNames = map[string]bool{"package.yaml": true, "*.package.yaml": true, "idms-oc-mirror.yaml": true,
	"itms-oc-mirror.yaml": true, "signature-configmap.yaml": true, "index.yaml": true}

var (
	wordIn = regexp.MustCompile("[^\\s`'\"=:,;()<>|]+")
	// fileName is the name of a file of recipes or of source. One with capital letters has a placeholder: NAME.yaml.
	fileName = regexp.MustCompile(`^[a-z0-9_.*-]+\.(ya?ml|sh|go)$`)
	// madeIn is what a command makes: directories, the target of a redirection or of cp.
	madeIn = regexp.MustCompile(`(?:\bmkdir (?:-p )?|> ?|\bcp (?:-\w+ )?\S+ )([^;&|<>]+)`)
)

// missing lists the paths and names in the code of a page that are not in the clone. A path begins with a
// directory of the clone; in tables a name without a directory is looked for too. Paths below what a command of the
// page makes or gives to bindery are passed over: other tests run these commands with the files that they name.
func missing(clone fs.FS, p *Page) (out []string) {
	type line struct {
		number       int
		text         string
		block, table bool
	}
	var lines []line
	for _, b := range p.Blocks {
		for i, text := range strings.Split(strings.ReplaceAll(b.Text, "\\\n", "  "), "\n") {
			lines = append(lines, line{b.Line + i, text, true, false})
		}
	}
	for _, s := range p.Spans {
		lines = append(lines, line{s.Line, s.Text, false, s.Table})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.number - b.number })
	var made []string
	for _, l := range lines {
		command := strings.TrimPrefix(strings.TrimSpace(l.text), "$ ")
		if words := strings.Fields(command); len(words) > 3 && words[0] == "bindery" {
			made = append(made, wordIn.FindAllString(strings.Join(words[3:], " "), -1)...)
		}
		if l.block {
			for _, m := range madeIn.FindAllStringSubmatch(command, -1) {
				made = append(made, wordIn.FindAllString(m[1], -1)...)
			}
		}
		for _, word := range wordIn.FindAllString(l.text, -1) {
			word = strings.TrimSuffix(strings.TrimRight(strings.TrimPrefix(word, "./"), "."), "/")
			first, _, below := strings.Cut(word, "/")
			there, err := fs.Glob(clone, word)
			switch {
			case err != nil || len(there) > 0 || strings.Contains(word, "$"):
			case below:
				if info, err := fs.Stat(clone, first); err != nil || !info.IsDir() || first == "dist" {
					continue
				}
				if !slices.ContainsFunc(made, func(m string) bool { return m == word || strings.HasPrefix(word, m+"/") }) {
					out = append(out, fmt.Sprintf("%s:%d: there is no %s", p.Path, l.number, word))
				}
			case l.table && fileName.MatchString(word) && !formatNames[word] && !named(clone, word):
				out = append(out, fmt.Sprintf("%s:%d: no file is called %s", p.Path, l.number, word))
			}
		}
	}
	return out
}

// named tells whether a file anywhere in the clone has a name, which may be a pattern.
func named(clone fs.FS, name string) (found bool) {
	_ = fs.WalkDir(clone, ".", func(at string, d fs.DirEntry, err error) error {
		if base := path.Base(at); err == nil && d.IsDir() && (base == ".git" || base == "node_modules" || base == "dist") {
			return fs.SkipDir
		}
		if ok, _ := path.Match(name, path.Base(at)); ok {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// Every path of the clone that the pages name in code is there, as is every file that a table names.
func TestPaths(t *testing.T) {
	root := os.DirFS("../../..")
	all, err := All(root, append(pages, "templates/**")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Path == "CHANGELOG.md" {
			continue // it speaks of what was
		}
		for _, m := range missing(root, p) {
			t.Error(m)
		}
	}
}

func TestMissing(t *testing.T) {
	clone := fstest.MapFS{"deploy/tekton/task/a/run.yaml": {}, "mirror/engine.go": {}, "deploy/job.yaml": {}}
	for text, want := range map[string]string{
		"`deploy/tekton/catalog.yaml` has it":                                     "there is no deploy/tekton/catalog.yaml",
		"    kubectl apply -f deploy/tekton/run.yaml":                             "there is no deploy/tekton/run.yaml",
		"| pipeline in `tekton.yaml` |":                                           "no file is called tekton.yaml",
		"`tekton.yaml`, `deploy/job.yaml`, `deploy/*.yaml`, `x/y.yaml`":           "",
		"| `job.yaml`, `run.yaml`, `cs-NAME.yaml`, `mirror/*.go` |":               "",
		"    bindery mirror run --workspace m docker://x/y\n    ls mirror/a":      "there is no mirror/a",
		"    bindery mirror run --workspace mirror docker://x/y\n    ls mirror/a": "",
		"    mkdir -p x deploy/y\n    cat > mirror/z\n\n`deploy/y/z`, `mirror/z`": "",
		"`deploy/y/z`\n\n    mkdir deploy/y":                                      "there is no deploy/y/z",
		"    kubectl get deploy/job.yaml deploy/...":                              "",
	} {
		clone["p.md"] = &fstest.MapFile{Data: []byte(text + "\n")}
		p, err := Read(clone, "p.md")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(missing(clone, p), "\n"); !strings.HasSuffix(got, want) || (got == "") != (want == "") {
			t.Errorf("%q: %q instead of %q", text, got, want)
		}
	}
}
