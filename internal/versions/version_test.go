package versions

import (
	"errors"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/internal/fault"
)

func TestParse(t *testing.T) {
	for _, text := range []string{"1.2.3", "1.2.3-rc.1+b.2", "1.2", "v1.2.3", "01.2.3", "", "1.2.3-01", "1.2.3-" + strings.Repeat("a", 3000)} {
		for name, parse := range map[string][2]func(string) (semver.Version, error){
			"Parse": {Parse, semver.Parse}, "ParseTolerant": {ParseTolerant, semver.ParseTolerant}} {
			got, err := parse[0](text)
			want, wanted := parse[1](text)
			if (err == nil) != (wanted == nil) || err != nil && err.Error() != wanted.Error() || got.String() != want.String() {
				t.Errorf("%s(%.20q) is %v, %v, want %v, %v", name, text, got, err, want, wanted)
			}
			if _, err := parse[0]("1.2.3-" + strings.Repeat("a", maxVersion)); !errors.Is(err, fault.ErrLimit) {
				t.Errorf("%s takes a version of more than %d bytes: %v", name, maxVersion, err)
			}
		}
	}
}
