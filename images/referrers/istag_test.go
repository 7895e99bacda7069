package referrers_test

import (
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/images/referrers"
)

// The fallback tag of a list is none of cosign's.
func TestIsTag(t *testing.T) {
	of := "sha256-" + strings.Repeat("0a", 32)
	for tag, want := range map[string]bool{of + ".sig": true, of + ".att": true, of + ".sbom": true, of: false,
		of + ".other": false, "v1.sig": false, "": false} {
		if referrers.IsTag(tag) != want {
			t.Errorf("%s is %v", tag, !want)
		}
	}
}
