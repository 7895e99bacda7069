package ocmirror_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/releasetest"
)

// A release of 190 components and 20 GB is mirrored within 256 MiB of memory.
func TestMemoryForRelease(t *testing.T) {
	const components, most = 190, 256 << 10 // KiB
	layer := int64(105 << 20)
	if testing.Short() {
		layer = 16 << 20
	}
	l := releasetest.NewLarge(t, components, layer)
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "isc.yaml"), "kind: ImageSetConfiguration\n"+
		"apiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  platform:\n    release: "+l.Release+"\n")
	cmd := clitest.Command(dir, "oc-mirror", "-c", "isc.yaml", "--workspace", "file://"+filepath.Join(dir, "ws"),
		"docker://"+l.Target.Host()+"/m", "--v2", "--ignore-release-signature", "--dest-tls-verify=false",
		"--cache-dir", filepath.Join(dir, "cache"))
	cmd.Env = append(cmd.Env, "CONTAINERS_REGISTRIES_CONF="+l.Source.RegistriesConf(t, releasetest.Host), "HOME="+dir)
	var mu sync.Mutex
	var uploaded, peak int
	l.Uploaded = func() {
		mu.Lock()
		defer mu.Unlock()
		uploaded++
		peak = max(peak, highWater(t, cmd.Process.Pid))
	}
	if got := clitest.FinishProcess(t, cmd); got.Status != 0 {
		t.Fatalf("%+v", got)
	}
	tags := len(l.Target.Tags("m/openshift/release"))
	t.Logf("%d layers, %d tags, %d MB; %d KiB", uploaded, tags, l.Bytes/1e6, peak)
	if uploaded != components || tags != components || len(l.Target.Tags("m/openshift/release-images")) != 1 {
		t.Errorf("%d layers, %d tags", uploaded, tags)
	}
	if peak > most || peak == 0 {
		t.Errorf("%d KiB", peak)
	}
}

// highWater returns the most memory that a process has had, in KiB.
func highWater(t *testing.T, pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Error(err)
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	rest, _, _ = strings.Cut(rest, "kB")
	n, err := strconv.Atoi(strings.TrimSpace(rest))
	if err != nil {
		t.Error(err)
	}
	return n
}
