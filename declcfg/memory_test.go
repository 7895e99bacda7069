package declcfg_test

import (
	"iter"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/heaptest"
)

func TestStreamHoldsAFewBlobs(t *testing.T) {
	heaptest.Bounded(t, func(blobs iter.Seq2[declcfg.Blob, error]) error {
		for _, err := range blobs {
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// A reduced bundle does not reference the document that it was read from.
func TestReducedBundlesHoldNoManifests(t *testing.T) {
	heaptest.Bounded(t, func(blobs iter.Seq2[declcfg.Blob, error]) error {
		var c declcfg.Catalog
		for b, err := range blobs {
			if err != nil {
				return err
			}
			if bundle, ok := b.(*declcfg.Bundle); ok {
				bundle.Reduce()
			}
			c.Add(b)
		}
		return c.Validate()
	})
}
