package list

import (
	"iter"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/heaptest"
)

func TestListingHoldsNoManifests(t *testing.T) {
	for name, load := range map[string]func(iter.Seq2[declcfg.Blob, error]) (*Listing, error){"all": Load,
		"packages": LoadPackages} {
		t.Run(name, func(t *testing.T) {
			heaptest.Bounded(t, func(blobs iter.Seq2[declcfg.Blob, error]) error {
				l, err := load(blobs)
				if err == nil && l.Packages()[1].DisplayName != "p0001" {
					t.Errorf("got %+v", l.Packages()[1])
				}
				return err
			})
		})
	}
}
