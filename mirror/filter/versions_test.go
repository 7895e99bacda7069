package filter

import (
	"os"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
)

// The rules of ranges are those of the library that oc-mirror uses.
func TestVersionsAsRecorded(t *testing.T) {
	text, err := os.ReadFile("testdata/ranges.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 4 {
			continue
		}
		n++
		for i := range f[:2] {
			if f[i] == "none" {
				f[i] = ""
			}
		}
		v, err := parseVersions(f[0], f[1])
		if err != nil {
			t.Fatal(err)
		}
		if got := v.contains(semver.MustParse(f[2])); got != (f[3] == "true") {
			t.Errorf("%s in >=%s <=%s: got %t", f[2], f[0], f[1], got)
		}
	}
	if n != 700 {
		t.Errorf("%d rows", n)
	}
}
