package ocmirror_test

import (
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
)

// operators are the recorded runs with operators and additional images.
var operators = &recording{runs: mirrortest.Runs, fill: mirrortest.Fill, manifests: mirrortest.Manifests,
	source: "127.0.0.1:5801", target: "127.0.0.1:5802", cache: "55217", differences: "ocmirror-differences.txt",
	prepare: func(r *replay) {
		mirrortest.Layout(r, filepath.Join(r.dir, "fx", "oci-catalog"))
		if strings.HasPrefix(r.scenario, "16d") {
			r.source.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
				if strings.HasSuffix(q.URL.Path, ".sig") {
					w.WriteHeader(http.StatusForbidden)
					return true
				}
				return false
			})
		}
	},
	before: func(r *replay, s step, number, last int) {
		if number > last+1 && s.has("--from") {
			r.airgap(path.Base(s.name))
		}
	}}

// Started as oc-mirror the program does what oc-mirror did in the recorded runs: exit statuses, images and tags at the
// destination, cluster resources, pinned configurations, mappings and lists to delete.
func TestRecordedRunsOfOcMirror(t *testing.T) { operators.run(t, nil) }

// airgap leaves the archives alone in the workspace: of the run with the same number as the step, if several were
// saved.
func (r *replay) airgap(step string) {
	from := r.saved[step[strings.LastIndex(step, "-")+1:]]
	for _, dir := range r.saved {
		if from == "" {
			from = dir
		}
	}
	if from == "" {
		return
	}
	ws := filepath.Join(r.dir, "ws")
	if err := os.RemoveAll(ws); err != nil {
		r.Fatal(err)
	}
	if err := os.CopyFS(ws, os.DirFS(from)); err != nil {
		r.Fatal(err)
	}
}
