package serve_test

import (
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// Flags of the HTTP service without it, and values that it cannot have, are usage errors.
func TestFlagsOfHTTP(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a name without HTTP":  {[]string{"--http-name", "x"}, "--http-name has no effect without --http-addr"},
		"gates without HTTP":   {[]string{"--http-gates", "none"}, "--http-gates has no effect without --http-addr"},
		"a title without HTTP": {[]string{"--title", "x"}, "--title has no effect without --http-addr"},
		"an empty name":        {[]string{"--http-addr", ":0", "--http-name", ""}, "invalid --http-name value"},
		"a name of no catalog": {[]string{"--http-addr", ":0", "--http-name", "A_B"},
			"a lowercase RFC 1123 subdomain must consist of"},
		"no gates":        {[]string{"--http-addr", ":0", "--http-gates", ""}, `invalid gate ""`},
		"an unknown gate": {[]string{"--http-addr", ":0", "--http-gates", "metas,all"}, `invalid gate "all"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.RunProgram(t, t.TempDir(), "bindery", append([]string{"serve", "catalog"}, test.args...)...)
			if got.Status == 0 || !strings.Contains(got.Stderr, test.want) {
				t.Errorf("status %d\n%s", got.Status, got.Stderr)
			}
		})
	}
}
