package app_test

import (
	"fmt"
	"io"
	"maps"
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
)

// policyLines has a line for each command that has flags about the policy. IMAGE is an image of a catalog; other words
// in capitals are files that [policyTable.line] writes. A command may have several ways to read an image.
var policyLines = map[string][]string{
	"build catalog": {"../cat -t x:v1 --output oci:out --server none --base IMAGE",
		"../cat -t x:v1 --output oci:out --server none --previous IMAGE"},
	"build bundle":            {"../bundle -t x:v1 --output oci:out --base IMAGE"},
	"build compose":           {"COMPOSE -t x:v1 --output oci:out --server none"},
	"build containerfile":     {"../cat -f CONTAINERFILE -t x:v1 --output oci:out"},
	"migrate":                 {"IMAGE out", "--from-file MIGRATIONS --report-dir reports"},
	"render":                  {"IMAGE"},
	"list packages":           {"IMAGE"},
	"list channels":           {"IMAGE"},
	"list bundles":            {"IMAGE"},
	"list images":             {"IMAGE"},
	"graph":                   {"IMAGE"},
	"diff":                    {"IMAGE ../cat", "../cat IMAGE"},
	"check":                   {"IMAGE"},
	"resolve":                 {"etcd IMAGE"},
	"digest":                  {"IMAGE"},
	"inspect":                 {"IMAGE"},
	"verify":                  {"IMAGE", "IMAGE --signatures", "IMAGE --key ../KEY.pub"},
	"copy":                    {"IMAGE oci:out:v1"},
	"sbom":                    {"IMAGE"},
	"serve":                   {"IMAGE --cache-dir cache --cache-only"},
	"catalog add":             {"../cat IMAGE --dry-run", "IMAGE ../bundle -t x:v1 --output oci:out --server none"},
	"catalog rm":              {"IMAGE etcd -t x:v1 --output oci:out --server none"},
	"catalog prune":           {"IMAGE --keep etcd -t x:v1 --output oci:out --server none"},
	"catalog prune-stranded":  {"IMAGE -t x:v1 --output oci:out --server none"},
	"catalog promote":         {"IMAGE etcd.v1.0.0 --channel other -t x:v1 --output oci:out --server none"},
	"catalog demote":          {"IMAGE etcd.v1.0.0 --channel stable -t x:v1 --output oci:out --server none"},
	"catalog deprecate":       {"IMAGE etcd --message gone -t x:v1 --output oci:out --server none"},
	"catalog merge":           {"../cat IMAGE --dry-run", "IMAGE ../cat -t x:v1 --output oci:out --server none"},
	"catalog filter":          {"IMAGE -p etcd -t x:v1 --output oci:out --server none"},
	"catalog site":            {"IMAGE --to out"},
	"template render":         {"basic TEMPLATE"},
	"bundle build":            {"../bundle -t x:v1 --output oci:out --base IMAGE"},
	"bundle unpack":           {"IMAGE -o out"},
	"bundle manifests":        {"IMAGE"},
	"bundle validate":         {"IMAGE"},
	"index add":               {"-b IMAGE -t x:v1 --output oci:out --server none", "-b ../bundle -f IMAGE -t x:v1 --output oci:out --server none"},
	"index rm":                {"-f IMAGE -o etcd -t x:v1 --output oci:out --server none"},
	"index prune":             {"-f IMAGE -p etcd -t x:v1 --output oci:out --server none"},
	"index prune-stranded":    {"-f IMAGE -t x:v1 --output oci:out --server none"},
	"index deprecatetruncate": {"-f IMAGE -b example.com/x:v1 -t x:v1 --output oci:out --server none --allow-package-removal"},
	"index export":            {"-i IMAGE -p etcd"},
	"registry add":            {"-d index.db -b IMAGE"},
	"registry mirror":         {"IMAGE --to mirror.example.com"},
	// They read catalogs; TestMirrorAsksThePolicyOnEveryWay has the images that these name.
	"mirror plan":      {"-c SET"},
	"mirror run":       {"-c SET file://media"},
	"mirror publish":   {"-c SET --workspace ws docker://TARGET"},
	"mirror verify":    {"--catalog IMAGE docker://SOURCE"},
	"mirror delete":    {"-c DELETE --without-record --list list.yaml docker://SOURCE"},
	"mirror resources": {"-c SET --workspace ws --to out docker://TARGET"},
}

// policyNames replaces opm's names by those of the table: both are one command.
var policyNames = strings.NewReplacer("alpha bundle", "bundle", "alpha list", "list", "alpha render-graph", "graph",
	"alpha render-template", "template render", "alpha convert-template", "template convert", "render-template", "template render")

// policyTable is a world with a catalog image, and what the lines need.
type policyTable struct {
	*clitest.SignedWorld
	state  string
	target string
}

func newPolicyTable(t *testing.T, state string) *policyTable {
	t.Helper()
	w := clitest.NewSignedWorld(t, state)
	if err := os.CopyFS(filepath.Join(w.Top, "cat"), os.DirFS("../clitest/testdata/cases/ok-base")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(w.Top, "bundle"), os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
		t.Fatal(err)
	}
	return &policyTable{w, state, testregistry.New(t).Host()}
}

// Line writes the files of a line that names an image, and returns the line.
func (p *policyTable) line(text, image string) string {
	p.Helper()
	set := clitest.ReadFile(p.T, filepath.Join(p.Top, "set.yaml"))
	catalog := image
	if rest, ok := strings.CutPrefix(image, "oci:"); ok { // as image sets name layouts
		path, _, _ := strings.Cut(rest, ":")
		abs, err := filepath.Abs(filepath.Join(p.Dir, path))
		if err != nil {
			p.Fatal(err)
		}
		catalog = "oci://" + abs
	}
	for word, content := range map[string]string{
		"COMPOSE":       fmt.Sprintf("name: all\nrepo: example.com/all\ntag: v1\nreferences:\n- {name: a, image: %q}\n", image),
		"CONTAINERFILE": "FROM " + image + "\nLABEL a=b\n",
		"MIGRATIONS":    image + " out\n",
		"TEMPLATE":      fmt.Sprintf("schema: olm.template.basic\nentries:\n- {schema: olm.bundle, image: %q}\n", image),
		"SET":           strings.Replace(set, p.Images[0], catalog, 1),
		"DELETE": "apiVersion: mirror.openshift.io/v2alpha1\nkind: DeleteImageSetConfiguration\ndelete:\n  operators:\n" +
			"  - catalog: " + catalog + "\n    packages:\n    - name: etcd\n",
	} {
		if strings.Contains(text, word) {
			clitest.WriteFile(p.T, filepath.Join(p.Dir, strings.ToLower(word)), content)
			text = strings.ReplaceAll(text, word, strings.ToLower(word))
		}
	}
	key := "a"
	if p.state == clitest.SignedByOther {
		key = "b"
	}
	return strings.NewReplacer("IMAGE", image, "TARGET", p.target, "SOURCE", p.Source.Host(), "KEY", key).Replace(text)
}

// refused tells whether a result is the refusal of a policy.
func refused(r clitest.Result) bool {
	return r.Status != 0 && strings.Contains(r.Stdout+r.Stderr, "signature policy: ")
}

// Every command that has the flags about the policy asks it about the image that it reads.
func TestEveryCommandAsksThePolicy(t *testing.T) {
	have := map[string]bool{}
	var walk func(path string, all []*cli.Command)
	walk = func(path string, all []*cli.Command) {
		for _, c := range all {
			name := strings.TrimSpace(path + " " + c.Name)
			walk(name, c.Subcommands)
			if slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return f.Names()[0] == "trusted-key" }) {
				have[name] = true
			}
		}
	}
	p := &option.Session{Program: &program.Program{Stdin: strings.NewReader(""), Stdout: &cmdline.Pipe{W: io.Discard}, Stderr: io.Discard}}
	walk("", app.New(p).Commands)
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if len(policyLines[policyNames.Replace(name)]) == 0 {
			t.Errorf("%q has flags about the policy, and no line in the table", name)
		}
	}
	for name, lines := range policyLines {
		if !have[name] {
			t.Errorf("%q is in the table, and has no flags about the policy", name)
		}
		for _, state := range clitest.SignedStates {
			t.Run(name+", "+state, func(t *testing.T) {
				t.Parallel()
				w := newPolicyTable(t, state)
				for _, line := range lines {
					for _, how := range clitest.TwoDemands {
						w.Fresh()
						got := w.Run(name+" "+w.line(line, w.Images[0]), clitest.Demanded[how]...)
						if refused(got) != (state != clitest.Signed) {
							t.Errorf("%s, %s: %+v", line, how, got)
						}
						if _, err := os.Lstat(filepath.Join(w.Dir, "out")); err == nil && state != clitest.Signed &&
							!strings.HasPrefix(line, "--from-file") {
							t.Errorf("%s, %s: there is an output", line, how)
						}
					}
				}
			})
		}
	}
}

// Whatever an image is read from, its signature is looked for there, and what has none there is refused.
func TestPolicyOnEveryWayIn(t *testing.T) {
	lines := map[string]string{"inspect": "IMAGE", "copy": "IMAGE oci:out:v1", "render": "IMAGE",
		"build catalog":       "../cat -t x:v1 --output oci:out --server none --base IMAGE",
		"build containerfile": "../cat -f CONTAINERFILE -t x:v1 --output oci:out", "sbom": "IMAGE",
		"index add": "-b IMAGE -t x:v1 --output oci:out --server none", "mirror run": "-c SET file://media"}
	all := []string{"trusted key", "policy of registries", "exact policy"}
	registry := map[string]bool{"trusted key": true, "policy of registries": true, "exact policy": true}
	// Images in layouts have no name that the key could have signed; what is in podman's store has a name, and no signature.
	layout := map[string]bool{"trusted key": true, "exact policy": true}
	for name, way := range map[string]struct {
		image  string
		before string          // the line that makes it, of IMAGE
		more   string          // flags of each command
		signed map[string]bool // by which demands a signed image is accepted
		free   bool            // the policy of registries is about others
	}{
		"a registry":          {"", "", "", registry, false},
		"a registry, by name": {"docker://IMAGE", "", "", registry, false},
		"a layout":            {"oci:../lay:v1", "copy IMAGE oci:../lay:v1", "", layout, true},
		"an archive":          {"oci-archive:../lay.tar:v1", "copy IMAGE oci-archive:../lay.tar:v1", "", layout, true},
		"a docker archive": {"docker-archive:../d.tar", "copy IMAGE docker-archive:../d.tar:x:v1 --with none", "",
			nil, true},
		"a directory":     {"dir:../dir", "copy IMAGE dir:../dir --with none", "", nil, true},
		"podman's store":  {"containers-storage:localhost/x:v1", "copy IMAGE containers-storage:localhost/x:v1 --with none", "", nil, true},
		"a cache":         {"", "inspect IMAGE --cache-size 1GiB", "--cache", registry, false},
		"a lock":          {"", "inspect IMAGE --lock ../lock.json", "--lock ../lock.json", registry, false},
		"it is there":     {"", "copy IMAGE oci:out:v1 --with none", "", registry, false},
		"it is there too": {"", "copy IMAGE oci:media:v1", "", registry, false},
	} {
		for _, state := range clitest.SignedStates {
			t.Run(name+", "+state, func(t *testing.T) {
				t.Parallel()
				w := newPolicyTable(t, state)
				w.Store()
				exact := fmt.Sprintf(`{"default":[{"type":"sigstoreSigned","keyPath":%q,"signedIdentity":{"type":`+
					`"exactRepository","dockerRepository":"%s/acme/catalog"}}]}`, filepath.Join(w.Top, "a.pub"), w.Source.Host())
				clitest.WriteFile(t, filepath.Join(w.Top, "exact.json"), exact)
				image := strings.Replace(way.image, "IMAGE", w.Images[0], 1)
				if image == "" {
					image = w.Images[0]
				}
				kept := strings.HasPrefix(name, "it is there") // in the directory of the runs
				if way.before != "" && !kept {
					w.Cached(strings.Replace(way.before, "IMAGE", w.Images[0], 1))
				}
				for command, line := range lines {
					switch {
					case command == "mirror run" && !slices.Contains([]string{"", "docker://IMAGE", "oci:../lay:v1"}, way.image):
						continue // image sets name no others
					case command == "build catalog" && strings.HasPrefix(way.more, "--lock"):
						continue // it has no lock
					case strings.HasPrefix(way.image, "docker-archive") && command != "inspect" && command != "render":
						continue // of docker's format, which layouts do not take
					}
					for _, how := range all {
						demand := clitest.Demanded[how]
						if demand == nil {
							demand = []string{"--policy", "../exact.json", "--registries-d", "../d"}
						}
						w.Fresh()
						if kept {
							w.Cached(strings.Replace(way.before, "IMAGE", w.Images[0], 1))
						}
						more := strings.Fields(way.more)
						run := w.Run
						if way.more == "--cache" {
							more, run = nil, w.CachedRun
						}
						accepted := state == clitest.Signed && way.signed[how] || way.free && how == "policy of registries"
						if command == "mirror run" { // the set has images of other repositories, in the registry
							if how == "exact policy" {
								continue
							}
							accepted = state == clitest.Signed
						}
						got := run(command+" "+w.line(line, image), append(more, demand...)...)
						if refused(got) == accepted || accepted && got.Status != 0 && command != "index add" { // it is no bundle
							t.Errorf("%s, %s: %+v", command, how, got)
						}
					}
				}
			})
		}
	}
}

// What an earlier run has done does not stand for what the policy says now.
func TestWorkThatIsDoneIsJudgedAgain(t *testing.T) {
	for _, state := range clitest.SignedStates {
		w := newPolicyTable(t, state)
		for _, line := range []string{"migrate --from-file MIGRATIONS --report-dir reports",
			"build compose COMPOSE -t x:v1 --output oci:out --server none --any-packages",
			"copy IMAGE oci:out:v1"} {
			for how, demand := range clitest.Demanded {
				w.Fresh()
				text := w.line(line, w.Images[0])
				w.Done(text)
				if got := w.Run(text, demand...); refused(got) != (state != clitest.Signed) || state == clitest.Signed && got.Status != 0 {
					t.Errorf("%s, %s, %s: %+v", state, line, how, got)
				}
			}
		}
	}
}
