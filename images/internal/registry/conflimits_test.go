package registry

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
)

// A registries.conf that the parser would take much memory for is refused before it is parsed, also one of the system.
func TestLimitsOfRegistriesConf(t *testing.T) {
	table := "[[registry]]\nlocation = \"registry.example.com/a\"\n"
	for name, c := range map[string]struct{ text, fails string }{
		"comments are free": {table + strings.Repeat("# a line\n\n", maxConfValues), ""},
		"one value":         {"a = " + strings.Repeat("1", maxConfLine), ":1: limit exceeded: a line of"},
		"tables":            {strings.Repeat("[[registry]]\n", maxConfValues+1), "limit exceeded: more than 200000"},
		"items":             {"a = [\n" + strings.Repeat(strings.Repeat("1,", 20_000)+"\n", 10) + "]", ":11: limit exceeded"},
		"the file":          {strings.Repeat(strings.Repeat("#", 60_000)+"\n", 300), "limit exceeded: longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "registries.conf")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("CONTAINERS_REGISTRIES_CONF", path)
			for _, given := range []string{path, ""} {
				_, _, err := Config{RegistriesConf: given}.mainConf(t.Context())
				if c.fails == "" && err != nil || c.fails != "" && (!errors.Is(err, fault.ErrLimit) || !strings.Contains(err.Error(), c.fails)) {
					t.Errorf("%v", err)
				}
			}
		})
	}
}
