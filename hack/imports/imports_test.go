// Package imports has the rules of which package may import which, as a test. The reasons for
// the unusual ones are in docs/architecture.md, Departures.
package imports

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/operator-bindery/bindery/"

// rules lists every package that imports non-leaf packages of the project, and these packages. Internal packages that
// are not listed are leaves; public ones that are not listed import only leaves.
var rules = map[string][]string{
	// The model and functions of it.
	"declcfg":          {"declcfg/property"},
	"declcfg/diff":     {"declcfg"},
	"declcfg/edit":     {"declcfg", "declcfg/property", "bundle"},
	"declcfg/graph":    {"declcfg"},
	"declcfg/list":     {"declcfg"},
	"declcfg/property": nil,
	"declcfg/resolve":  {"declcfg", "declcfg/property"},
	"declcfg/rules":    {"declcfg", "declcfg/property", "declcfg/resolve"},
	"declcfg/scaffold": {"declcfg"},
	"declcfg/template": {"declcfg", "declcfg/edit", "bundle"},

	// Storage of catalogs and their parts.
	"bundle":                   {"declcfg", "declcfg/property"},
	"bundle/check":             {"bundle", "bundle/manifests", "bundle/manifests/safety", "declcfg", "declcfg/property", "declcfg/resolve", "declcfg/rules"},
	"bundle/configmap":         {"bundle"},
	"bundle/generate":          {"bundle"},
	"bundle/manifests":         {"declcfg"},
	"bundle/manifests/safety":  {"bundle/manifests"},
	"bundle/manifests/upgrade": {"bundle/manifests", "bundle/manifests/safety"},
	"bundle/unpackjob":         nil,
	"images":                   {"images/referrers", "images/signature", "images/trust"},
	"images/library":           nil,
	"images/policy":            {"images/trust"},
	"images/referrers":         nil,
	"images/signature":         {"images/referrers"},
	"images/storetest":         nil,
	"images/trust":             nil,
	"layers":                   nil,
	"sqlite":                   {"declcfg", "declcfg/property"},

	// What is mirrored.
	"mirror/filter":    {"declcfg", "declcfg/edit", "declcfg/property", "mirror/imageset"},
	"mirror/imageset":  nil,
	"mirror/resources": {"mirror/imageset"},

	// From these to a catalog, and from a catalog to an image or an answer.
	"render": {"declcfg", "declcfg/edit", "bundle", "images", "images/library", "images/policy",
		"sqlite", "internal/appregistry"},
	"migrate":             {"declcfg", "declcfg/edit", "images", "render", "sqlite"},
	"serve":               {"declcfg", "declcfg/property", "sqlite", "serve/api", "serve/web"},
	"serve/api":           nil,
	"serve/opmcache":      {"declcfg", "layers", "serve"},
	"serve/probe":         nil,
	"serve/web":           {"declcfg", "declcfg/property", "declcfg/graph"},
	"build":               {"declcfg", "images", "layers", "serve", "serve/opmcache", "internal/cataloglayer"},
	"build/compose":       {"build", "declcfg/edit", "images", "render"},
	"build/containerfile": {"build", "images", "layers"},
	"build/inspect": {"build", "bundle", "declcfg", "images", "layers", "serve", "serve/opmcache", "sqlite",
		"internal/cataloglayer"},

	// The air gap.
	"mirror": {"build", "declcfg", "declcfg/edit", "images", "images/referrers", "internal/change",
		"internal/indeximage", "mirror/filter", "mirror/imageset", "mirror/medium", "mirror/resources", "mirror/stock",
		"render", "sqlite"},
	"mirror/medium": {"images/referrers"},
	"mirror/stock":  {"images/referrers"},

	// Internal packages that are not leaves.
	"internal/cataloglayer":       {"declcfg", "layers", "serve", "serve/opmcache"},
	"internal/appregistry":        {"bundle", "declcfg"},
	"internal/appregistry/export": {"declcfg", "declcfg/edit", "internal/appregistry", "render", "sqlite"},
	"internal/catalogdir":         {"declcfg"},
	"internal/inventory":          {"build/inspect", "bundle", "declcfg", "images", "render"},
	"internal/supply":             {"images/referrers", "images/signature", "internal/inventory"},
	"internal/indeximage": {"build", "declcfg", "declcfg/edit", "images", "internal/change", "migrate",
		"render", "sqlite"},
	"internal/checkup": {"build/inspect", "bundle", "bundle/check", "bundle/manifests", "bundle/manifests/safety",
		"declcfg", "declcfg/resolve", "declcfg/rules", "images", "images/library", "images/policy", "render"},
	"internal/change": {"declcfg", "declcfg/edit", "internal/catalogdir", "sqlite"},
	"internal/jobs":   {"images", "migrate", "render"},

	// Non-leaf packages for tests.
	"internal/catalogdtest": {"declcfg", "images"},
	"internal/imagetest":    {"images", "images/library"},
	"internal/edittest": {"bundle", "declcfg", "declcfg/property", "declcfg/edit", "internal/recorded",
		"internal/supplytest",
		"internal/testbundles", "sqlite"},
	"internal/heaptest": {"declcfg"},
}

// forTests are the packages that only tests import.
var forTests = []string{"internal/catalogdtest", "internal/cputime", "internal/edittest",
	"internal/filelock/filelocktest",
	"internal/heaptest", "internal/imagetest", "internal/kube/kubetest", "internal/manual", "internal/mirrortest", "internal/race", "internal/recorded",
	"internal/schemagen",
	"internal/supplytest",
	"internal/testbundles", "internal/testregistry"}

// behindImages are the packages that do the work of images. Only images, what is below it, and they themselves import
// them, so that policies, limits and locks hold for all that is read and written.
var behindImages = []string{"internal/imagefs", "internal/imagestore", "internal/layouts", "internal/registry"}

// foreign are modules that only some packages may use.
var foreign = map[string]string{
	"github.com/urfave/cli":                           "cmd",
	"github.com/operator-framework/operator-registry": "no package",
	// Nothing starts a program, except fullbuild, which passes on the exit status of the commands that its library ran.
	"os/exec": "internal/fullbuild",
}

// pkg is the used output of go list for a package.
type pkg struct {
	ImportPath, Name string
	Imports          []string
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
			for name := range rules {
				if !slices.ContainsFunc(packages, func(p pkg) bool { return p.ImportPath == module+name }) {
					t.Errorf("there is a rule for %s, and no such package", name)
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
		{"internal/change", module + "build", "internal/change imports build"},
		{"cmd/internal/cmdline", module + "declcfg", "cmd/internal/cmdline imports declcfg"},
		{"build", "github.com/urfave/cli/v2", "build imports github.com/urfave/cli/v2"},
		{"cmd/bindery", "os/exec", "cmd/bindery imports os/exec"},
		{"render", module + "internal/testregistry", "render imports internal/testregistry"},
		{"build", module + "cmd/internal/cmdline", "build imports cmd/internal/cmdline"},
		{"render", module + "internal/registry", "render imports internal/registry"},
		{"cmd/bindery", module + "internal/layouts", "cmd/bindery imports internal/layouts"},
		{"internal/jobs", module + "internal/imagefs", "internal/jobs imports internal/imagefs"},
		{"mirror", module + "internal/imagestore", "mirror imports internal/imagestore"},
	} {
		planted := slices.Clone(packages)
		at := slices.IndexFunc(planted, func(p pkg) bool { return p.ImportPath == module+v.from })
		planted[at].Imports = append(slices.Clone(planted[at].Imports), v.to)
		found := violations(planted)
		if !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, v.want+":") }) {
			t.Errorf("%s -> %s: %q", v.from, v.to, found)
		}
	}
	twice := append(slices.Clone(packages), pkg{ImportPath: module + "internal/sqlite", Name: "sqlite"})
	if found := violations(twice); len(found) != 1 || !strings.Contains(found[0], "share the name sqlite") {
		t.Errorf("two packages of one name: %q", found)
	}
}

// violations returns the imports that the rules forbid, each as "FROM imports TO: why".
func violations(packages []pkg) []string {
	var found []string
	names := map[string]string{}
	for _, p := range packages {
		from := strings.TrimPrefix(p.ImportPath, module)
		if first, taken := names[p.Name]; taken && p.Name != "main" {
			found = append(found, fmt.Sprintf("%s and %s share the name %s", first, from, p.Name))
		}
		names[p.Name] = from
		for _, to := range p.Imports {
			if why := forbidden(from, to); why != "" {
				found = append(found, fmt.Sprintf("%s imports %s: %s", from, strings.TrimPrefix(to, module), why))
			}
		}
	}
	return found
}

// forbidden explains why a package may not import another; it is empty if it may.
func forbidden(from, to string) string {
	tool := below(from, "hack") // tools and checks are not part of the program
	for prefix, only := range foreign {
		if below(to, prefix) && !below(from, only) && !tool {
			return "only " + only + " may"
		}
	}
	to, own := strings.CutPrefix(to, module)
	switch {
	case !own || tool:
		return ""
	case slices.Contains(forTests, to) && !slices.Contains(forTests, from):
		return "it is for tests"
	case below(to, "cmd") && !below(from, "cmd"):
		return "the command line is above everything else"
	case slices.Contains(behindImages, to) && !below(from, "images") && !slices.Contains(behindImages, from):
		return "images does that"
	case isLeaf(to), slices.Contains(rules[from], to), below(from, "cmd") && !isLeaf(from):
		return ""
	case isLeaf(from):
		return "a leaf imports leaves only"
	}
	return fmt.Sprintf("it may import leaves and %v", rules[from])
}

// publicLeaves are the leaves that other programs may rely on: what every place of images does, how places are named and
// opened, the repositories of registries, and the files that a client uses.
var publicLeaves = []string{"images/blobcache", "images/lockfile", "images/registries", "images/store",
	"images/transport"}

// isLeaf reports whether a package may import leaves only, and be imported by all.
func isLeaf(name string) bool {
	_, ruled := rules[name]
	return !ruled && (below(name, "internal") || below(name, "cmd/internal")) || slices.Contains(publicLeaves, name)
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

// below reports whether a package is in a directory or is that directory.
func below(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// list runs go list for the packages of the project.
func list(t *testing.T, env []string) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Imports", "./...")
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
	if len(all) < len(rules) {
		t.Fatalf("go list found %d packages: %v", len(all), slices.Collect(maps.Keys(rules)))
	}
	return all
}
