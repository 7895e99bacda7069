package mirror_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// What a run keeps of an image that is absent is little, and what it writes of all at its end is made item by item, so that
// 100,000 of them, as many as an image set can name, take less than 256 MB.
func TestMemoryOfAbsentImages(t *testing.T) {
	from, to := testregistry.New(t), testregistry.New(t)
	// The memory of a run, in bytes, with so many absent images.
	run := func(n int) int64 {
		dir := t.TempDir()
		var b strings.Builder
		b.WriteString("kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  additionalImages:\n")
		for i := range n {
			fmt.Fprintf(&b, "  - name: %s/a/i%06d:v1\n", from.Host(), i)
		}
		clitest.WriteFile(t, filepath.Join(dir, "set.yaml"), b.String())
		cmd := clitest.Command(dir, "bindery", "mirror", "run", "-c", "set.yaml", "--workspace", "ws", "docker://"+to.Host()+"/mirror",
			"--use-http", "--no-cache", "--retries", "0", "--quiet", "--account", "account.json")
		cmd.Env = append(cmd.Env, "GOGC=10") // as the program has it for more than 10,000 images
		start := time.Now()
		got := clitest.FinishProcess(t, cmd)
		if got.Status != 4 {
			t.Fatalf("%d: %.2000s", got.Status, got.Stderr)
		}
		is := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
		t.Logf("%d names: %d MB, %s", n, is>>20, time.Since(start))
		return is
	}
	const few, many, all = 4_000, 14_000, 100_000 // more than there are repositories that are remembered
	with := run(many)
	each := (with - run(few)) / (many - few)
	if with += (all - many) * each; with > 256_000_000 {
		t.Errorf("%d images would take %d MB: %d bytes for each", all, with/1_000_000, each)
	}
}
