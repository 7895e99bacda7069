package mirrortest_test

import (
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
)

// The registry has every manifest of the fixture under its digest and tags, byte for byte.
func TestSource(t *testing.T) {
	r := mirrortest.Source(t)
	all := mirrortest.Manifests(t)
	if len(all) < 40 {
		t.Fatalf("%d manifests", len(all))
	}
	for _, m := range all {
		for _, name := range append(m.Tags, m.Digest) {
			if got := digest.FromBytes(r.Manifest(m.Repository, name)); got.String() != m.Digest {
				t.Errorf("%s, %s: %s instead of %s", m.Repository, name, got, m.Digest)
			}
		}
	}
	if len(mirrortest.Runs(t)) < 300 {
		t.Errorf("%d recorded files", len(mirrortest.Runs(t)))
	}
}
