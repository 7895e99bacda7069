package signature_test

import (
	"slices"
	"testing"

	"github.com/operator-bindery/bindery/images/signature"
)

// What was made is counted once, whatever the order of the destinations.
func TestSorted(t *testing.T) {
	one, other := signature.Made{Form: "bundle"}, signature.Made{Form: "sig"}
	there := one
	there.Found = true
	want := []signature.Made{one, there, other}
	for _, made := range [][]signature.Made{{one, there, one, other}, {other, there, one, there}, {one, one, there, other}} {
		if got := signature.Sorted(made); !slices.Equal(got, want) {
			t.Errorf("%+v", got)
		}
	}
}
