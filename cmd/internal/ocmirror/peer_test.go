package ocmirror_test

import (
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// peer is the program oc-mirror v2, which the variable OC_MIRROR names: it is built for no package repository.
func peer(t *testing.T) string {
	t.Helper()
	path := os.Getenv("OC_MIRROR")
	if path == "" {
		t.Skip("the variable OC_MIRROR names no program oc-mirror v2 to hand archives to")
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// byPeer runs a step by oc-mirror itself.
func (r *replay) byPeer(program string, s step) clitest.Result {
	r.Helper()
	var args []string
	for _, a := range s.args {
		args = append(args, r.local(a))
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = r.dir
	cmd.Env = append(append(os.Environ(), r.env...), "XDG_RUNTIME_DIR="+r.dir)
	for _, e := range s.env {
		cmd.Env = append(cmd.Env, r.local(e))
	}
	return clitest.Finish(r.T, cmd)
}

// freePort is one that no other program listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// handed runs the steps of a scenario, each by one of the programs.
func (c *recording) handed(t *testing.T, scenario string, ours func(step) bool) {
	program := peer(t)
	r := newReplay(t, c, scenario)
	for _, d := range r.want {
		d.lines["registry"] = anySignature(d.lines["registry"])
	}
	r.names = append([]string{c.cache, freePort(t)}, r.names...)
	last := 0
	for _, s := range c.steps(t)[scenario] {
		number, _ := strconv.Atoi(filepath.Base(s.name)[:2])
		if r.before != nil {
			r.before(r, s, number, last)
		}
		last = number
		if ours(s) {
			r.handedStep(s, r.execute(s, nil), r.want[s.name].status, true)
		} else {
			r.handedStep(s, r.byPeer(program, s), nil, false)
		}
	}
}

// handedStep compares what a step left with what was recorded. What this program leaves may differ as the files of
// differences say, and what oc-mirror leaves as handedDifferences does.
func (r *replay) handedStep(s step, got clitest.Result, status *int, ours bool) {
	r.Helper()
	who, want := "oc-mirror", s.status
	recorded, ok := r.runs(r.T)[s.name+".registry.txt"]
	text := string(recorded)
	if ours {
		who = "this program"
		text, ok = r.text(s, "registry", ".registry.txt")
	}
	if status != nil {
		want = *status
	}
	other := handedDifferences[who+" "+s.name]
	if other.why != "" && other.status != asUsual {
		want = other.status
	}
	if got.Status != want {
		r.Errorf("%s by %s: status %d instead of %d, recorded %d\n%s\n%s", s.name, who, got.Status, want, s.status, got.Stdout,
			got.Stderr)
	}
	r.noteArchives(s)
	if !ok {
		return
	}
	theirs, have := anySignature(r.listed(text)), anySignature(r.listing())
	if ours && other.registry == nil {
		r.check(s, "registry", theirs, have)
		return
	}
	var more []string
	for _, line := range lineDiff(theirs, have) {
		if name, _, _ := strings.Cut(line, "@"); !slices.ContainsFunc(other.registry, func(pattern string) bool {
			ok, _ := path.Match(pattern, strings.ReplaceAll(name, "/", "."))
			return ok
		}) {
			more = append(more, line)
		}
	}
	if len(more) > 0 {
		r.Errorf("%s by %s: - recorded, + here\n%s", s.name, who, strings.Join(more, "\n"))
	}
}

// handedDifference is what a step leaves that was recorded otherwise, as the steps before it were the other program's.
// The lines of the registry are patterns, in which dots stand for slashes.
type handedDifference struct {
	why      string
	status   int
	registry []string
}

var handedDifferences = map[string]handedDifference{
	"this program 03-incremental/04-d2m-2": {"what the second archive has whole is copied, and the catalog is not published", 4,
		[]string{"+ m.acme.alpha-app:*", "+ m.extra.tool:v2*"}},
	"oc-mirror 11b-platforms-m2d/02-d2m": {"a catalog that is rebuilt has the platforms alone that are asked for, and the registry takes it", 4,
		[]string{"+ m.acme.catalog-multi:v1"}},
	"oc-mirror r08b-platforms/02-d2m-airgap": {"what is copied before the first error is random", 2, []string{"- *.sig"}},
	"oc-mirror r15-dry-run/05-d2m-dry":       {"a dry run of this program removes no archive", 0, nil},
	"this program r15-dry-run/05-d2m-dry":    {"a dry run of oc-mirror has removed the archive", 1, nil},

	"this program r18-helm-repo/03-d2m-airgap":                {withoutHooks, 16, []string{}},
	"this program r18b-helm-local/03-d2m-airgap":              {withoutHooks, 16, []string{}},
	"this program r18b-helm-local/04-d2m-path-gone":           {withoutHooks, asUsual, []string{}},
	"this program r18e-helm-whole-repo/04-d2m-airgap":         {withoutHooks, 16, []string{}},
	"this program r18e-helm-whole-repo/05-broken":             {withoutHooks, asUsual, []string{}},
	"this program r18f-helm-no-version/03-d2m-airgap":         {withoutHooks, 16, withVersion},
	"this program r18f-helm-no-version/04-version-v":          {withoutHooks, asUsual, withVersion},
	"this program r18f-helm-no-version/05-version-range":      {withoutHooks, asUsual, withVersion},
	"this program r18f-helm-no-version/06-version-prerelease": {withoutHooks, asUsual, withVersion},
	"this program r18f-helm-no-version/07-version-partial":    {withoutHooks, asUsual, withVersion},

	"oc-mirror 12-delete/04-delete":             {keptShared, 0, sharedByCatalogs},
	"oc-mirror 12-delete/05-delete-again":       {keptShared, 1, sharedByCatalogs},
	"oc-mirror 12-delete/06-delete-wrong-dest":  {keptShared, 1, sharedByCatalogs},
	"this program 12-delete/04-delete":          {keptShared, 4, nil},
	"this program 12-delete/05-delete-again":    {keptShared, 4, nil},
	"oc-mirror r16-delete/05-delete":            {keptShared, 0, sharedByReleases},
	"oc-mirror r16-delete/06-delete-again":      {keptShared, 1, sharedByReleases},
	"oc-mirror r16-delete/07-delete-wrong-dest": {keptShared, 1, sharedByReleases},
	"oc-mirror r16-delete/08-delete-cache":      {keptShared, 1, sharedByReleases},
	"this program r16-delete/05-delete":         {keptShared, 4, nil},
	"this program r16-delete/06-delete-again":   {keptShared, 4, nil},
	"this program r16-delete/08-delete-cache":   {keptShared, 4, nil},
}

// asUsual is the status that a step has otherwise too.
const asUsual = -1

// withoutHooks is why this program lacks images of archives with charts: oc-mirror leaves out those of hooks.
const withoutHooks = "the archives of oc-mirror lack the images of hooks"

// keptShared is why lists of this program leave images where they are, and why it does not delete all of a list of
// oc-mirror. The others are those images.
const keptShared = "others need them"

var (
	sharedByCatalogs = []string{"+ m.acme.common:*"}
	// withVersion are the images of charts whose version this program takes from the archive, without the hook's.
	withVersion      = []string{"+ m.charts.crd:*", "+ m.charts.init:*", "+ m.charts.web:*"}
	sharedByReleases = []string{"+ m.openshift.release:*-installer *", "+ m.openshift.release:*-kube-virt-container *",
		"+ m.openshift.release:*-pod *", "+ m.openshift.release:*-pod-alias *"}
)

// anySignature leaves out the digests of signatures, which oc-mirror writes again.
func anySignature(lines []string) []string {
	out := slices.Clone(lines)
	for i, l := range out {
		if name, _, ok := strings.Cut(l, ".sig "); ok {
			out[i] = name + ".sig"
		}
	}
	return out
}

// handedScenarios are those in which an archive is written and read, and nothing is deleted.
func (c *recording) handedScenarios(t *testing.T) (out []string) {
	for name, steps := range c.steps(t) {
		if !slices.ContainsFunc(steps, func(s step) bool { return s.has("delete") }) && slices.ContainsFunc(steps, step.toArchive) &&
			slices.ContainsFunc(steps, func(s step) bool { return s.has("--from") }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// runHanded runs a subtest whose name has none of the words that oc-mirror refuses in the paths of its arguments.
func runHanded(t *testing.T, kind, scenario string, run func(*testing.T)) {
	number, _, _ := strings.Cut(scenario, "-")
	t.Run(kind+"/"+number, run)
}

// oc-mirror reads the archives of this program, and this program those of oc-mirror.
func TestArchivesBetweenThePrograms(t *testing.T) {
	peer(t)
	for _, c := range []*recording{operators, releases} {
		for _, scenario := range c.handedScenarios(t) {
			runHanded(t, "ours", scenario, func(t *testing.T) { c.handed(t, scenario, step.toArchive) })
			runHanded(t, "theirs", scenario, func(t *testing.T) {
				c.handed(t, scenario, func(s step) bool { return !s.toArchive() })
			})
		}
	}
}

// One program goes on in the workspace of the other, and deletes by its list.
func TestWorkspacesBetweenThePrograms(t *testing.T) {
	peer(t)
	for _, of := range []struct {
		c        *recording
		scenario string
		handover string // the first step that the second program runs
	}{
		{operators, "01-m2m-heads", "02"}, {operators, "05-target-catalog", "02"}, {operators, "29-by-tag-and-later-change", "02"},
		{operators, "12-delete", "04"}, {releases, "r01-m2m-heads", "02"}, {releases, "r16-delete", "05"},
	} {
		before := func(s step) bool { return filepath.Base(s.name)[:2] < of.handover }
		runHanded(t, "ours", of.scenario, func(t *testing.T) { of.c.handed(t, of.scenario, before) })
		runHanded(t, "theirs", of.scenario, func(t *testing.T) {
			of.c.handed(t, of.scenario, func(s step) bool { return !before(s) })
		})
	}
}
