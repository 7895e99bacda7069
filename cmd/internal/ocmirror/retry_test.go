package ocmirror_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// --retry-times and --retry-delay are about what is read, too. With the usual first pause of a second, these attempts
// would take more than a minute.
func TestRetriesOfSources(t *testing.T) {
	var asked atomic.Int64
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/manifests/v1") {
			asked.Add(1)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer busy.Close()
	dir := t.TempDir()
	set := filepath.Join(dir, "set.yaml")
	clitest.WriteFile(t, set, "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  additionalImages:\n"+
		"  - name: "+strings.TrimPrefix(busy.URL, "http://")+"/acme/app:v1\n")
	start := time.Now()
	got := clitest.RunProgram(t, dir, "oc-mirror", "--v2", "-c", set, "file://"+filepath.Join(dir, "out"), "--src-tls-verify=false",
		"--retry-times", "9", "--retry-delay", "1ms")
	if got.Status == 0 || !strings.Contains(got.Stderr, "503") {
		t.Errorf("status %d: %s", got.Status, got.Stderr)
	}
	if took := time.Since(start); asked.Load() < 10 || took > 30*time.Second {
		t.Errorf("%d requests in %v", asked.Load(), took)
	}
}
