package ocmirror_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/releasetest"
)

// startRelease makes the replay of a scenario with releases and runs the steps up to a number.
func startRelease(t *testing.T, scenario string, until int) (*replay, []step) {
	t.Helper()
	r, steps := newReplay(t, releases, scenario), releases.steps(t)[scenario]
	r.run(steps[:until])
	return r, steps[until:]
}

// atOnce returns a step without --parallel-images, with which all recorded runs copy one image after another.
func atOnce(s step) step {
	s.args = slices.Clone(s.args)
	if at := slices.Index(s.args, "--parallel-images"); at >= 0 {
		s.args = slices.Delete(s.args, at, at+2)
	}
	return s
}

// oneAtOnce refuses a manifest that is being sent while the same one is sent under another tag, as docker distribution
// does now and then. Each waits a moment for such another one.
func oneAtOnce() func(http.ResponseWriter, *http.Request) bool {
	var mu sync.Mutex
	sending := map[digest.Digest]chan struct{}{} // closed when another one comes
	return func(w http.ResponseWriter, q *http.Request) bool {
		if q.Method != http.MethodPut || !strings.Contains(q.URL.Path, "/manifests/") {
			return false
		}
		text, err := io.ReadAll(q.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		q.Body = io.NopCloser(bytes.NewReader(text))
		d := digest.FromBytes(text)
		mu.Lock()
		other, twice := sending[d]
		if twice {
			delete(sending, d)
			close(other)
			mu.Unlock()
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"errors":[{"code":"DIGEST_INVALID","message":"provided digest did not match"}]}`)
			return true
		}
		mine := make(chan struct{})
		sending[d] = mine
		mu.Unlock()
		select {
		case <-mine:
		case <-time.After(20 * time.Millisecond):
			mu.Lock()
			if sending[d] == mine {
				delete(sending, d)
			}
			mu.Unlock()
		}
		return false
	}
}

// puts returns the places of the first and the last upload of a manifest to a repository of the destination among its
// requests; -1 if there is none.
func puts(r *replay, repository string) (first, last int) {
	first, last = -1, -1
	for i, q := range r.target.Requests() {
		if strings.HasPrefix(q, "PUT /v2/"+repository+"/manifests/") {
			if last = i; first < 0 {
				first = i
			}
		}
	}
	return first, last
}

// What the recorded runs with releases do not show. The numbers are those of the defects in the contract of releases.
func TestDefectsOfOcMirrorWithReleases(t *testing.T) {
	t.Run("defect 5: two runs write the same bytes", func(t *testing.T) {
		var before map[string]string
		for range 2 {
			r, rest := startRelease(t, "r07-two-archs", 0)
			if got := r.execute(rest[0], []string{"SOURCE_DATE_EPOCH=1700000000"}); got.Status != 0 {
				t.Fatalf("%+v", got)
			}
			after := map[string]string{}
			for name, text := range r.tree("ws/working-dir/cluster-resources", "*") {
				after[filepath.Base(name)] = r.recorded(text)
			}
			if before != nil && !maps.Equal(before, after) {
				t.Errorf("first\n%v\nthen\n%v", before, after)
			}
			before = after
		}
	})
	t.Run("defect 8: a manifest is not sent twice at once", func(t *testing.T) {
		r, rest := startRelease(t, "r05-full", 0)
		r.target.Interfere(oneAtOnce())
		if got := r.again(atOnce(rest[0])); got.Status != 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("defect 9: why a graph cannot be had is said", func(t *testing.T) {
		r, steps := startRelease(t, "r14-graph-server", 0)
		for i, part := range []string{"stable-9.9", "stable-9.9", "500", "404", "<html>", closedPort, "://x"} {
			if got := r.again(steps[i]); got.Status != 2 || !strings.Contains(got.Stderr, part) {
				t.Errorf("%s: status %d, without %q: %s", steps[i].name, got.Status, part, got.Stderr)
			}
		}
	})
	t.Run("defect 14: a component that is absent ends no run early", func(t *testing.T) {
		for range 3 {
			r, rest := startRelease(t, "r13c-missing-component-beside-others", 0)
			if got := r.again(atOnce(rest[0])); got.Status != 2 || strings.Contains(got.Stderr, "panic") {
				t.Errorf("%+v", got)
			}
		}
	})
	t.Run("defect 15: a fetch that broke off leaves a usable workspace", func(t *testing.T) {
		r, rest := startRelease(t, "r01-m2m-heads", 0)
		r.source.Interfere(func(_ http.ResponseWriter, q *http.Request) bool {
			if strings.Contains(q.URL.Path, "/ocp-release/blobs/") {
				panic(http.ErrAbortHandler)
			}
			return false
		})
		if got := r.again(rest[0]); got.Status != 2 {
			t.Errorf("broken: %+v", got)
		}
		r.source.Interfere(nil)
		r.run(rest[:1])
	})
	t.Run("defect 17: a release is pulled from where it is asked for, by digest", func(t *testing.T) {
		r, rest := startRelease(t, "r09e-release-elsewhere", 0)
		r.source.Forget()
		s := rest[0]
		s.args = slices.DeleteFunc(slices.Clone(s.args), func(a string) bool { return a == "--dry-run" })
		s.args = append(s.args, "--release-source", releasetest.Host+"/"+releasetest.Releases)
		if got := r.again(s); got.Status != 0 {
			t.Errorf("%+v", got)
		}
		if r.source.Count("GET /v2/copy/ocp-release/manifests/") == 0 ||
			r.source.Count("GET /v2/openshift-release-dev/ocp-release/") > 0 {
			t.Errorf("%q", r.source.Requests())
		}
		if r.target.Manifest("m/openshift/release-images", "4.16.1-x86_64") == nil {
			t.Errorf("%q", r.listing())
		}
	})
	t.Run("defects 20 and 21: the graph image comes last, and its base is named", func(t *testing.T) {
		r, rest := startRelease(t, "r10-graph", 0)
		got := r.again(rest[0])
		if got.Status != 0 || !strings.Contains(got.Stderr, "registry.access.redhat.com/ubi9/ubi") {
			t.Errorf("%+v", got)
		}
		_, components := puts(r, "m/openshift/release")
		image, released := puts(r, "m/openshift/release-images")
		graph, _ := puts(r, "m/openshift/graph-image")
		if components < 0 || image < components || graph < released {
			t.Errorf("components until %d, release image %d to %d, graph image from %d", components, image, released,
				graph)
		}
		graphImage(t, r)
	})
	t.Run("defect 22: a dry run leaves the archive", func(t *testing.T) {
		r, rest := startRelease(t, "r15-dry-run", 3)
		before := r.tree("disk", "*")
		if got := r.again(rest[0]); got.Status != 0 {
			t.Errorf("%+v", got)
		}
		after := r.tree("disk", "*")
		for _, files := range []map[string]string{before, after} {
			maps.DeleteFunc(files, func(name, _ string) bool {
				return strings.Contains(name, "/dry-run/") || strings.Contains(name, "/logs/")
			})
		}
		if len(before) == 0 || !maps.Equal(before, after) {
			t.Errorf("before\n%q\nafter\n%q", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
		}
	})
	t.Run("defect 29: samples are not passed over silently", func(t *testing.T) {
		r, steps := startRelease(t, "r20-config", 0)
		for _, s := range steps[:2] {
			if got := r.again(s); !strings.Contains(got.Stderr, "samples") || got.Status != s.status {
				t.Errorf("%s: %+v", s.name, got)
			}
		}
	})
	t.Run("defect 30: the help has the flag for releases without a signature", func(t *testing.T) {
		r, _ := startRelease(t, "r01-m2m-heads", 0)
		if got := clitest.RunProgram(t, r.dir, "oc-mirror", "--help-all"); !strings.Contains(got.Stdout,
			"--ignore-release-signature") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a graph is asked for once", func(t *testing.T) {
		r, rest := startRelease(t, "r06-two-channels", 0)
		if got := r.again(rest[0]); got.Status != 0 {
			t.Errorf("%+v", got)
		}
		count := map[string]int{}
		for _, q := range r.world.Requests() {
			if at, err := url.Parse(strings.TrimPrefix(q, "GET ")); err == nil && at.Path == "/graph" {
				count[at.Query().Get("arch")+" "+at.Query().Get("channel")]++
			}
		}
		if len(count) != 2 || slices.Max(slices.Collect(maps.Values(count))) != 1 {
			t.Errorf("%v in %q", count, r.world.Requests())
		}
	})
	t.Run("a signature in the working directory is not fetched again", func(t *testing.T) {
		r, rest := startRelease(t, "r01-m2m-heads", 1)
		r.world.Forget()
		if got := r.execute(rest[0], []string{"OCP_SIGNATURE_URL=http://" + closedPort + "/"}); got.Status != 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a release image follows its components", func(t *testing.T) {
		r, rest := startRelease(t, "r01-m2m-heads", 0)
		if got := r.again(atOnce(rest[0])); got.Status != 0 {
			t.Errorf("%+v", got)
		}
		_, components := puts(r, "m/openshift/release")
		if image, _ := puts(r, "m/openshift/release-images"); components < 0 || image < components {
			t.Errorf("components until %d, release image from %d", components, image)
		}
	})
}

// graphImage checks that the graph image at the destination consists of what oc-mirror's does: of each image of the
// base with another layer, in which names have no leading slash, and another command.
func graphImage(t *testing.T, r *replay) {
	t.Helper()
	const repository = "m/openshift/graph-image"
	var theirs []string // the files of the layer
	for line := range strings.Lines(string(releases.runs(t)["r10-graph/graph-image.txt"])) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[0], "/var/lib/") && f[1] == "0" &&
			!slices.Contains(theirs, strings.Join(f[:5], " ")[1:]) {
			theirs = append(theirs, strings.Join(f[:5], " ")[1:])
		}
	}
	var index v1.Index
	if err := json.Unmarshal(r.target.Manifest(repository, "latest"), &index); err != nil || len(theirs) != 3 {
		t.Fatalf("%v, %q", err, theirs)
	}
	var platforms []string
	for _, d := range index.Manifests {
		platforms = append(platforms, d.Platform.OS+"/"+d.Platform.Architecture)
		var m v1.Manifest
		var config v1.Image
		decode(t, r.target.Manifest(repository, d.Digest.String()), &m)
		decode(t, r.blob(repository, m.Config.Digest.String()), &config)
		if fmt.Sprint(config.Config.Cmd) !=
			"[/bin/bash -c exec cp -rp /var/lib/cincinnati-graph-data/* /var/lib/cincinnati/graph-data]" {
			t.Errorf("%q", config.Config.Cmd)
		}
		if len(m.Layers) != 2 || len(config.RootFS.DiffIDs) != 2 || config.Architecture != d.Platform.Architecture {
			t.Fatalf("%+v, %+v", m, config)
		}
		if have := layerFiles(t, r.blob(repository, m.Layers[1].Digest.String())); !slices.Equal(have, theirs) {
			t.Errorf("%q instead of %q", have, theirs)
		}
	}
	if slices.Sort(platforms); !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("%q", platforms)
	}
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// blob gets a blob from the destination.
func (r *replay) blob(repository, d string) []byte {
	r.Helper()
	resp, err := http.Get("http://" + r.target.Host() + "/v2/" + repository + "/blobs/" + d)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		r.Fatalf("%s: %s, %v", d, resp.Status, err)
	}
	return text
}

// layerFiles returns NAME TYPE MODE OWNER SIZE of the regular files of a layer, sorted.
func layerFiles(t *testing.T, layer []byte) (out []string) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(layer))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(out)
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			out = append(out, fmt.Sprintf("%s 0 %o %d:%d %d", h.Name, h.Mode, h.Uid, h.Gid, h.Size))
		}
	}
}
