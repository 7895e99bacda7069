package diff_test

import (
	"iter"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/diff"
	"github.com/operator-bindery/bindery/declcfg/heaptest"
)

func TestCompareHoldsAPackageAtATime(t *testing.T) {
	heaptest.Bounded(t, func(blobs iter.Seq2[declcfg.Blob, error]) error {
		none := func(func(declcfg.Blob, error) bool) {}
		r, err := diff.Compare(blobs, none, diff.Options{Only: []diff.Section{diff.Packages}})
		if err == nil && len(r.Packages) < 16 {
			t.Errorf("%d packages", len(r.Packages))
		}
		return err
	})
}
