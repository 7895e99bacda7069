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

// defectTests are the tests that fail if a defect of oc-mirror v2 that this program does not have comes back, by the
// number of the defect: FILE:TEST, where the file is relative to the repository. Sub-tests of this file are named
// "defect N". The comment after a test names the recorded runs that show the defect.
var defectTests = map[int][]string{
	// An answer 403 for the tag of signatures fails the image, its bundle and the run.
	1: {"cmd/internal/ocmirror/ocmirror_recorded_test.go:TestRecordedRunsOfOcMirror"}, // 16d
	// The manifests of signatures are written again with other bytes.
	2: {"cmd/internal/ocmirror/ocmirror_defects_test.go:TestDefectsOfOcMirror"},
	// A published catalog names images that are not there.
	3: {"mirror/missing_test.go:TestImagesThatCannotBeHad", "mirror/missing_test.go:TestMissingImagesFailTheCatalog"},
	// A rebuilt catalog has a whiteout .wh.configs at the root, so that unpackers that ignore it see two catalogs.
	4: {"cmd/internal/mirror/mirror_test.go:TestMirroredCatalogCarriesNothingOfItsSource"},
	// A rebuilt catalog keeps the serve cache of its source.
	5: {"cmd/internal/mirror/mirror_test.go:TestMirroredCatalogCarriesNothingOfItsSource"},
	// That a registry refuses an index without some of its images is found out at the end of the run.
	6: {"mirror/conditions_test.go:TestPlatforms"},
	// Interrupted uploads begin again.
	7: {"images/remote_resume_test.go:TestInterruptedUploadGoesOn"},
	// Archives are indexed in memory, and blobs are on the disk several times.
	8: {"mirror/medium/memory_test.go:TestMemory"},
	// Each archive has the whole working directory again.
	9: {"cmd/internal/ocmirror/ocmirror_defects_test.go:TestDefectsOfOcMirror"},
	// Old archives and resources are deleted before the new ones are complete.
	10: {"cmd/internal/ocmirror/ocmirror_defects_test.go:TestDefectsOfOcMirror"},
	// Entries of archives and resources are in random order and have random names.
	11: {"cmd/internal/ocmirror/ocmirror_defects_test.go:TestDefectsOfOcMirror", "mirror/run_test.go:TestRunsGiveTheSame",
		"mirror/resources/resources_test.go:TestOrderDoesNotMatter"},
	// Results are kept by the source, so that a catalog which is listed twice has one.
	12: {"mirror/conditions_test.go:TestOneCatalogTwice"},
	// The image of a bundle that is not among its related images is lost.
	13: {"cmd/internal/ocmirror/ocmirror_recorded_test.go:TestRecordedRunsOfOcMirror"}, // 18h, 18i
	// One unusable related image fails the catalog.
	14: {"cmd/internal/ocmirror/ocmirror_recorded_test.go:TestRecordedRunsOfOcMirror", // 18f
		"cmd/internal/ocmirror/ocmirror_defects_test.go:TestDefectsOfOcMirror", "mirror/filter/without_test.go:TestUnusableImages"},
	// Deleting breaks images that others share, and cannot be repeated.
	15: {"cmd/internal/ocmirror/ocmirror_recorded_test.go:TestRecordedRunsOfOcMirror"}, // 12, 12b
	// Two images with one destination overwrite one another silently.
	16: {"mirror/conditions_test.go:TestCollision"},
	// A package or channel that the catalog does not have is passed over silently.
	17: {"cmd/internal/ocmirror/ocmirror_defects_test.go:TestDefectsOfOcMirror", "mirror/filter/filter_test.go:TestProblems"},
	// Channels without entries are written.
	18: {"mirror/filter/filter_test.go:TestRepairs"},
	// Port 55000 is open on all interfaces during a run.
	19: {"cmd/internal/ocmirror/ocmirror_defects_test.go:TestDefectsOfOcMirror"},
	// With --max-nested-paths 1 the path of an image has an empty element.
	20: {"cmd/internal/ocmirror/ocmirror_recorded_test.go:TestRecordedRunsOfOcMirror"}, // 15b
	// References by digest in a registry with a port are parsed wrongly.
	21: {"cmd/internal/ocmirror/ocmirror_recorded_test.go:TestRecordedRunsOfOcMirror"}, // 13d
	// A path with "working-dir" anywhere in it is refused.
	22: {"cmd/internal/ocmirror/ocmirror_recorded_test.go:TestRecordedRunsOfOcMirror", // 21
		"cmd/internal/ocmirror/ocmirror_defects_test.go:TestDefectsOfOcMirror"},
	// An image that takes longer than ten minutes fails.
	23: {"images/pushblob_test.go:TestUploadsThatMoveOnAreNotGivenUp", "images/registry_test.go:TestStalledPush"},
	// A catalog whose unpacking was interrupted is taken for whole.
	24: {"mirror/kill_test.go:TestKilled", "mirror/medium/kill_test.go:TestKilled"},
	// The apiVersion of the image set is not checked, and only the first error in it is reported.
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
	r, steps := newReplay(t, operators, scenario), operators.steps(t)[scenario]
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
			if got := r.execute(rest[0], []string{"SOURCE_DATE_EPOCH=1700000000"}); got.Status != 0 {
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
		cmd.Env = append(cmd.Env, r.env...)
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
			s := operators.steps(t)["02-m2d-d2m"][0]
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
