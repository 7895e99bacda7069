package appregistry_test

import (
	"errors"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/render/internal/appregistry"
)

// Open never panics, and what it accepts is a valid catalog.
func FuzzOpen(f *testing.F) {
	f.Add(pkgA, csv("a.v2", "2.0.0", "replaces: a.v1"), csv("a.v1", "1.0.0", "skips: [a.v0]"))
	f.Add("packageName: a\nchannels: [{name: x, currentCSV: a.v1}, {name: y, currentCSV: a.v2}]\ndefaultChannel: y\n",
		csv("a.v1", "1.0.0", "replaces: a.v2"), csv("a.v2", "1.0.0"))
	f.Add(`{"packageName":"a"}`, "kind: ClusterServiceVersion\nmetadata: x\n",
		"kind: ClusterServiceVersion\nspec: {skips: {}}\n")
	f.Fuzz(func(t *testing.T, manifest, first, second string) {
		fsys := tree(map[string]string{"a/package.yaml": manifest, "a/1/a.yaml": first, "a/2/b.json": second})
		appregistry.Is(fsys)
		for _, keepGoing := range []bool{false, true} {
			tr, err := appregistry.Open(t.Context(), fsys, appregistry.Options{KeepGoing: keepGoing, Jobs: 1})
			if err != nil {
				var invalid *declcfg.ValidationError
				if !errors.Is(err, appregistry.ErrInvalid) && !errors.Is(err, appregistry.ErrLimit) && !errors.As(err,
					&invalid) {
					t.Errorf("of no class: %v", err)
				}
				continue
			}
			if err := catalogOf(t, tr).Validate(); err != nil {
				t.Error(err)
			}
		}
	})
}
