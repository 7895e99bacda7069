package mirror_test

import (
	"testing"
	"time"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
	"github.com/operator-bindery/bindery/mirror/stock"
)

// Options that cannot be are errors of usage, which name their fields.
func TestOptionsCheckThemselves(t *testing.T) {
	with := func(change func(*mirror.Options)) error {
		o := mirror.Options{Mode: mirror.ToDisk, OnMissing: mirror.SkipBundle, CatalogBase: mirror.KeepBase, Sparse: store.SparseKeep,
			Medium: medium.Options{Form: medium.OCI}, ParallelImages: 4, ParallelLayers: 5}
		change(&o)
		return o.Check()
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nothing":      {with(func(*mirror.Options) {}), ""},
		"a value":      {with(func(o *mirror.Options) { o.Sparse = "x" }), `invalid Sparse value "x", expected (keep|error|trim)`},
		"a form":       {with(func(o *mirror.Options) { o.Medium.Form = "x" }), `invalid Form value "x", expected (oci|oc-mirror)`},
		"no value":     {with(func(o *mirror.Options) { o.OnMissing = "" }), `invalid OnMissing value "", expected (skip-bundle|fail)`},
		"left open":    {with(func(o *mirror.Options) { o.OnMissing, o.PublishOnly = "", true }), ""},
		"too many":     {with(func(o *mirror.Options) { o.ParallelLayers = 65 }), "ParallelImages and ParallelLayers are numbers from 1 to 64"},
		"nested paths": {with(func(o *mirror.Options) { o.Target.MaxNestedPaths = -1 }), "invalid MaxNestedPaths value -1, expected a positive number"},
		"a shard for oc-mirror": {with(func(o *mirror.Options) { o.Shard, o.Medium.Form = mirror.Shard{Index: 1, Count: 2}, medium.OCMirror }),
			"oc-mirror reads no archives of several runs: Shard is for Form oci"},
		"a shard since a day": {with(func(o *mirror.Options) { o.Shard, o.Since = mirror.Shard{Index: 1, Count: 2}, time.Now() }),
			"archives of shards carry all but what Against names: Since is for those of whole runs"},
		"two comparisons":            {with(func(o *mirror.Options) { o.Against, o.All = &stock.Inventory{}, true }), "Against excludes Since and All"},
		"a deletion":                 {(&mirror.DeleteOptions{Shared: "x"}).Check(), `invalid Shared value "x", expected (keep|delete)`},
		"an archive":                 {(&mirror.VerifyOptions{Archive: "x"}).Check(), ""},
		"an archive with catalogs":   {(&mirror.VerifyOptions{Archive: "x", Catalogs: []imageset.Ref{{}}}).Check(), "Catalogs is for a registry"},
		"a registry's manifests":     {(&mirror.VerifyOptions{ManifestsOnly: true}).Check(), ""},
		"an archive's manifests":     {(&mirror.VerifyOptions{Archive: "x", ManifestsOnly: true}).Check(), "ManifestsOnly is for a registry"},
		"an archive and a workspace": {(&mirror.VerifyOptions{Archive: "x", Workspace: &mirror.Workspace{}}).Check(), "Workspace is for a registry"},
	} {
		got := ""
		if c.err != nil {
			got = c.err.Error()
		}
		if got != c.want || c.err != nil && fault.ClassOf(c.err) != fault.Usage {
			t.Errorf("%s: got %v, want %s", name, c.err, c.want)
		}
	}
}
