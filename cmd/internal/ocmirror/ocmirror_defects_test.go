package ocmirror_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// defectTests are the tests that fail if a defect of oc-mirror (MIRROR section 14) comes back, by the number of the
// defect: FILE:TEST, where the file is relative to the repository. Sub-tests of this file are named "defect N".
var defectTests = map[int][]string{
	1:  {"cmd/internal/ocmirror/ocmirror_recorded_test.go:TestRecordedRunsOfOcMirror"}, // 16d
	2:  {"cmd/internal/ocmirror/ocmirror_defects_test.go:TestDefectsOfOcMirror"},
	3:  {"mirror/missing_test.go:TestImagesThatCannotBeHad", "mirror/missing_test.go:TestMissingImagesFailTheCatalog"},
	4:  {"cmd/internal/mirror/mirror_test.go:TestMirroredCatalogCarriesNothingOfItsSource"},
	5:  {"cmd/internal/mirror/mirror_test.go:TestMirroredCatalogCarriesNothingOfItsSource"},
	6:  {"mirror/conditions_test.go:TestPlatforms"},
	7:  {"images/remote_resume_test.go:TestInterruptedUploadGoesOn"},
	8:  {"mirror/medium/memory_test.go:TestMemory"},
	9:  {"cmd/internal/ocmirror/ocmirror_defects_test.go:TestDefectsOfOcMirror"},
	10: {"cmd/internal/ocmirror/ocmirror_defects_test.go:TestDefectsOfOcMirror"},
	11: {"cmd/internal/ocmirror/ocmirror_defects_test.go:TestDefectsOfOcMirror", "mirror/run_test.go:TestRunsGiveTheSame",
		"mirror/resources/resources_test.go:TestOrderDoesNotMatter"},
	12: {"mirror/conditions_test.go:TestOneCatalogTwice"},
	13: {"cmd/internal/ocmirror/ocmirror_recorded_test.go:TestRecordedRunsOfOcMirror"}, // 18h, 18i
	14: {"cmd/internal/ocmirror/ocmirror_recorded_test.go:TestRecordedRunsOfOcMirror", // 18f
		"cmd/internal/ocmirror/ocmirror_defects_test.go:TestDefectsOfOcMirror", "mirror/filter/without_test.go:TestUnusableImages"},
	15: {"cmd/internal/ocmirror/ocmirror_recorded_test.go:TestRecordedRunsOfOcMirror"}, // 12, 12b
	16: {"mirror/conditions_test.go:TestCollision"},
	17: {"cmd/internal/ocmirror/ocmirror_defects_test.go:TestDefectsOfOcMirror", "mirror/filter/filter_test.go:TestProblems"},
	18: {"mirror/filter/filter_test.go:TestRepairs"},
	19: {"cmd/internal/ocmirror/ocmirror_defects_test.go:TestDefectsOfOcMirror"},
	20: {"cmd/internal/ocmirror/ocmirror_recorded_test.go:TestRecordedRunsOfOcMirror"}, // 15b
	21: {"cmd/internal/ocmirror/ocmirror_recorded_test.go:TestRecordedRunsOfOcMirror"}, // 13d
	22: {"cmd/internal/ocmirror/ocmirror_recorded_test.go:TestRecordedRunsOfOcMirror", // 21
		"cmd/internal/ocmirror/ocmirror_defects_test.go:TestDefectsOfOcMirror"},
	23: {"images/pushblob_test.go:TestUploadsThatMoveOnAreNotGivenUp", "images/registry_test.go:TestStalledPush"},
	24: {"mirror/kill_test.go:TestKilled", "mirror/medium/kill_test.go:TestKilled"},
	25: {"mirror/imageset/read_test.go:TestAllProblemsAreTold",
		"mirror/imageset/recorded_test.go:TestConfigurationErrorsAsRecorded"},
}

// Each defect has a test.
func TestEachDefectHasATest(t *testing.T) {
	for n := range 25 {
		for _, name := range defectTests[n+1] {
			file, test, _ := strings.Cut(name, ":")
			text := clitest.ReadFile(t, filepath.Join("..", "..", "..", file))
			if !strings.Contains(text, "func "+test+"(t *testing.T)") {
				t.Errorf("defect %d: there is no %s", n+1, name)
			}
			if test == "TestDefectsOfOcMirror" && !strings.Contains(text, fmt.Sprintf("t.Run(\"defect %d:", n+1)) {
				t.Errorf("defect %d: %s has no sub-test", n+1, name)
			}
		}
		if len(defectTests[n+1]) == 0 {
			t.Errorf("defect %d has no test", n+1)
		}
	}
}

// start makes the replay of a scenario and runs the steps up to a number.
func start(t *testing.T, scenario string, until int) (*replay, []step) {
	t.Helper()
	r, steps := newReplay(t, scenario), recordedSteps(t)[scenario]
	r.run(steps[:until])
	return r, steps[until:]
}

// The defects of oc-mirror for which no other test is there.
func TestDefectsOfOcMirror(t *testing.T) {
	t.Run("defect 2: signature manifests have the bytes of the source", func(t *testing.T) {
		for scenario, least := range map[string]int{"16-signatures": 4, "16c-signature-repeated-layer": 1} {
			r, _ := start(t, scenario, 1)
			n := 0
			for _, repository := range r.target.Repositories() {
				for _, tag := range r.target.Tags(repository) {
					if !strings.HasSuffix(tag, ".sig") {
						continue
					}
					n++
					if !bytes.Equal(r.target.Manifest(repository, tag),
						r.source.Manifest(strings.TrimPrefix(repository, "m/"), tag)) {
						t.Errorf("%s: %s:%s is not as at the source", scenario, repository, tag)
					}
				}
			}
			if n < least {
				t.Errorf("%s: %d signatures", scenario, n)
			}
		}
	})
	t.Run("defect 9: an archive without news has no blob of an image", func(t *testing.T) {
		r, _ := start(t, "25-since", 2)
		first, second := blobsOf(t, filepath.Join(r.dir, "saved", "01-m2d-1")),
			blobsOf(t, filepath.Join(r.dir, "saved", "02-m2d-nothing-new"))
		if len(first) < 10 || len(second) > 0 {
			t.Errorf("the archives have %d and %d blobs", len(first), len(second))
		}
	})
	t.Run("defect 10: a run that fails leaves the earlier archive and resources", func(t *testing.T) {
		for scenario, files := range map[string][2]string{"26-failed-run-and-older-archives": {"ws", "mirror_*.tar"},
			"27-failed-run-and-older-resources": {"ws/working-dir/cluster-resources", "*"}} {
			r, rest := start(t, scenario, 1)
			before := r.tree(files[0], files[1])
			if got := r.again(rest[0]); got.Status != rest[0].status {
				t.Errorf("%s: status %d", scenario, got.Status)
			}
			if after := r.tree(files[0], files[1]); len(before) == 0 || fmt.Sprint(before) != fmt.Sprint(after) {
				t.Errorf("%s: %d files, afterwards %d, or others", scenario, len(before), len(after))
			}
		}
	})
	t.Run("defect 11: two runs write the same bytes", func(t *testing.T) {
		var before map[string]string
		for range 2 {
			r, rest := start(t, "01-m2m-heads", 0)
			cmd := clitest.Command(r.dir, "oc-mirror", strings.Split(r.local(strings.Join(rest[0].args, " ")), " ")...)
			cmd.Env = append(cmd.Env, "CONTAINERS_REGISTRIES_CONF="+r.conf, "HOME="+r.dir, "SOURCE_DATE_EPOCH=1700000000")
			if got := clitest.Finish(t, cmd); got.Status != 0 {
				t.Fatalf("%+v", got)
			}
			after := map[string]string{}
			for name, text := range r.tree("ws/working-dir/cluster-resources", "*") {
				after[filepath.Base(name)] = r.recorded(text)
			}
			after["catalog"] = digest.FromBytes(r.target.Manifest("m/acme/catalog", "v1")).String()
			if before != nil && fmt.Sprint(before) != fmt.Sprint(after) {
				t.Errorf("first\n%v\nthen\n%v", before, after)
			}
			before = after
		}
	})
	t.Run("defect 14: an image without a tag is named with its bundle, or takes it out", func(t *testing.T) {
		r, rest := start(t, "18g-tagless-related-image", 0)
		got := r.again(rest[0])
		for _, part := range []string{"eta-op", "eta-op.v1.0.0"} {
			if got.Status != 4 || !strings.Contains(got.Stderr, part) {
				t.Errorf("status %d, without %s: %s", got.Status, part, got.Stderr)
			}
		}
	})
	t.Run("defect 17: an unknown package is a warning", func(t *testing.T) {
		r, rest := start(t, "18e-unknown-package-beside-known", 0)
		if got := r.again(rest[0]); got.Status != 0 || !strings.Contains(got.Stderr, `package "nope"`) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("defect 19: nothing listens", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("sockets are read from /proc")
		}
		r, rest := start(t, "02-m2d-d2m", 0)
		var looked sync.Once
		var pid int
		started := make(chan struct{})
		r.source.Interfere(func(http.ResponseWriter, *http.Request) bool {
			looked.Do(func() {
				<-started
				if n := listening(t, pid); n > 0 {
					t.Errorf("%d sockets listen", n)
				}
				pid = 0
			})
			return false
		})
		cmd := clitest.Command(r.dir, "oc-mirror", strings.Split(r.local(strings.Join(rest[0].args, " ")), " ")...)
		cmd.Env = append(cmd.Env, "CONTAINERS_REGISTRIES_CONF="+r.conf, "HOME="+r.dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid = cmd.Process.Pid
		close(started)
		if err := cmd.Wait(); err != nil || pid != 0 {
			t.Errorf("%v, looked: %t", err, pid == 0)
		}
	})
	t.Run("defect 22: a directory inside of a workspace is refused", func(t *testing.T) {
		for _, scenario := range []string{"01-m2m-heads", "02-m2d-d2m"} {
			r, _ := start(t, scenario, 1)
			s := recordedSteps(t)["02-m2d-d2m"][0]
			got := r.again(s, filepath.Join(r.dir, "ws"), filepath.Join(r.dir, "ws", "working-dir", "logs"))
			if got.Status != 1 || !strings.Contains(got.Stderr, "is inside the workspace") {
				t.Errorf("%s: %+v", scenario, got)
			}
		}
	})
}

// blobsOf returns the blobs of the archive in a directory, without those of the description.
func blobsOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "mirror_*.tar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v", files, err)
	}
	var out []string
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for r := tar.NewReader(f); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(h.Name, "docker/registry/v2/blobs/") {
				out = append(out, h.Name)
			}
		}
	}
	return out
}

// listening counts the TCP sockets of a process on which it listens.
func listening(t *testing.T, pid int) (n int) {
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Error(err)
	}
	var inodes []string
	for _, fd := range fds {
		name, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
		if inode, ok := strings.CutPrefix(name, "socket:["); err == nil && ok {
			inodes = append(inodes, strings.TrimSuffix(inode, "]"))
		}
	}
	if len(inodes) == 0 {
		t.Error("the process has no socket")
	}
	for _, table := range []string{"tcp", "tcp6"} {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		for line := range strings.Lines(string(text)) {
			const state, inode, listen = 3, 9, "0A"
			if f := strings.Fields(line); len(f) > inode && f[state] == listen && slices.Contains(inodes, f[inode]) {
				n++
			}
		}
	}
	return n
}
