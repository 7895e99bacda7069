package edittest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/edit"
)

// RandomAdditions returns bundles of one package in version order. Each replaces or skips earlier ones, so that they
// can be added to an empty catalog.
func RandomAdditions(t testing.TB, r *rand.Rand, pkg string) []edit.Addition {
	t.Helper()
	channels := []string{"a", "b", "c"}[:1+r.IntN(3)]
	heads := map[string]string{}
	var out []edit.Addition
	for i := range 1 + r.IntN(12) {
		version := fmt.Sprintf("%d.%d.%d", 1+i/6, i%6/2, i%2)
		text := pkg + " " + version
		// A bundle is added to all channels that have the same head, so that no bundle ends up in no channel.
		first := channels[r.IntN(len(channels))]
		in := []string{first}
		for _, c := range channels {
			if c != first && heads[c] == heads[first] && r.IntN(2) == 0 {
				in = append(in, c)
			}
		}
		if heads[first] != "" {
			text += " >" + heads[first]
		}
		if r.IntN(4) == 0 {
			text += " !0.0." + fmt.Sprint(r.IntN(9)) + " ~<" + version
		}
		slices.Sort(in)
		text += " @" + strings.Join(in, ",")
		if i == 0 || r.IntN(3) == 0 {
			text += " =" + in[0]
		}
		for _, c := range in {
			heads[c] = version
		}
		out = append(out, Addition(t, text))
	}
	return out
}

func Names(list []edit.Addition) []string {
	var out []string
	for _, a := range list {
		out = append(out, fmt.Sprintf("%s replaces %q skips %q in %v", a.Bundle.Name, a.Replaces, a.Skips, a.Channels))
	}
	return out
}
