package mirror

import (
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// A run that is to copy another variant does not take what an earlier one has copied for the whole.
func TestCarriedPlatforms(t *testing.T) {
	r := &run{o: &Options{}}
	lines := map[string]string{}
	for _, variant := range []string{"", "v6", "v7"} {
		i := &item{platforms: []v1.Platform{{OS: "linux", Architecture: "arm", Variant: variant}}}
		line := r.carriedLine(i, "")
		if other, ok := lines[line]; ok {
			t.Errorf("%q and %q have the line %q", other, variant, line)
		}
		lines[line] = variant
	}
}
