package migrate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// The memory for a list does not grow with its length, only with the number of concurrent migrations.
func TestMigrateListMemory(t *testing.T) {
	dir := clitest.WorkDir(t)
	peak := func(lines int) int64 {
		t.Helper()
		name := fmt.Sprint("list-", lines)
		var list strings.Builder
		for i := range lines {
			fmt.Fprintf(&list, "small.db out-%d/%d\n", lines, i)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(list.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := clitest.Command(dir, "bindery", "migrate", "--from-file", name, "--migrate-level",
			"bundle-object-to-csv-metadata", "--quiet")
		if got := clitest.FinishProcess(t, cmd); got.Status != 0 {
			t.Fatal(got.Stderr)
		}
		return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	}
	few, many := peak(4), peak(100)
	t.Logf("4 lines: %d KiB, 100 lines: %d KiB", few, many)
	if many > few+few/4+(8<<10) {
		t.Errorf("4 lines take %d KiB, 100 lines %d KiB", few, many)
	}
}
