package mirror_test

import (
	"testing"

	"github.com/operator-bindery/bindery/mirror"
)

// A shard that did not run leaves its bundles out of what is published, until it has run.
func TestPublishWithoutAShard(t *testing.T) {
	w := newWorld(t, large)
	shard := func(n int) func(*mirror.Options) {
		return func(o *mirror.Options) { o.Shard = mirror.Shard{Index: n, Count: 3} }
	}
	publish := func(how mirror.OnMissing) func(*mirror.Options) {
		return func(o *mirror.Options) { o.PublishOnly, o.OnMissing = true, how }
	}
	w.must(mirror.ToMirror, shard(1))
	w.must(mirror.ToMirror, shard(3))
	w.incomplete(mirror.ToMirror, publish(mirror.FailMissing))
	w.incomplete(mirror.ToMirror, publish(""))
	if w.target.Manifest("to/synthetic/catalog", "v1") != nil {
		t.Error("published")
	}
	w.incomplete(mirror.ToMirror, publish(mirror.SkipBundle))
	w.servable()
	w.must(mirror.ToMirror, shard(2))
	w.must(mirror.ToMirror, publish(""))
	w.servable()
}
