package releases_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/zstd"
	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/internal/webclient"
	"github.com/operator-bindery/bindery/mirror/releases"
)

// ownBounds are the cases that Compat changes: without it an architecture has its own first and last version, and fails
// if it has none.
const ownBounds = "arch-amd64+arm64-heads arch-arm64+amd64-full arch-amd64+ppc64le-heads arch-amd64+ppc64le-full " +
	"arch-two-shortest arch-two-two-channels arch-two-two-channels-reversed random06-1 random18-1 random29-0 random37-1"

// contradictions are the cases whose graphs say two things of a version or an image, which only Compat accepts.
const contradictions = "edges-dup-4.1-heads edges-dup-4.1-full edges-dup-4.1-shortest edges-dup-exact"

// answer is what oc-mirror answered.
type answer struct {
	Stage, Error                             string
	Releases, Payloads, Requests, Files, Log []string
}

// recordedCase is a configuration with the answer, or with all that were seen.
type recordedCase struct {
	ID, Graphs, First, Config string
	Env                       map[string]string
	Result                    answer
	Random                    []answer
	RequestsRandom            bool

	reverse bool // the order of the channels
}

func unpack(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func recordedCases(t testing.TB) []recordedCase {
	t.Helper()
	var all []recordedCase
	for d := json.NewDecoder(bytes.NewReader(unpack(t, "cases.jsonl.zst"))); ; {
		var c recordedCase
		if err := d.Decode(&c); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
}

// recordedGraphs returns the answers of graph servers by the name of the set and ARCH/CHANNEL.
func recordedGraphs(t testing.TB) map[string]map[string]json.RawMessage {
	t.Helper()
	var sets map[string]map[string]json.RawMessage
	if err := json.Unmarshal(unpack(t, "graphs.json.zst"), &sets); err != nil {
		t.Fatal(err)
	}
	return sets
}

// graphServer answers with a set of graphs, and keeps what it was asked for.
type graphServer struct {
	set      map[string]json.RawMessage
	requests []string
}

func (s *graphServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	of, q := strings.TrimPrefix(r.URL.Path, "/"), r.URL.Query()
	s.requests = append(s.requests, of+" arch="+q.Get("arch")+" channel="+q.Get("channel"))
	key := q.Get("arch") + "/" + q.Get("channel")
	if of == "okd" {
		key = "okd:" + key
	}
	body, ok := s.set[key]
	if !ok {
		body, ok = s.set["*"]
	}
	if !ok {
		body = []byte(`{"nodes":[],"edges":[]}`)
	}
	var fixed struct {
		Status int
		Raw    string
	}
	if json.Unmarshal(body, &fixed) == nil && fixed.Raw != "" {
		if fixed.Status != 0 {
			w.WriteHeader(fixed.Status)
		}
		body = []byte(fixed.Raw)
	}
	_, _ = w.Write(body)
}

func newClient(t testing.TB) *webclient.Client {
	t.Helper()
	c, err := webclient.NewClient(t.Context(), webclient.Options{Pause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// parse reads what a configuration asks for.
func parse(t *testing.T, c recordedCase, config string) (r releases.Request, err error) {
	t.Helper()
	var form struct {
		Mirror struct {
			Platform struct {
				Channels      []releases.Channel
				Architectures []string
				Platforms     []any
			}
		}
	}
	if err := yaml.Unmarshal([]byte(config), &form); err != nil {
		t.Fatal(err)
	}
	p := form.Mirror.Platform
	r.Channels, r.Architectures = p.Channels, p.Architectures
	if len(p.Platforms) > 0 {
		r.Architectures = []string{"multi"}
	}
	if filter := c.Env["VERSION_FILTER"]; filter != "" {
		r.VersionFilter, err = regexp.Compile(filter)
	}
	if c.reverse {
		slices.Reverse(r.Channels)
	}
	return r, err
}

// outcome is what a case comes to.
type outcome struct {
	choice   *releases.Choice
	err      error
	requests []string
	files    fstest.MapFS
}

func (o *outcome) payloads() []string {
	var all []string
	for _, r := range o.choice.Releases {
		all = append(all, r.Image)
	}
	return set(all)
}

func set(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

func run(t *testing.T, c recordedCase, graphs map[string]json.RawMessage, compat bool) outcome {
	t.Helper()
	s := &graphServer{set: graphs}
	web := httptest.NewServer(s)
	defer web.Close()
	o := outcome{files: fstest.MapFS{}, choice: &releases.Choice{}}
	server := &releases.Server{Client: newClient(t), OCP: web.URL + "/ocp", OKD: web.URL + "/okd",
		Save: func(architecture, channel string, text []byte) error {
			name := releases.FileName(architecture, channel)
			o.files[name] = &fstest.MapFile{Data: text}
			return nil
		}}
	var g releases.Graphs = server
	if c.First != "" {
		first, err := parse(t, c, c.First)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := first.Choose(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		g, s.requests = releases.Stored{Files: o.files}, nil
	}
	r, err := parse(t, c, c.Config)
	if o.err = err; err == nil {
		r.Compat = compat
		o.choice, o.err = r.Choose(t.Context(), g)
	}
	o.requests = s.requests
	return o
}

// withoutVersions returns requests without the start of a path, each once.
func withoutVersions(requests []string) []string {
	var out []string
	for _, r := range requests {
		request, _, _ := strings.Cut(r, " version=")
		out = append(out, request)
	}
	return set(out)
}

// labels returns releases as "VERSION ARCH" without what only tells graph servers apart.
func labels(list []string) []string {
	var out []string
	for _, l := range list {
		out = append(out, strings.NewReplacer("okd:", "", "*", "amd64").Replace(l))
	}
	return set(out)
}

// differences returns what differs from a recorded answer, by its kind.
func (o *outcome) differences(c recordedCase, a answer) map[string]string {
	wrong := map[string]string{}
	compare := func(kind string, got, want []string) {
		if !slices.Equal(got, want) {
			wrong[kind] = fmt.Sprintf("got %q, want %q", got, want)
		}
	}
	var chosen []string
	for _, r := range o.choice.Releases {
		chosen = append(chosen, r.Version+" "+r.Architecture)
	}
	compare("payloads", o.payloads(), set(a.Payloads))
	compare("releases", labels(chosen), labels(a.Releases))
	if !c.RequestsRandom {
		compare("requests", set(o.requests), withoutVersions(a.Requests))
		compare("files", slices.Sorted(maps.Keys(o.files)), set(a.Files))
	}
	if len(set(o.requests)) != len(o.requests) {
		wrong["repeated"] = fmt.Sprint(o.requests)
	}
	if (o.err != nil) != (a.Stage != "") {
		wrong["error"] = fmt.Sprintf("got %v, want %s %s", o.err, a.Stage, a.Error)
	}
	warnings := strings.Join(o.choice.Warnings, "\n")
	for _, line := range a.Log {
		version, noPath := strings.CutPrefix(line, "warn: No upgrade path for ")
		version, _, _ = strings.Cut(version, " ")
		if noPath && !strings.Contains(warnings, "does not have "+version) ||
			strings.Contains(line, "Extended Update Support") && !strings.Contains(warnings, "Extended Update Support") {
			wrong["warnings"] = fmt.Sprintf("got %q, want %q", o.choice.Warnings, line)
		}
	}
	return wrong
}

// closest returns the fewest differences from any recorded answer.
func (o *outcome) closest(c recordedCase) map[string]string {
	best := o.differences(c, c.Result)
	for i, a := range c.Random {
		if wrong := o.differences(c, a); i == 0 || len(wrong) < len(best) {
			best = wrong
		}
	}
	return best
}

// onPurpose are the cases in which something is not as recorded, each with what and why.
var onPurpose = func() map[string][]string {
	all := map[string][]string{}
	for _, x := range []struct{ why, kinds, ids string }{
		{"a malformed request is refused before anything is asked", "requests files",
			"one-partial-min one-partial-max one-v-min one-bad-min one-space-min arch-x86_64-heads arch-x86_64-full " +
				"env-filter-bad"},
		{"an unknown type is refused, and not one of OCP", "payloads releases requests files error", "type-unknown"},
		{"the walk asks the server of OCP, not that of the channel given last", "requests error", "ocp-and-okd"},
		{"the same, and so it finds a path", "payloads releases requests error", "two-ocp-and-okd"},
		{"a walk to another major version, or to a lower minor one, is refused at once", "requests files", "edges-major"},
		{"the same; in the recording that has all the rest one of two equal channels is another", "error", "random85-0"},
		{"the same, where oc-mirror warns or does not end", "requests files warnings", "downwards"},
		{"the same, where oc-mirror does not end", "requests files", "static-downwards"},
		{"a version without a release image is an error", "payloads releases error",
			"edges-nopayload-4.1-heads edges-nopayload-4.1-full edges-nopayload-4.1-shortest"},
		{"a malformed edge is an error in place of a panic: the graph is asked for and saved", "requests files",
			"edges-oob-4.1-shortest edges-short-4.1-shortest"},
		{"a channel in between that has no path to the next one is a warning", "error",
			"blocked-intermediate-lost blocked-intermediate-lost-three"},
		{"of two versions with one release image the recording names the first of the graph", "releases",
			"edges-dup-4.1-heads edges-dup-4.1-shortest"},
		{"of two channels with one lowest version the first is taken, the recording has the other alone",
			"payloads releases", "random46-1"},
	} {
		for id := range strings.FieldsSeq(x.ids) {
			all[id] = strings.Fields(x.kinds)
		}
	}
	return all
}()

// Versions, requests, saved graphs and failures are as recorded, but for what differs on purpose.
func TestChoiceIsAsRecorded(t *testing.T) {
	sets, counts := recordedGraphs(t), map[string]int{}
	for _, c := range recordedCases(t) {
		counts["all"]++
		if c.Result.Stage == "config" { // the image set's parser refuses these
			counts["config"]++
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			o := run(t, c, sets[c.Graphs], true)
			wrong := o.closest(c)
			if got, want := slices.Sorted(maps.Keys(wrong)), set(onPurpose[c.ID]); !slices.Equal(got, want) {
				t.Errorf("%q differ, should be %q: %s\nerror: %v\nwarnings: %q", got, want, wrong, o.err,
					o.choice.Warnings)
			}
		})
	}
	if counts["all"] != 350 || counts["config"] != 3 {
		t.Errorf("%v", counts)
	}
}

// The order of two channels with one lowest version decides, and the recording has the answer of one order.
func TestFirstOfEqualChannels(t *testing.T) {
	sets := recordedGraphs(t)
	for _, c := range recordedCases(t) {
		if c.ID == "random46-1" {
			c.reverse = true
			o := run(t, c, sets[c.Graphs], true)
			if wrong := o.closest(c); len(wrong) > 0 {
				t.Errorf("%s", wrong)
			}
		}
	}
}

// Without Compat only those choices differ for which the last version of an architecture, or the first one, is not
// that of the architecture before.
func TestBoundsOfEachArchitecture(t *testing.T) {
	sets := recordedGraphs(t)
	var differ []string
	for _, c := range recordedCases(t) {
		if c.Result.Stage == "config" {
			continue
		}
		kept, own := run(t, c, sets[c.Graphs], true), run(t, c, sets[c.Graphs], false)
		if slices.Contains(strings.Fields(contradictions), c.ID) {
			if own.err == nil || kept.err != nil || !strings.Contains(strings.Join(kept.choice.Warnings, " "), " two ") {
				t.Errorf("%s: %v, %v", c.ID, own.err, kept.choice.Warnings)
			}
			continue
		}
		if !slices.Equal(kept.payloads(), own.payloads()) || (kept.err == nil) != (own.err == nil) {
			differ = append(differ, c.ID)
			if strings.Count(c.Config, "amd64")+strings.Count(c.Config, "arm64")+strings.Count(c.Config, "ppc64le") < 2 {
				t.Errorf("%s has one architecture", c.ID)
			}
		}
	}
	if got, want := strings.Join(differ, " "), ownBounds; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
