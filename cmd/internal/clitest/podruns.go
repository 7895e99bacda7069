package clitest

import (
	"bytes"
	"slices"
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// SameRegistry compares all tags of two registries, and the manifests that they stand for.
func SameRegistry(t *testing.T, got, want *testregistry.Registry) {
	t.Helper()
	if a, b := got.Repositories(), want.Repositories(); !slices.Equal(a, b) {
		t.Errorf("the repositories are %q and not %q", a, b)
	}
	for _, name := range want.Repositories() {
		a, b := got.Tags(name), want.Tags(name)
		if !slices.Equal(a, b) {
			t.Errorf("%s has the tags %q and not %q", name, a, b)
		}
		for _, tag := range b {
			if !bytes.Equal(got.Manifest(name, tag), want.Manifest(name, tag)) {
				t.Errorf("%s:%s is another image", name, tag)
			}
		}
		da, db := got.Digests(name), want.Digests(name)
		slices.Sort(da)
		slices.Sort(db)
		if !slices.Equal(da, db) {
			t.Errorf("%s has the manifests %q and not %q", name, da, db)
		}
	}
}
