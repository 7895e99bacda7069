// Package imports has the rules of which package may import which, as a test. The reasons for
// the unusual ones are in docs/architecture.md, Departures.
package imports

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/operator-bindery/bindery/"

// directory is a directory at the top, with those that packages below it import.
type directory struct {
	name    string
	imports []string
}

// directories are the top-level directories in their order, each with those before it that it imports. Below internal are
// leaves, which all import and which import each other alone; cmd is above all, and hack has tools and checks.
var directories = []directory{
	// The model, functions of it, and what is below a catalog in a container image.
	{"declcfg", nil},
	{"layers", nil},
	{"images", nil},
	// What OLM v1 decides about the objects of a catalog.
	{"olmv1", []string{"declcfg"}},
	// Other forms of catalogs and of their parts, and changes.
	{"bundle", []string{"declcfg"}},
	{"sqlite", []string{"declcfg"}},
	{"edit", []string{"declcfg", "bundle", "sqlite"}},
	// From these to a catalog, and from a catalog to an image or an answer.
	{"render", []string{"declcfg", "images", "bundle", "sqlite", "edit"}},
	{"migrate", []string{"declcfg", "images", "sqlite", "edit", "render"}},
	{"serve", []string{"declcfg", "layers", "olmv1", "sqlite"}},
	{"build", []string{"declcfg", "layers", "images", "bundle", "sqlite", "edit", "render", "migrate", "serve"}},
	// What a cluster, a pipeline or a reader would object to.
	{"check", []string{"declcfg", "images", "olmv1", "bundle", "render", "build"}},
	// What is in an image and how it was built, as documents beside it.
	{"supply", []string{"declcfg", "layers", "images", "bundle", "render", "build"}},
	// The air gap.
	{"mirror", []string{"declcfg", "layers", "images", "olmv1", "sqlite", "edit", "render", "build"}},
}

// narrow are packages that import less of the project than others of their directories, and what they import beside
// leaves: the model, what goes into the small server, and what is of use without the engine of mirrors.
var narrow = map[string][]string{
	"declcfg":          {"declcfg/property"},
	"declcfg/property": {},
	"edit":             {"declcfg", "declcfg/property", "bundle"},
	"images":           {"images/convert", "images/referrers", "images/signature", "images/internal/trust"},
	"images/referrers": {},
	"mirror/filter":    {"declcfg", "declcfg/property", "edit", "mirror/imageset"},
	"mirror/imageset":  {"mirror/charts", "mirror/releases"},
	"mirror/medium":    {"images/referrers"},
	"mirror/resources": {"mirror/imageset", "olmv1"},
	"mirror/stock":     {"images/referrers"},
	"olmv1":            {},
	"olmv1/upgrade":    {},
	"serve":            {"declcfg", "declcfg/property", "olmv1/upgrade", "sqlite", "serve/internal/web"},
}

// foreign are modules and packages that only some packages may use.
var foreign = map[string]string{
	"github.com/urfave/cli":                           "cmd",
	"github.com/operator-framework/operator-registry": "no package",
	// A panic in one of its groups ends the program; internal/guard has groups in which it is an error.
	"golang.org/x/sync/errgroup": "no package",
	// A panic in one of its calls ends the program, and the end of the first caller's context is the result of all;
	// internal/keyed has calls that are shared.
	"golang.org/x/sync/singleflight": "no package",
	// Constraints of ClusterExtensions and of charts have its syntax; all other ranges are those of internal/versions.
	"github.com/Masterminds/semver": "olmv1/resolve, mirror",
	// They bring a client of clusters: mirror/charts/helmtemplate has what renders.
	"helm.sh/helm/v3/pkg/chartutil":   "no package",
	"helm.sh/helm/v3/pkg/engine":      "no package",
	"helm.sh/helm/v3/pkg/releaseutil": "no package",
	// Its transports, merges and worktrees are large, and some of them start programs; what is used reads files.
	"github.com/go-git": "internal/gitrepo",
	// Nothing starts a program, except fullbuild, which passes on the exit status of the commands that its library ran.
	"os/exec": "build/containerfile/fullbuild",
}

// pkg is the used output of go list for a package.
type pkg struct {
	ImportPath, Name string
	Imports, GoFiles []string
}

func TestImports(t *testing.T) {
	for _, env := range [][]string{
		{"GOOS=linux", "CGO_ENABLED=0"},
		{"GOOS=linux", "CGO_ENABLED=1", "GOFLAGS=-tags=containers_image_openpgp,exclude_graphdriver_btrfs,buildah"},
		{"GOOS=linux", "CGO_ENABLED=0", "GOFLAGS=-tags=containers_image_openpgp,exclude_graphdriver_btrfs,nobuildah"},
		{"GOOS=darwin", "CGO_ENABLED=0"},
		{"GOOS=windows", "CGO_ENABLED=0"},
	} {
		t.Run(strings.Join(env, ","), func(t *testing.T) {
			packages := list(t, env)
			for _, v := range violations(packages) {
				t.Error(v)
			}
			for _, name := range misplaced(packages) {
				t.Errorf("%s uses nothing of the command line: it belongs beside its subject", name)
			}
			for name := range narrow {
				if !slices.ContainsFunc(packages, func(p pkg) bool { return p.ImportPath == module+name }) {
					t.Errorf("there is a rule for %s, and no such package", name)
				}
			}
			for i, d := range directories {
				for _, name := range d.imports {
					if !slices.ContainsFunc(directories[:i], func(b directory) bool { return b.name == name }) {
						t.Errorf("%s imports %s, which does not come before it", d.name, name)
					}
				}
			}
		})
	}
}

// Broken rules are detected: each of these imports is added to the project's real ones.
func TestViolationsAreFound(t *testing.T) {
	packages := list(t, []string{"GOOS=linux", "CGO_ENABLED=0"})
	for _, v := range []struct{ from, to, want string }{
		{"declcfg", module + "bundle", "declcfg imports bundle"},
		{"images", module + "declcfg", "images imports declcfg"},
		{"layers", module + "images", "layers imports images"},
		{"serve", module + "images", "serve imports images"},
		{"internal/atomicfs", module + "declcfg", "internal/atomicfs imports declcfg"},
		{"edit/change", module + "build", "edit/change imports build"},
		{"cmd/internal/cmdline", module + "declcfg", "cmd/internal/cmdline imports declcfg"},
		{"build", "github.com/urfave/cli/v2", "build imports github.com/urfave/cli/v2"},
		{"cmd/internal/read", "os/exec", "cmd/internal/read imports os/exec"},
		{"cmd/internal/read", module + "cmd/internal/clitest", "cmd/internal/read imports cmd/internal/clitest"},
		{"render", module + "internal/testing/testregistry", "render imports internal/testing/testregistry"},
		{"build", module + "cmd/internal/cmdline", "build imports cmd/internal/cmdline"},
		{"check/checkup", module + "cmd/internal/option", "check/checkup imports cmd/internal/option"},
		{"olmv1/manifests", module + "render", "olmv1/manifests imports render"},
		{"supply", module + "check/rules", "supply imports check/rules"},
		{"render", module + "mirror", "render imports mirror"},
		{"internal/testing/testregistry", module + "images", "internal/testing/testregistry imports images"},
		{"render", module + "images/imagetest", "render imports images/imagetest"},
		{"mirror/medium", module + "mirror", "mirror/medium imports mirror"},
	} {
		planted := slices.Clone(packages)
		at := slices.IndexFunc(planted, func(p pkg) bool { return p.ImportPath == module+v.from })
		planted[at].Imports = append(slices.Clone(planted[at].Imports), v.to)
		found := violations(planted)
		if !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, v.want+":") }) {
			t.Errorf("%s -> %s: %q", v.from, v.to, found)
		}
	}
	twice := append(slices.Clone(packages), pkg{ImportPath: module + "images/internal/sqlite", Name: "sqlite"})
	if found := violations(twice); len(found) != 1 || !strings.Contains(found[0], "share the name sqlite") {
		t.Errorf("two packages of one name: %q", found)
	}
	plain := append(slices.Clone(packages), pkg{ImportPath: module + "cmd/internal/read/plain", Name: "plain",
		Imports: []string{module + "declcfg"}})
	if found := misplaced(plain); len(found) != 1 || found[0] != "cmd/internal/read/plain" {
		t.Errorf("a package that uses nothing of the command line: %q", found)
	}
}

// The page of packages has each package once.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "packages.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]int{}
	for _, item := range regexp.MustCompile("(?m)^- (`[^:]*):").FindAllStringSubmatch(string(text), -1) {
		for _, name := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(strings.ReplaceAll(item[1], "\n", " "), -1) {
			named[name[1]]++
		}
	}
	for _, p := range list(t, []string{"GOOS=linux", "CGO_ENABLED=0"}) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if !below(name, "hack") && named[name] != 1 {
			t.Errorf("docs/packages.md has %s %d times", name, named[name])
		}
		delete(named, name)
	}
	for name := range named {
		t.Errorf("docs/packages.md names %s, which is no package", name)
	}
}

// violations returns the imports that the rules forbid, each as "FROM imports TO: why".
func violations(packages []pkg) []string {
	var found []string
	names := map[string]string{}
	for _, p := range packages {
		from := strings.TrimPrefix(p.ImportPath, module)
		family := path.Dir(from) == "cmd/internal" // it has the name of the package that it is the command line of
		if first, taken := names[p.Name]; taken && p.Name != "main" && !family {
			found = append(found, fmt.Sprintf("%s and %s share the name %s", first, from, p.Name))
		}
		if !family {
			names[p.Name] = from
		}
		for _, to := range p.Imports {
			if why := forbidden(from, to); why != "" {
				found = append(found, fmt.Sprintf("%s imports %s: %s", from, strings.TrimPrefix(to, module), why))
			}
		}
	}
	return found
}

// misplaced returns the packages below cmd/internal that use nothing of the command line, not even through others: they are
// about a subject, whose directory is where a reader looks for them.
func misplaced(packages []pkg) []string {
	imports := map[string][]string{}
	for _, p := range packages {
		imports[p.ImportPath] = p.Imports
	}
	var uses func(name string) bool
	uses = func(name string) bool {
		return below(name, "github.com/urfave/cli") || slices.ContainsFunc(imports[name], uses)
	}
	var found []string
	for _, p := range packages {
		// The garbage collector is the whole program's: no other subject has it.
		name := strings.TrimPrefix(p.ImportPath, module)
		if below(name, "cmd/internal") && name != "cmd/internal/app/firstgc" && !uses(p.ImportPath) {
			found = append(found, name)
		}
	}
	return found
}

// forbidden explains why a package may not import another; it is empty if it may.
func forbidden(from, to string) string {
	tool := below(from, "hack") || forTests(from) // tools and checks are not part of the program
	for prefix, only := range foreign {
		may := func(p string) bool { return below(from, p) }
		if below(to, prefix) && !slices.ContainsFunc(strings.Split(only, ", "), may) && !tool {
			return "only " + only + " may"
		}
	}
	to, own := strings.CutPrefix(to, module)
	switch {
	case below(from, "internal/testing") && own && !isLeaf(to):
		return "a leaf imports leaves only: helpers for tests of others stand beside them"
	case !own || tool:
		return ""
	case forTests(to):
		return "it is for tests"
	case below(to, "cmd") && !below(from, "cmd"):
		return "the command line is above everything else"
	case isLeaf(to), below(from, "cmd") && !isLeaf(from):
		return ""
	case below(to, strings.Split(from, "/")[0]+"/internal"): // the compiler refuses those of other directories
		return ""
	case isLeaf(from):
		return "a leaf imports leaves only"
	}
	if allowed, ok := narrow[from]; ok && !slices.Contains(allowed, to) {
		return fmt.Sprintf("it may import leaves and %v", allowed)
	}
	for _, d := range directories {
		if below(from, d.name) && !below(to, d.name) && !slices.ContainsFunc(d.imports, func(name string) bool {
			return below(to, name)
		}) {
			return fmt.Sprintf("%s may import leaves and %v", d.name, d.imports)
		}
	}
	return ""
}

// forTests reports whether only tests import a package: one that stands beside what it helps and may import anything, as
// net/http/httptest, or a leaf below internal/testing.
func forTests(name string) bool {
	return below(name, "internal/testing") || strings.HasSuffix(name, "test") && !below(name, "internal")
}

// publicLeaves are the leaves that other programs may rely on: what every place of images does, how places are named and
// opened, the repositories of registries, and the files that a client uses.
var publicLeaves = []string{"images/blobcache", "images/lockfile", "images/registries", "images/store",
	"images/transport"}

// isLeaf reports whether a package may import leaves only, and be imported by all.
func isLeaf(name string) bool {
	return below(name, "internal") || name == "cmd/internal/cmdline" || slices.Contains(publicLeaves, name)
}

// edge are the packages of the containers libraries that need build tags or libraries of C. Only what a program imports
// for them may link them: images/library, images/policy, and what is built on those.
var edge = []string{"github.com/proglottis/gpgme", "go.podman.io/image/v5/copy", "go.podman.io/image/v5/docker/archive",
	"go.podman.io/image/v5/signature", "go.podman.io/image/v5/storage", "go.podman.io/storage"}

// A program that reads, builds and pushes images needs no build tags.
func TestEdge(t *testing.T) {
	for _, c := range []struct {
		packages []string
		linked   bool
	}{{[]string{"./images", "./build"}, false}, {[]string{"./images/library"}, true}} {
		cmd := exec.Command("go", append([]string{"list", "-deps"}, c.packages...)...)
		cmd.Dir, cmd.Stderr = path.Join("..", ".."), os.Stderr
		cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=1", "GOFLAGS=-buildvcs=false")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		linked := slices.ContainsFunc(strings.Fields(string(out)), func(p string) bool {
			return slices.Contains(edge, p) || below(p, "go.podman.io/storage/drivers")
		})
		if linked != c.linked {
			t.Errorf("%v link packages at the edge: %v", c.packages, linked)
		}
	}
}

// TestOneHTTPClient finds HTTP clients without the rules of internal/webclient.
func TestOneHTTPClient(t *testing.T) {
	own := regexp.MustCompile(`http\.(Client\{|Transport\{|DefaultClient|DefaultTransport|(Get|Head|Post|PostForm)\()`)
	err := filepath.WalkDir(filepath.Join("..", ".."), func(name string, d fs.DirEntry, err error) error {
		dir, _ := filepath.Rel(filepath.Join("..", ".."), name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (below(dir, "internal/webclient") || below(dir, "hack") || forTests(dir) || strings.HasPrefix(dir, ".git")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if found := own.Find(text); found != nil {
			t.Errorf("%s has %s: use internal/webclient", dir, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// calls are functions of other modules that have one place each, by the package that has it, in the project's words.
var calls = map[string]string{
	"semver.ParseRange": "internal/versions", "semver.MustParseRange": "internal/versions",
	"semver.Parse": "internal/versions", "semver.ParseTolerant": "internal/versions", "semver.Make": "internal/versions",
	"mmsemver.NewConstraint": "olmv1/resolve",
}

// Versions and ranges of them are parsed at one place, which bounds them: the parser of blang/semver returns a function
// that panics for some ranges, and takes memory and a stack that grow with the text.
func TestCalls(t *testing.T) {
	found := map[string]bool{}
	for _, p := range list(t, []string{"GOOS=linux", "CGO_ENABLED=0"}) {
		from := strings.TrimPrefix(p.ImportPath, module)
		for _, name := range p.GoFiles {
			file := filepath.Join("..", "..", filepath.FromSlash(from), name)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for call, only := range calls {
				if !strings.Contains(string(text), call+"(") {
					continue
				}
				if found[call] = true; from != only {
					t.Errorf("%s calls %s: only %s may", file, call, only)
				}
			}
		}
	}
	if !found["mmsemver.NewConstraint"] {
		t.Error("no call is found at its own place")
	}
}

// below reports whether a package is in a directory or is that directory.
func below(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// list runs go list for the packages of the project.
func list(t *testing.T, env []string) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Imports,GoFiles", "./...")
	cmd.Dir, cmd.Env, cmd.Stderr = path.Join("..", ".."), append(os.Environ(), env...), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 100 {
		t.Fatalf("go list found %d packages", len(all))
	}
	return all
}

// Examples of public packages show what another program can write: their files import nothing internal.
func TestExamplesImportNothingInternal(t *testing.T) {
	found := 0
	for _, d := range directories {
		err := filepath.WalkDir(filepath.Join("..", "..", d.name), func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(name, "example_test.go") ||
				strings.Contains(name, "/internal/") {
				return err
			}
			found++
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, i := range f.Imports {
				if strings.Contains(i.Path.Value, "/internal/") {
					t.Errorf("%s imports %s", name, i.Path.Value)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if found < 8 {
		t.Errorf("there are %d files of examples", found)
	}
}
