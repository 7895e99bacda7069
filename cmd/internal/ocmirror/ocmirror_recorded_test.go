package ocmirror_test

import (
	"fmt"
	"maps"
	"net/http"
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
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// again runs the arguments of a recorded step, with others, and returns the answer.
func (r *replay) again(s step, replace ...string) clitest.Result {
	r.Helper()
	var args []string
	for _, a := range s.args {
		args = append(args, strings.NewReplacer(replace...).Replace(r.local(a)))
	}
	cmd := clitest.Command(r.dir, "oc-mirror", args...)
	cmd.Env = append(cmd.Env, "CONTAINERS_REGISTRIES_CONF="+r.conf, "HOME="+r.dir)
	return clitest.Finish(r.T, cmd)
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
	if err != nil {
		r.Fatal(err)
	}
	return out
}

// compareFiles compares pinned configurations, mappings, lists to delete and lists of errors with the recorded ones.
func (r *replay) compareFiles(s step, got clitest.Result, text string) {
	for _, part := range strings.Split(text, "##### ")[1:] {
		name, content, _ := strings.Cut(part, "\n")
		name = strings.TrimSpace(name)
		base := path.Base(name)
		var compare func(string) []string
		switch {
		case strings.HasPrefix(base, "isc_pinned") || strings.HasPrefix(base, "disc_pinned"),
			strings.HasPrefix(base, "delete-imageset-config"):
			compare = func(text string) []string { return objects(r.T, text) }
		case strings.HasPrefix(base, "delete-images"):
			compare = func(text string) []string { return deleteItems(r.T, text) }
		case strings.HasPrefix(base, "mirroring_errors"):
			compare = failedImages
		case base == "mapping.txt":
			compare = func(text string) []string {
				lines := strings.Split(strings.TrimSpace(text), "\n")
				lines = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "catalog") })
				for i := range lines {
					lines[i] = strings.ReplaceAll(lines[i], "localhost:55217/", "")
				}
				slices.Sort(lines)
				return lines
			}
		default:
			continue
		}
		pattern := filepath.Join(r.dir, "ws", strings.NewReplacer("<rfc3339>", "*", "<stamp>", "*").Replace(name))
		files, _ := filepath.Glob(pattern)
		if strings.Contains(base, "pinned") && (slices.Contains(s.args, "--from") || got.Status != 0) {
			continue // oc-mirror finds them in the archive; after errors they are those of an earlier step
		}
		// Several runs leave a file each, whose names have the time.
		want := compare(content)
		if len(files) < strings.Count(text, "##### "+name) {
			continue // two runs within a second
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			have := compare(r.recorded(clitest.ReadFile(r.T, file)))
			if strings.HasPrefix(base, "mirroring_errors") { // images that are skipped as others failed are in it, too
				have = slices.DeleteFunc(have, func(line string) bool { return !slices.Contains(want, line) })
			}
			return slices.Equal(have, want)
		}) {
			have := ""
			for _, file := range files {
				have += strings.Join(compare(r.recorded(clitest.ReadFile(r.T, file))), "\n")
			}
			r.Errorf("%s: no file %s is as oc-mirror's\n%s\nbut\n%s", s.name, name, strings.Join(want, "\n"), have)
		}
	}
}

// otherStatus are the steps whose exit status is not that of oc-mirror, with the reason. The numbers are those of
// defectTests.
var otherStatus = map[string]struct {
	status int
	why    string
}{
	"12-delete/04-delete":                        {0, "15: what is gone is no error"},
	"12-delete/05-delete-again":                  {0, "15"},
	"12b-delete-after-m2m/04-delete-force-cache": {0, "15"},
	"13d-digest-in-registry-with-port/01-m2m":    {0, "21"},
	"15b-max-nested-paths-1/01-m2m":              {0, "20"},
	"15b-max-nested-paths-1/02-m2m-no-namespace": {0, "20"},
	"16d-signature-403/01-m2m":                   {0, "1"},
	"17b-catalog-by-tag-and-digest/01-m2m":       {0, "the destination has the tag"},
	"18f-empty-related-image/01-m2m":             {0, "14: an empty related image names nothing"},
	"19b-cs-template-missing/01-m2m":             {1, "the template is read before anything is copied"},
	"20-config-errors/18-bad-platform":           {1, "it is an error of the configuration"},
	"21-flag-errors/16-keyword-in-path":          {0, "22"},
}

// otherContent returns in what the registry is not as oc-mirror leaves it, by step, with the reasons in the file.
func otherContent(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, part := range strings.Split(clitest.ReadFile(t, "testdata/ocmirror-differences.txt"), "## ")[1:] {
		title, text, _ := strings.Cut(part, "\n")
		name, _, _ := strings.Cut(title, ":")
		out[name] = strings.TrimSpace(text)
	}
	return out
}

// step is one recorded command line.
type step struct {
	name   string // SCENARIO/NN-STEP
	args   []string
	status int
	stdout string
}

// recordedSteps returns the steps of all scenarios, in order.
func recordedSteps(t *testing.T) map[string][]step {
	t.Helper()
	runs := mirrortest.Runs(t)
	name := regexp.MustCompile(`^[0-9a-z-]+/[0-9]+-[a-z0-9-]+\.txt$`)
	out := map[string][]step{}
	for _, file := range slices.Sorted(maps.Keys(runs)) {
		if !name.MatchString(file) {
			continue
		}
		lines := strings.SplitN(string(runs[file]), "\n", 3)
		status, err := strconv.Atoi(strings.TrimPrefix(lines[1], "exit: "))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		_, rest, _ := strings.Cut(lines[2], "--- stdout\n")
		rest, _, _ = strings.Cut(rest, "--- stderr\n")
		scenario := path.Dir(file)
		out[scenario] = append(out[scenario], step{strings.TrimSuffix(file, ".txt"),
			strings.Fields(strings.TrimPrefix(lines[0], "$ oc-mirror ")), status, rest})
	}
	return out
}

// Started as oc-mirror the program does what oc-mirror did in the recorded runs: exit statuses, images and tags at the
// destination, cluster resources, pinned configurations, mappings and lists to delete.
func TestRecordedRunsOfOcMirror(t *testing.T) {
	for scenario, steps := range recordedSteps(t) {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			newReplay(t, scenario).run(steps)
		})
	}
}

// replay is a scenario that is run again.
type replay struct {
	*testing.T
	scenario       string
	dir            string
	source, target *testregistry.Registry
	conf           string
	saved          map[string]string // archives by the step that wrote them
	archived       map[string]bool   // the contents of their files
}

func newReplay(t *testing.T, scenario string) *replay {
	r := &replay{T: t, scenario: scenario, dir: t.TempDir(), source: mirrortest.Source(t), target: testregistry.New(t),
		saved: map[string]string{}, archived: map[string]bool{}}
	r.target.Separate(true)
	r.target.SetRules(testregistry.Rules{Children: true})
	r.conf = r.source.RegistriesConf(t, mirrortest.Host)
	mirrortest.Layout(t, filepath.Join(r.dir, "fx", "oci-catalog"))
	if strings.HasPrefix(scenario, "16d") {
		r.source.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
			if strings.HasSuffix(q.URL.Path, ".sig") {
				w.WriteHeader(http.StatusForbidden)
				return true
			}
			return false
		})
	}
	for name, text := range mirrortest.Runs(t) {
		if base, ok := strings.CutPrefix(name, scenario+"/"); ok && strings.HasSuffix(base, ".yaml") &&
			!strings.Contains(base, "cluster-resources") {
			clitest.WriteFile(t, filepath.Join(r.dir, base), r.local(string(text)))
		}
	}
	return r
}

// local replaces the names of the recording by those of this run, and recorded those of this run by the recording's.
func (r *replay) local(text string) string {
	return strings.NewReplacer("$W", r.dir, "$FX", filepath.Join(r.dir, "fx"), "127.0.0.1:5802", r.target.Host(),
		"127.0.0.1:5801", r.source.Host()).Replace(text)
}

func (r *replay) recorded(text string) string {
	return strings.NewReplacer(filepath.Join(r.dir, "fx"), "$FX", r.dir, "$W", r.target.Host(), "127.0.0.1:5802",
		r.source.Host(), "127.0.0.1:5801").
		Replace(text)
}

func (r *replay) run(steps []step) {
	before := 0
	for _, s := range steps {
		number, _ := strconv.Atoi(path.Base(s.name)[:2])
		if number > before+1 && slices.Contains(s.args, "--from") {
			r.airgap(path.Base(s.name))
		}
		before = number
		var args []string
		for _, a := range s.args {
			args = append(args, r.local(a))
		}
		cmd := clitest.Command(r.dir, "oc-mirror", args...)
		cmd.Env = append(cmd.Env, "CONTAINERS_REGISTRIES_CONF="+r.conf, "HOME="+r.dir)
		got := clitest.Finish(r.T, cmd)
		want := s.status
		if other, ok := otherStatus[s.name]; ok {
			want = other.status
		}
		if got.Status != want {
			r.Errorf("%s: status %d, oc-mirror %d\n%s", s.name, got.Status, s.status, got.Stderr)
		}
		r.compare(s, got)
		if files, _ := filepath.Glob(filepath.Join(r.dir, "ws", "mirror_*.tar")); len(files) > 0 {
			save := filepath.Join(r.dir, "saved", path.Base(s.name))
			if err := os.MkdirAll(save, 0o755); err != nil {
				r.Fatal(err)
			}
			for _, f := range files {
				// oc-mirror replaces an earlier archive, beside which this program writes: what the run wrote is saved.
				if text := clitest.ReadFile(r.T, f); !r.archived[text] {
					r.archived[text] = true
					clitest.WriteFile(r.T, filepath.Join(save, filepath.Base(f)), text)
				}
			}
			r.saved[path.Base(s.name)[strings.LastIndex(path.Base(s.name), "-")+1:]] = save
		}
	}
}

// airgap leaves the archives alone in the workspace: of the run with the same number as the step, if several were
// saved.
func (r *replay) airgap(step string) {
	from := r.saved[step[strings.LastIndex(step, "-")+1:]]
	for _, dir := range r.saved {
		if from == "" {
			from = dir
		}
	}
	if from == "" {
		return
	}
	ws := filepath.Join(r.dir, "ws")
	if err := os.RemoveAll(ws); err != nil {
		r.Fatal(err)
	}
	if err := os.CopyFS(ws, os.DirFS(from)); err != nil {
		r.Fatal(err)
	}
}

// compare compares what a step leaves.
func (r *replay) compare(s step, got clitest.Result) {
	runs := mirrortest.Runs(r.T)
	if text, ok := runs[s.name+".registry.txt"]; ok {
		want, have := registryLines(string(text)), r.registryLines()
		if diff := lineDiff(want, have); diff != otherContent(r.T)[s.name] {
			r.Errorf("%s: the registry differs from oc-mirror's (- oc-mirror, + this program)\n%s", s.name, diff)
		}
	}
	if text, ok := runs[s.name+".cluster-resources.yaml"]; ok && got.Status == 0 {
		r.compareResources(s, string(text))
	}
	if text, ok := runs[s.name+".files.txt"]; ok && (got.Status == 0 || got.Status == s.status) {
		r.compareFiles(s, got, string(text))
	}
	if r.scenario == "22-help" && strings.Contains(s.name, "list-") && !strings.Contains(s.name,
		"help") && got.Stdout != s.stdout {
		r.Errorf("%s: %q instead of %q", s.name, got.Stdout, s.stdout)
	}
}

// registryLines returns REPOSITORY:TAG DIGEST of a recorded list. Rebuilt catalogs have no digest, as it is random.
func registryLines(text string) []string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 || strings.HasSuffix(line, "(no tags)") {
			continue
		}
		out = append(out, registryLine(fields[0], fields[1]))
	}
	slices.Sort(out)
	return out
}

var rebuiltTag = regexp.MustCompile(`:sha256-[0-9a-f]{64}$`)

func registryLine(name, d string) string {
	switch {
	case strings.Contains(name, "catalog") || strings.Contains(name, "my/o"):
		return rebuiltTag.ReplaceAllString(name, ":sha256-REBUILT")
	case strings.HasSuffix(name, ".sig"):
		return name // oc-mirror writes other manifests
	}
	return name + " " + d
}

func (r *replay) registryLines() []string {
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

// lineDiff returns the lines that only one of two sorted lists has.
func lineDiff(want, have []string) string {
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
	return strings.Join(out, "\n")
}

// compareResources compares the objects of the files for clusters, without annotations and order.
func (r *replay) compareResources(s step, text string) {
	for _, part := range strings.Split(text, "##### ")[1:] {
		name, content, _ := strings.Cut(part, "\n")
		name = strings.TrimPrefix(strings.TrimSpace(name), "working-dir/cluster-resources/")
		if slices.Contains(s.args, "--dry-run") || slices.Contains(s.args, "--dry-run-manifest-lists") {
			if s.args[2] != "--workspace" {
				continue // those of an earlier step, which a dry run of oc-mirror wrote
			}
			name = "../dry-run/cluster-resources/" + name
		}
		pattern := filepath.Join(r.dir, "ws", "working-dir", "cluster-resources",
			rebuiltName.ReplaceAllString(name, "-sha256-*"))
		files, _ := filepath.Glob(pattern)
		if len(files) == 0 {
			r.Errorf("%s: there is no %s", s.name, name)
			continue
		}
		have, err := os.ReadFile(files[0])
		if err != nil {
			r.Errorf("%s: %v", s.name, err)
			continue
		}
		plain := func(text string) string {
			return rebuiltName.ReplaceAllString(rebuiltDigest.ReplaceAllString(text, ":sha256-REBUILT"),
				"-sha256-REBUILT")
		}
		want, got := objects(r.T, plain(content)), objects(r.T, plain(r.recorded(string(have))))
		if !slices.Equal(want, got) {
			r.Errorf("%s: %s is\n%s\nand oc-mirror's\n%s", s.name, name, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
	}
}

// The names of catalogs that are named by digest have that of the rebuilt one, which is random with oc-mirror.
var (
	rebuiltName   = regexp.MustCompile(`-sha256-[0-9a-f]{5}\b`)
	rebuiltDigest = regexp.MustCompile(`:sha256-[0-9a-f]{64}`)
)

// objects returns the objects of a YAML stream without annotations, sorted, with sorted lists of mirrors.
func objects(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	for _, doc := range strings.Split(text, "---\n") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		var object map[string]any
		if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
			t.Fatal(err)
		}
		if meta, ok := object["metadata"].(map[string]any); ok {
			if a, ok := meta["annotations"].(map[string]any); ok {
				for _, key := range []string{"createdAt", "createdBy", "oc-mirror_version"} {
					delete(a, key)
				}
				if len(a) == 0 {
					delete(meta, "annotations")
				}
			}
		}
		if spec, ok := object["spec"].(map[string]any); ok {
			for _, key := range []string{"imageDigestMirrors", "imageTagMirrors"} {
				if list, ok := spec[key].([]any); ok {
					slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
				}
			}
		}
		out = append(out, fmt.Sprint(object))
	}
	slices.Sort(out)
	return out
}
