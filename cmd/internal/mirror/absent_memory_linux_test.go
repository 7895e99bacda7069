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

// What a run keeps of an image that is absent is little, and what it writes of all at its end is not made of large trees: without
// bounds, 100,000 of them took more than half a gigabyte.
func TestMemoryOfAbsentImages(t *testing.T) {
	from, to := testregistry.New(t), testregistry.New(t)
	// The memory of a run, in bytes, with so many absent images.
	run := func(n int) int64 {
		dir := t.TempDir()
		var b strings.Builder
		b.WriteString("kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  additionalImages:\n")
		for i := range n {
			fmt.Fprintf(&b, "  - name: %s/acme/some-product/some-component-%06d:v1.2.3\n", from.Host(), i)
		}
		clitest.WriteFile(t, filepath.Join(dir, "set.yaml"), b.String())
		cmd := clitest.Command(dir, "bindery", "mirror", "run", "-c", "set.yaml", "--workspace", "ws", "docker://"+to.Host()+"/mirror",
			"--use-http", "--no-cache", "--retries", "0", "--quiet")
		cmd.Env = append(cmd.Env, "GOGC=10") // as the program has it for more than 10,000 images
		start := time.Now()
		got := clitest.Finish(t, cmd)
		if got.Status != 4 {
			t.Fatalf("%d: %.2000s", got.Status, got.Stderr)
		}
		is := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
		t.Logf("%d names: %d MB, %s", n, is>>20, time.Since(start))
		return is
	}
	const few, many = 5_000, 10_000 // more than there are repositories that are remembered
	if each := (run(many) - run(few)) / (many - few); each > 4500 {
		t.Errorf("%d bytes for each image", each)
	}
}
