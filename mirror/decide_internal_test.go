package mirror

import (
	"testing"
	"time"

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

// Many images are begun to keep the uploads going, but where each has a limit of time, which none waits for.
func TestImagesAtOnce(t *testing.T) {
	for _, c := range []struct {
		images, layers int
		timeout        time.Duration
		mode           Mode
		want           int
	}{
		{4, 5, 0, ToMirror, 40}, {2, 1, 0, FromDisk, 4}, {1, 5, 0, ToMirror, 1}, {4, 5, time.Minute, ToMirror, 4},
	} {
		o := &Options{ParallelImages: c.images, Timeout: c.timeout, Mode: c.mode}
		r := &run{o: o, uploads: make(chan struct{}, c.images*c.layers)}
		if got := r.imagesAtOnce(); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
