package mirror_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// The archives of all shards and that of the catalogs hold what one archive holds. A part that is complete is not
// written again, and without one of them there is no archive of the catalogs.
func TestPartsOnDisk(t *testing.T) {
	w := newWorld(t, large)
	w.must(mirror.ToMirror)
	want := tags(w.target)
	w.newTarget()
	parts := filepath.Join(w.dir, "parts")
	shard := func(n int) func(*mirror.Options) {
		return func(o *mirror.Options) {
			o.Shard, o.Archive = mirror.Shard{Index: n, Count: 3}, filepath.Join(parts, fmt.Sprint("part", n))
		}
	}
	publish := func(o *mirror.Options) {
		o.PublishOnly, o.Parts, o.Archive = true, parts, filepath.Join(w.dir, "catalogs")
	}
	w.must(mirror.ToDisk, shard(1))
	w.must(mirror.ToDisk, shard(2))
	if _, err := w.run(mirror.ToDisk, publish); err == nil || !strings.Contains(err.Error(), "part 3/3 is missing") {
		t.Errorf("got %v", err)
	}
	w.must(mirror.ToDisk, shard(3))
	again := w.must(mirror.ToDisk, shard(3))
	if len(again.Archives) > 0 || again.Totals.Present != again.Totals.Images || again.Totals.Images == 0 {
		t.Errorf("a part that is there: %+v", again.Totals)
	}
	w.must(mirror.ToDisk, publish)
	v, err := mirror.VerifyOptions{Archive: filepath.Join(w.dir, "catalogs")}.Verify(t.Context())
	if err != nil || !v.Good() {
		t.Errorf("the archive of the catalogs: %+v, %v", v, err)
	}
	w.fatal(os.Rename(filepath.Join(w.dir, "catalogs"), filepath.Join(parts, "zcatalogs")))
	w.must(mirror.FromDisk, func(o *mirror.Options) { o.Archive = parts })
	w.same(want)
	w.servable()

	w.set = allPackages(1) // another image set
	if _, err := w.run(mirror.ToDisk, publish); err == nil || !strings.Contains(err.Error(), "of another image set") {
		t.Errorf("got %v", err)
	}
}

func TestParseShard(t *testing.T) {
	for text, want := range map[string]mirror.Shard{"1/1": {Index: 1, Count: 1}, "3/4": {Index: 3, Count: 4}} {
		if got, err := mirror.ParseShard(text); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "0/4", "5/4", "1/0", "-1/4", "1/4x", "1/4 5", "a/b", "1/99999999"} {
		if got, err := mirror.ParseShard(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
