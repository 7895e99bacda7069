package nearest_test

import (
	"testing"

	"github.com/operator-bindery/bindery/internal/nearest"
)

func TestName(t *testing.T) {
	names := []string{"render", "registry", "validate", "version", "init"}
	for word, want := range map[string]string{"rendre": "render", "vaildate": "validate", "int": "init",
		"verison": "version", "frobnicate": "", "x": "", "VERSION": "version", "Init": "init"} {
		if got, _ := nearest.Name(word, names); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}
