package build

import (
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/layers"
)

// A format and a compression that there are not are errors of usage, which name the field.
func TestOptionsCheckThemselves(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Format: FormatOCI, Compression: layers.Gzip}, ""},
		{Options{Format: FormatDocker, Compression: CompressionAuto}, ""},
		{Options{Format: "x", Compression: layers.Gzip}, `invalid Format value "x", expected (oci|docker)`},
		{Options{Format: FormatOCI, Compression: "x"}, `invalid Compression value "x", expected (gzip|zstd|auto)`},
	} {
		got := ""
		err := c.o.Check()
		if err != nil {
			got = err.Error()
		}
		if got != c.want || err != nil && fault.ClassOf(err) != fault.Usage {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
