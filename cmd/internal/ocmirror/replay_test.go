package ocmirror_test

import (
	"archive/tar"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/releasetest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// recording is what oc-mirror did in some scenarios, and how they are run again.
type recording struct {
	// runs are the recorded files, SCENARIO/NN-STEP.EXTENSION.
	runs func(testing.TB) map[string][]byte
	// fill adds the content of the source, whose manifests are those of manifests.
	fill      func(testing.TB, *testregistry.Registry)
	manifests func(testing.TB) []mirrortest.Manifest
	// source, target and cache are addresses in the recorded files.
	source, target, cache string
	// differences is a file, see [readDifferences].
	differences string
	// strict is set if a step without a recorded file left nothing of that kind, and if archives and workspaces are
	// compared.
	strict bool
	// prepare completes a scenario before its first step, and before does what was done before a step. Both may be nil.
	prepare func(*replay)
	before  func(r *replay, s step, number, last int)
}

// step is one recorded command line.
type step struct {
	name   string   // SCENARIO/NN-STEP
	env    []string // NAME=VALUE, beside that of all steps
	args   []string
	status int
	stdout string
}

var workspaceIn = regexp.MustCompile(`(?:^|file://)\$W/([^/]+)(?:$|/working-dir)`)

// workspace is the directory that the step works in, relative to that of the scenario.
func (s step) workspace() string {
	for _, a := range s.args {
		if m := workspaceIn.FindStringSubmatch(a); m != nil && path.Ext(m[1]) == "" {
			return m[1]
		}
	}
	return "ws"
}

func (s step) has(flag string) bool { return slices.Contains(s.args, flag) }

func (s step) dry() bool { return s.has("--dry-run") || s.has("--dry-run-manifest-lists") }

// deleteID is what the names of the lists that the step writes have before the extension.
func (s step) deleteID() string {
	if at := slices.Index(s.args, "--delete-id"); at >= 0 {
		return "-" + s.args[at+1]
	}
	return ""
}

// toArchive tells that the step writes an archive, or would.
func (s step) toArchive() bool {
	return !s.has("delete") && !s.has("list") && !slices.ContainsFunc(s.args, func(a string) bool {
		return strings.HasPrefix(a, "docker://")
	})
}

// steps returns the steps of all scenarios, in order.
func (c *recording) steps(t testing.TB) map[string][]step {
	t.Helper()
	runs := c.runs(t)
	name := regexp.MustCompile(`^[0-9a-z-]+/[0-9]+-[a-z0-9-]+\.txt$`)
	out := map[string][]step{}
	for _, file := range slices.Sorted(maps.Keys(runs)) {
		if !name.MatchString(file) {
			continue
		}
		s := step{name: strings.TrimSuffix(file, ".txt")}
		env, rest, _ := strings.Cut(string(runs[file]), "$ oc-mirror ")
		s.env = strings.Fields(env)
		lines := strings.SplitN(rest, "\n", 3)
		s.args = strings.Fields(lines[0])
		var err error
		if s.status, err = strconv.Atoi(strings.TrimPrefix(lines[1], "exit: ")); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		_, rest, _ = strings.Cut(lines[2], "--- stdout\n")
		s.stdout, _, _ = strings.Cut(rest, "--- stderr\n")
		scenario := path.Dir(file)
		out[scenario] = append(out[scenario], s)
	}
	return out
}

// difference is in what a step is to differ from oc-mirror's.
type difference struct {
	status *int
	lines  map[string][]string // by what is compared
	as     map[string]string   // the step with which to compare instead
	any    map[string]bool     // what is not compared
}

// aspects are what is compared, in the words of a file of differences.
var aspects = []string{"registry", "resources", "mapping", "delete", "errors", "pinned", "workspace", "archive",
	"stdout"}

// readDifferences reads a file of differences. Each part begins with "## STEP: REASON". Its lines are "status N", the
// exit status; an aspect, to which the following lines belong, at first "registry"; "- LINE" and "+ LINE", what
// oc-mirror has and this program has not, and the reverse; "as STEP", the step with which the aspect is compared
// instead; "any", the aspect is not compared.
func readDifferences(t testing.TB, file string) map[string]difference {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]difference{}
	for _, part := range strings.Split("\n"+string(text), "\n## ")[1:] {
		title, text, _ := strings.Cut(part, "\n")
		name, why, _ := strings.Cut(title, ": ")
		if _, twice := out[name]; twice || why == "" {
			t.Errorf("%s: %q is there twice or without a reason", file, name)
		}
		d := difference{lines: map[string][]string{}, as: map[string]string{}, any: map[string]bool{}}
		aspect := "registry"
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			word, rest, _ := strings.Cut(line, " ")
			switch {
			case line == "":
			case word == "status":
				n, err := strconv.Atoi(rest)
				if err != nil {
					t.Errorf("%s, %s: %v", file, name, err)
				}
				d.status = &n
			case word == "-", word == "+":
				d.lines[aspect] = append(d.lines[aspect], line)
			case word == "as":
				d.as[aspect] = rest
			case line == "any":
				d.any[aspect] = true
			case slices.Contains(aspects, line):
				aspect = line
			default:
				t.Errorf("%s, %s: %q", file, name, line)
			}
		}
		out[name] = d
	}
	return out
}

// run runs all scenarios again, but those that are left out.
func (c *recording) run(t *testing.T, leftOut map[string]string) {
	all := c.steps(t)
	known := map[string]bool{}
	for scenario, steps := range all {
		for _, s := range steps {
			known[s.name] = true
		}
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			if why := leftOut[scenario]; why != "" {
				t.Log("left out: " + why)
				return
			}
			newReplay(t, c, scenario).run(steps)
		})
	}
	for name, d := range readDifferences(t, c.differences) {
		for _, of := range append(slices.Collect(maps.Values(d.as)), name) {
			if !known[of] {
				t.Errorf("%s: there is no step %s", c.differences, of)
			}
		}
	}
}

// replay is a scenario that is run again.
type replay struct {
	*testing.T
	*recording
	scenario       string
	dir            string
	source, target *testregistry.Registry
	conf           string
	names          []string // of the recording, each followed by that of this run
	env            []string
	want           map[string]difference
	signatures     map[string]string // digests of signatures at the source, by tag
	seen           map[string]bool   // the contents of the archives so far
	written        []string          // the archives of the last step that wrote any
	saved          map[string]string // archives by the step that wrote them
	world          *releasetest.World
}

func newReplay(t *testing.T, c *recording, scenario string) *replay {
	t.Helper()
	r := &replay{T: t, recording: c, scenario: scenario, dir: t.TempDir(), source: testregistry.New(t),
		target: testregistry.New(t), want: readDifferences(t, c.differences), signatures: map[string]string{},
		seen: map[string]bool{}, saved: map[string]string{}}
	c.fill(t, r.source)
	r.target.Separate(true)
	r.target.SetRules(testregistry.Rules{Children: true})
	r.conf = r.source.RegistriesConf(t, mirrortest.Host)
	for _, m := range c.manifests(t) {
		for _, tag := range m.Tags {
			if strings.HasSuffix(tag, ".sig") {
				r.signatures[tag] = m.Digest
			}
		}
	}
	r.names = []string{c.source, r.source.Host(), c.target, r.target.Host(), "$FX", filepath.Join(r.dir, "fx"),
		"$W", r.dir}
	r.env = []string{"CONTAINERS_REGISTRIES_CONF=" + r.conf, "HOME=" + r.dir}
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"} {
		r.env = append(r.env, name+"=", strings.ToLower(name)+"=")
	}
	if c.prepare != nil {
		c.prepare(r)
	}
	for name, text := range c.runs(t) {
		if base, ok := strings.CutPrefix(name, scenario+"/"); ok && !strings.Contains(base, "cluster-resources") &&
			(strings.HasSuffix(base, ".yaml") || strings.HasSuffix(base, ".json")) {
			clitest.WriteFile(t, filepath.Join(r.dir, base), r.local(string(text)))
		}
	}
	return r
}

// local replaces the names of the recording by those of this run, and recorded those of this run by the recording's.
func (r *replay) local(text string) string { return strings.NewReplacer(r.names...).Replace(text) }

func (r *replay) recorded(text string) string {
	var pairs []string
	for i := 0; i < len(r.names); i += 2 {
		pairs = append(pairs, r.names[i+1], r.names[i])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// execute runs a step, with others for some of its words and additional variables.
func (r *replay) execute(s step, env []string, replace ...string) clitest.Result {
	r.Helper()
	var args []string
	for _, a := range s.args {
		args = append(args, strings.NewReplacer(replace...).Replace(r.local(a)))
	}
	cmd := clitest.Command(r.dir, "oc-mirror", args...)
	cmd.Env = append(cmd.Env, r.env...)
	for _, e := range s.env {
		cmd.Env = append(cmd.Env, r.local(e))
	}
	cmd.Env = append(cmd.Env, env...)
	return clitest.Finish(r.T, cmd)
}

// again runs the arguments of a recorded step, with others, and returns the answer.
func (r *replay) again(s step, replace ...string) clitest.Result {
	r.Helper()
	return r.execute(s, nil, replace...)
}

func (r *replay) run(steps []step) {
	last := 0
	for _, s := range steps {
		number, _ := strconv.Atoi(path.Base(s.name)[:2])
		if r.before != nil {
			r.before(r, s, number, last)
		}
		last = number
		held := r.holds(s)
		got := r.execute(s, nil)
		want := s.status
		if of := r.want[s.name].status; of != nil {
			want = *of
		}
		if got.Status != want {
			r.Errorf("%s: status %d instead of %d, oc-mirror %d\n%s", s.name, got.Status, want, s.status, got.Stderr)
		}
		r.noteArchives(s)
		r.compare(s, got, want, held)
	}
}

// tree returns the regular files below a directory that match a pattern of their base names.
func (r *replay) tree(dir, pattern string) map[string]string {
	r.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(filepath.Join(r.dir, dir), func(path string, d os.DirEntry, err error) error {
		if ok, _ := filepath.Match(pattern, filepath.Base(path)); err == nil && d.Type().IsRegular() && ok {
			out[path] = clitest.ReadFile(r.T, path)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		r.Fatal(err)
	}
	return out
}

// noteArchives saves the archives that a step wrote. oc-mirror replaces an earlier archive, beside which this program
// writes.
func (r *replay) noteArchives(s step) {
	files, _ := filepath.Glob(filepath.Join(r.dir, s.workspace(), "mirror_*.tar"))
	save := filepath.Join(r.dir, "saved", path.Base(s.name))
	var written []string
	for _, f := range files {
		if text := clitest.ReadFile(r.T, f); !r.seen[text] {
			r.seen[text] = true
			if err := os.MkdirAll(save, 0o755); err != nil {
				r.Fatal(err)
			}
			clitest.WriteFile(r.T, filepath.Join(save, filepath.Base(f)), text)
			written = append(written, f)
		}
	}
	if len(files) > 0 {
		r.saved[path.Base(s.name)[strings.LastIndex(path.Base(s.name), "-")+1:]] = save
	}
	if len(written) > 0 {
		r.written = written
	} else if s.toArchive() && !s.dry() {
		r.written = nil
	}
}

// text returns what was recorded of a step for an aspect, and whether it is to be compared.
func (r *replay) text(s step, aspect, extension string) (string, bool) {
	runs := r.runs(r.T)
	name := s.name
	if as := r.want[name].as[aspect]; as != "" {
		name = as
	}
	_, whole := runs[name+".tree.txt"]
	text, ok := runs[name+extension]
	if r.want[s.name].any[aspect] {
		return "", false
	}
	return string(text), ok || r.strict && whole
}

// check compares what oc-mirror left with what this program left, in lines. The one is to differ from the other as the
// file of differences says.
func (r *replay) check(s step, aspect string, theirs, have []string) {
	r.Helper()
	diff := lineDiff(theirs, have)
	var more, less []string
	for _, line := range diff {
		if !slices.Contains(r.want[s.name].lines[aspect], line) {
			more = append(more, line)
		}
	}
	for _, line := range r.want[s.name].lines[aspect] {
		if !slices.Contains(diff, line) {
			less = append(less, line)
		}
	}
	if len(more)+len(less) > 0 {
		r.Errorf("%s: %s: it differs from oc-mirror's (- oc-mirror, + this program) where it must not\n%s\nand does "+
			"not, where it must\n%s", s.name, aspect, strings.Join(more, "\n"), strings.Join(less, "\n"))
	}
}

// compare compares what a step leaves. held is what the workspace had before.
func (r *replay) compare(s step, got clitest.Result, want int, held []string) {
	if text, ok := r.text(s, "registry", ".registry.txt"); ok {
		r.check(s, "registry", r.listed(text), r.listing())
	}
	if s.has("list") && !s.has("--help") && got.Stdout != s.stdout {
		r.check(s, "stdout", append(strings.Split(s.stdout, "\n"), "in this order"), strings.Split(got.Stdout, "\n"))
	}
	if got.Status != want {
		return
	}
	wanted := func(aspect string) bool { return want == 0 || len(r.want[s.name].lines[aspect]) > 0 }
	if text, ok := r.text(s, "resources", ".cluster-resources.yaml"); ok && wanted("resources") && !s.toArchive() &&
		!s.has("delete") && !s.has("list") {
		r.compareResources(s, text)
	}
	for _, aspect := range []string{"mapping", "delete", "errors", "pinned"} {
		if text, ok := r.text(s, aspect, ".files.txt"); ok {
			r.compareFiles(s, aspect, text, want)
		}
	}
	if !r.strict || !wanted("workspace") {
		return
	}
	if text, ok := r.text(s, "workspace", ".tree.txt"); ok && !(s.dry() && s.has("--from")) {
		theirs := inTree(text)
		if s.dry() {
			theirs = held
		}
		r.check(s, "workspace", theirs, r.holds(s))
	}
	if text, ok := r.text(s, "archive", ".archive.txt"); ok && s.toArchive() && !s.dry() {
		r.check(s, "archive", r.members(text), r.archived())
	}
}

// listed returns REPOSITORY:TAG DIGEST of a recorded list. Rebuilt images have no digest, as it is random. Signatures
// have that of the source: oc-mirror writes other manifests.
func (r *replay) listed(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || strings.HasSuffix(line, "tags)\n") || strings.HasSuffix(line, "tags>\n") {
			continue
		}
		if d := r.signatures[fields[0][strings.LastIndex(fields[0], ":")+1:]]; d != "" {
			fields[1] = d
		}
		out = append(out, registryLine(fields[0], fields[1]))
	}
	slices.Sort(out)
	return out
}

var rebuiltTag = regexp.MustCompile(`:sha256-[0-9a-f]{64}$`)

func registryLine(name, d string) string {
	if strings.Contains(name, "catalog") || strings.Contains(name, "my/o") || strings.Contains(name, "graph-image") {
		return rebuiltTag.ReplaceAllString(name, ":sha256-REBUILT")
	}
	return name + " " + d
}

// listing returns what the destination has, as listed does.
func (r *replay) listing() []string {
	var out []string
	for _, repository := range r.target.Repositories() {
		for _, tag := range r.target.Tags(repository) {
			out = append(out, registryLine(repository+":"+tag,
				digest.FromBytes(r.target.Manifest(repository, tag)).String()))
		}
	}
	slices.Sort(out)
	return out
}

// lineDiff returns the lines that only one of two lists has.
func lineDiff(want, have []string) []string {
	var out []string
	for _, l := range want {
		if !slices.Contains(have, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range have {
		if !slices.Contains(want, l) {
			out = append(out, "+ "+l)
		}
	}
	return out
}

// The names of catalogs that are named by digest have that of the rebuilt one, which is random with oc-mirror.
var (
	rebuiltName   = regexp.MustCompile(`-sha256-[0-9a-f]{5}\b`)
	rebuiltDigest = regexp.MustCompile(`:sha256-[0-9a-f]{64}`)
)

// parts returns the recorded files of a text by their names, with a path relative to the workspace.
func (r *replay) parts(s step, text string) map[string][]string {
	out := map[string][]string{}
	for _, part := range strings.Split(text, "##### ")[1:] {
		name, content, _ := strings.Cut(part, "\n")
		name = strings.TrimSpace(name)
		if r.strict {
			_, name, _ = strings.Cut(name, "/")
		}
		out[name] = append(out[name], content)
	}
	return out
}

// compareResources compares the objects of the files for clusters, without times, versions and order.
func (r *replay) compareResources(s step, text string) {
	const at = "working-dir/cluster-resources/"
	from := at
	if s.dry() {
		if s.has("--from") && !r.strict {
			return // those of an earlier step
		}
		from = "working-dir/dry-run/cluster-resources/" // oc-mirror writes those of a dry run where others are
	}
	plain := func(text string) string {
		return rebuiltName.ReplaceAllString(rebuiltDigest.ReplaceAllString(text, ":sha256-REBUILT"), "-sha256-REBUILT")
	}
	var theirs, have []string
	for name, content := range r.parts(s, text) {
		if base := strings.TrimPrefix(name, at); !strings.Contains(base, "/") {
			text := firstSignature.ReplaceAllString(content[0], "$1-1")
			theirs = append(theirs, r.resources(plain(base), plain(text))...)
		}
	}
	dir := filepath.Join(r.dir, s.workspace(), filepath.FromSlash(from))
	for name, content := range r.tree(filepath.Join(s.workspace(), filepath.FromSlash(from)), "*") {
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			r.Fatal(err)
		}
		have = append(have, r.resources(plain(filepath.ToSlash(rel)), plain(r.recorded(content)))...)
	}
	r.check(s, "resources", theirs, have)
}

// firstSignature finds the names of signatures in a ConfigMap. oc-mirror counts over all releases, this program over
// the signatures of each.
var firstSignature = regexp.MustCompile(`(sha256-[0-9a-f]{64})-[0-9]+\b`)

// resources returns a line for each value of the objects of a file, sorted.
func (r *replay) resources(file, text string) []string {
	var out []string
	for _, object := range r.objects(text) {
		name := ""
		if meta, ok := object["metadata"].(map[string]any); ok {
			name = fmt.Sprint(meta["name"])
		}
		out = append(out, flat(file+" "+name, object)...)
	}
	slices.Sort(out)
	return out
}

// flat returns "PREFIX PATH = VALUE" for each value. Elements of lists have no number, and long values their digest.
func flat(prefix string, value any) (out []string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, flat(prefix+" "+key, v[key])...)
		}
	case []any:
		for _, element := range v {
			out = append(out, prefix+"[] = "+fmt.Sprint(element))
		}
	case nil:
	default:
		text := fmt.Sprint(v)
		if len(text) > 300 {
			text = digest.FromString(text).String()
		}
		out = append(out, prefix+" = "+text)
	}
	return out
}

// objects returns the objects of a YAML stream without times and versions.
func (r *replay) objects(text string) []map[string]any {
	var out []map[string]any
	for _, doc := range regexp.MustCompile(`(?m)^---\n`).Split(text, -1) {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		var object map[string]any
		if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
			r.Fatal(err)
		}
		if meta, ok := object["metadata"].(map[string]any); ok {
			if a, ok := meta["annotations"].(map[string]any); ok {
				for _, key := range []string{"createdAt", "createdBy", "oc-mirror_version"} {
					delete(a, key)
				}
			}
		}
		out = append(out, object)
	}
	return out
}

// compareFiles compares pinned configurations, mappings, lists to delete and lists of errors with the recorded ones.
func (r *replay) compareFiles(s step, aspect, text string, status int) {
	parts := r.parts(s, text)
	if aspect == "delete" {
		if !s.has("--generate") {
			return
		}
		list := "working-dir/delete/delete-images.yaml"
		if parts[list] == nil && len(r.want[s.name].lines[aspect]) > 0 {
			parts[list] = []string{""} // which oc-mirror did not write
		}
	}
	var theirs, have []string
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		var lines func(string) []string
		switch base := path.Base(name); {
		case aspect == "pinned" && (strings.HasPrefix(base, "isc_pinned") || strings.HasPrefix(base, "disc_pinned")):
			if s.has("--from") || s.has("delete") || s.dry() || status != 0 {
				continue // oc-mirror finds them in the archive; after errors they are those of an earlier step
			}
			lines = func(text string) []string { return r.resources(base[:strings.Index(base, "_")], text) }
		case aspect == "delete" && base == "delete-imageset-config"+s.deleteID()+".yaml":
			lines = func(text string) []string { return r.resources(base, text) }
		case aspect == "delete" && base == "delete-images"+s.deleteID()+".yaml":
			lines = func(text string) []string { return deleteItems(r.T, r.withoutPort(text)) }
		case aspect == "errors" && strings.HasPrefix(base, "mirroring_errors") && status != 0:
			lines = failedImages
		case aspect == "mapping" && base == "mapping.txt" && s.dry():
			lines = func(text string) []string {
				return slices.DeleteFunc(strings.Split(strings.TrimSpace(r.withoutPort(text)), "\n"),
					func(l string) bool { return strings.Contains(l, "catalog") })
			}
		default:
			continue
		}
		files, _ := filepath.Glob(filepath.Join(r.dir, s.workspace(),
			strings.NewReplacer("<rfc3339>", "*", "<stamp>", "*").Replace(name)))
		if len(files) < len(parts[name]) && len(files) > 0 {
			continue // two runs within a second
		}
		// Several runs leave a file each, whose names have the time: one is as the recorded one.
		want := lines(parts[name][len(parts[name])-1])
		var best []string
		for i, file := range files {
			got := lines(r.recorded(clitest.ReadFile(r.T, file)))
			if aspect == "errors" { // images that are skipped as others failed are in it, too
				got = slices.DeleteFunc(got, func(line string) bool { return !slices.Contains(want, line) })
			}
			if i == 0 || len(lineDiff(want, got)) < len(lineDiff(want, best)) {
				best = got
			}
		}
		theirs, have = append(theirs, want...), append(have, best...)
	}
	if len(theirs)+len(have) > 0 || len(parts) > 0 && len(r.want[s.name].lines[aspect]) > 0 {
		r.check(s, aspect, theirs, have)
	}
}

// withoutPort removes the address of oc-mirror's cache, for which this program has no port.
func (r *replay) withoutPort(text string) string {
	return strings.ReplaceAll(text, "localhost:"+r.cache+"/", "")
}

// kept tells whether a file of a workspace is one that is read when the workspace is used again, or that of an archive.
func kept(name string) bool {
	return strings.HasPrefix(name, "signatures/") || strings.HasPrefix(name, "hold-release/") &&
		(strings.Contains(name, "/cincinnati-graph-data/") || strings.Contains(name, "/release-manifests/"))
}

// needless tells whether a member of an archive is one that oc-mirror writes and does not read. An archive of this
// program has none.
func needless(name string) bool {
	return strings.HasPrefix(name, "working-dir/release-images/") ||
		strings.HasPrefix(name, "working-dir/graph-preparation/")
}

// inTree returns NAME SIZE of the kept files of a recorded workspace.
func inTree(text string) (out []string) {
	for line := range strings.Lines(text) {
		if _, rest, ok := strings.Cut(line, "/working-dir/"); ok && kept(rest) && !strings.HasSuffix(rest, "/\n") {
			out = append(out, strings.TrimSpace(rest))
		}
	}
	return out
}

// holds returns what inTree returns, of the workspace of a step. Signatures must be readable to their owner alone.
func (r *replay) holds(s step) (out []string) {
	dir := filepath.Join(r.dir, s.workspace(), "working-dir")
	for name, text := range r.tree(filepath.Join(s.workspace(), "working-dir"), "*") {
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			r.Fatal(err)
		}
		if rel = filepath.ToSlash(rel); !kept(rel) {
			continue
		}
		line := fmt.Sprintf("%s %d", rel, len(text))
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// members returns what is compared of the members of an archive, from lines NAME SIZE MODE. Rebuilt images are left
// out, and signatures are those of the source.
func (r *replay) members(text string) []string {
	theirs := map[string]string{} // digests of the source's signatures by oc-mirror's, in hexadecimal
	for _, m := range signatureLink.FindAllStringSubmatch(text, -1) {
		if d := r.signatures[m[1]]; d != "" {
			theirs[m[2]] = strings.TrimPrefix(d, "sha256:")
		}
	}
	text = hexadecimal.ReplaceAllStringFunc(text, func(hex string) string {
		if d, ok := theirs[hex]; ok {
			return d
		}
		return hex
	})
	var lines []string
	for line := range strings.Lines(text) {
		if name, rest, ok := strings.Cut(line, " "); ok && !strings.HasPrefix(line, "#") && !needless(name) {
			size, _, _ := strings.Cut(rest, " ")
			lines = append(lines, name+" "+size)
		}
	}
	return r.memberLines(lines)
}

var (
	signatureLink = regexp.MustCompile(`/tags/(sha256-[0-9a-f]{64}\.sig)/index/sha256/([0-9a-f]{64})/link`)
	hexadecimal   = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	repositoryIn  = regexp.MustCompile(`^docker/registry/v2/repositories/(.*?)/_(?:layers|manifests)/`)
	layerIn       = regexp.MustCompile(`/_layers/sha256/([0-9a-f]{64})/link`)
	blobIn        = regexp.MustCompile(`^docker/registry/v2/blobs/sha256/../([0-9a-f]{64})/data`)
)

// archived returns the same of the archives that the last step wrote.
func (r *replay) archived() []string {
	var lines []string
	for _, file := range r.written {
		f, err := os.Open(file)
		if err != nil {
			r.Fatal(err)
		}
		defer f.Close()
		for t := tar.NewReader(f); ; {
			h, err := t.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				r.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s %d", h.Name, h.Size))
		}
	}
	return r.memberLines(lines)
}

// memberLines returns what is compared of members, from lines NAME SIZE.
func (r *replay) memberLines(lines []string) (out []string) {
	atSource := r.blobsAtSource()
	for _, line := range lines {
		name, _, _ := strings.Cut(line, " ")
		if m := repositoryIn.FindStringSubmatch(name); m != nil {
			layer := layerIn.FindStringSubmatch(name)
			if strings.Contains(m[1], "catalog") ||
				strings.Contains(m[1], "graph-image") && !strings.HasSuffix(name, "/current/link") ||
				layer != nil && !atSource[layer[1]] {
				continue
			}
			out = append(out, name)
			continue
		}
		if m := blobIn.FindStringSubmatch(name); m != nil && atSource[m[1]] {
			out = append(out, "blob "+m[1])
		}
		if rest, ok := strings.CutPrefix(line, "working-dir/"); ok && (kept(rest) || needless(line)) {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

// blobsAtSource are the digests of the source's manifests and of what they consist of, but for charts, catalogs, the
// base of the graph image, and the blobs of signatures, which oc-mirror writes again.
func (r *replay) blobsAtSource() map[string]bool {
	out := map[string]bool{}
	for _, m := range r.manifests(r.T) {
		if strings.HasPrefix(m.Repository, "charts/") || strings.Contains(m.Repository, "catalog") ||
			strings.HasPrefix(m.Repository, "ubi9/") {
			continue
		}
		text := m.Digest
		if !slices.ContainsFunc(m.Tags, func(tag string) bool { return r.signatures[tag] != "" }) {
			text += " " + string(r.source.Manifest(m.Repository, m.Digest))
		}
		for _, hex := range hexadecimal.FindAllString(text, -1) {
			out[hex] = true
		}
	}
	return out
}
