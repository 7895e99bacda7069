package migrate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// Three parts of a list at the same time with one directory of reports: each line is in one of them, and a run of the
// whole list finds all done.
func TestMigrateListShards(t *testing.T) {
	dir := clitest.WorkDir(t)
	lines := []string{"# many", "cat out/cat -> localhost/acme/cat:v1"}
	for i := range 10 {
		clitest.CopyFile(t, filepath.Join(dir, "small.db"), filepath.Join(dir, fmt.Sprintf("index-%d.db", i)))
		lines = append(lines, fmt.Sprintf("index-%d.db  # number %d", i, i))
	}
	clitest.WriteFile(t, filepath.Join(dir, "list"), strings.Join(lines, "\n")+"\n")
	args := []string{"migrate", "--from-file", "list", "--out-dir", "out", "--server", "none"}
	results := make([]clitest.Result, 3)
	var parts sync.WaitGroup
	for i := range results {
		parts.Go(func() {
			cmd := clitest.Command(dir, "bindery", append(args, "--results", fmt.Sprint("results-", i))...)
			cmd.Env = append(cmd.Env, "BINDERY_SHARD=job/3", fmt.Sprint("JOB_COMPLETION_INDEX=", i))
			results[i] = clitest.Finish(t, cmd)
		})
	}
	parts.Wait()
	var seen []int
	for i, got := range results {
		if got.Status != 0 {
			t.Fatalf("part %d: %s", i+1, got.Stderr)
		}
		for _, r := range clitest.LineResults(t, clitest.ReadFile(t, filepath.Join(dir, fmt.Sprint("results-", i)))) {
			seen = append(seen, r.Line)
			if r.Line == 2 && !slices.Equal(r.Outputs, []string{"out/out/cat", "oci:out/cat.oci:v1"}) {
				t.Errorf("%q", r.Outputs)
			}
		}
	}
	slices.Sort(seen)
	if !slices.Equal(seen, []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}) {
		t.Errorf("lines %v were done", seen)
	}
	whole := clitest.RunProgram(t, dir, "bindery", append(args, "--results", "results")...)
	for _, r := range clitest.LineResults(t, clitest.ReadFile(t, filepath.Join(dir, "results"))) {
		if !r.Before {
			t.Errorf("line %d was not done: %s", r.Line, whole.Stderr)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, "list.reports"))
	if err != nil || len(entries) != 11 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestShardUsage(t *testing.T) {
	dir := clitest.WorkDir(t)
	clitest.WriteFile(t, filepath.Join(dir, "list"), "cat out/cat\n")
	for _, c := range []struct {
		args  []string
		index string
		want  string
	}{
		{[]string{"--from-file", "list", "--shard", "3/2"}, "", "invalid shard"},
		{[]string{"--from-file", "list", "--shard", "job/2"}, "", "JOB_COMPLETION_INDEX"},
		{[]string{"--from-file", "list", "--shard", "job/2"}, "2", "invalid shard"},
		{[]string{"--from-file", "list", "--shard", "job/2"}, "-1", "not the index of a pod"},
		{[]string{"cat", "out", "--shard", "1/2"}, "", "--shard requires --from-file"},
	} {
		cmd := clitest.Command(dir, "bindery", append([]string{"migrate"}, c.args...)...)
		cmd.Env = append(cmd.Env, "JOB_COMPLETION_INDEX="+c.index)
		if got := clitest.Finish(t, cmd); got.Status != 1 || !strings.Contains(got.Stderr, c.want) {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
}
