package serve

import (
	"path/filepath"
	"testing"
)

// TestRecordedAnswersHere makes the recorded calls in testdata.
func TestRecordedAnswersHere(t *testing.T) {
	for _, name := range []string{"deprecations", "constraint", "truncated"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("testdata", "recorded", name)
			s := newServer(Limits{}, nil)
			s.SetStore(catalogStore(t, loadCatalog(t, unpackedFS(t, filepath.Join(dir, "catalog")))))
			replay(t, startServer(t, s), readCalls(t, filepath.Join(dir, "calls.ndjson")))
		})
	}
}
