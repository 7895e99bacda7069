package edit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func sortedText(text []string) string {
	text = slices.Clone(text)
	slices.Sort(text)
	return strings.Join(text, "\n")
}

func TestNotation(t *testing.T) {
	text := []string{"p = b", "p/a: 1.0.0, 1.1.0 >1.0.0 !0.9.0 !0.9.1 ~<1.1.0", "p/b: 1.1.0 >1.0.0",
		"p ? 1.0.0 old it is", "p ? a gone"}
	if got := show(catalog(t, text...)); got != sortedText(text) {
		t.Errorf("got\n%s", got)
	}
	a := addition(t, "p 1.2.0 >1.1.0 !1.1.5 @a,b =b ^1.1.0 %x")
	if got := fmt.Sprint(a.Bundle.Name, a.Bundle.Image, a.Replaces, a.Skips, a.Channels, a.DefaultChannel,
		a.SubstitutesFor); got != "p.v1.2.0xp.v1.1.0[p.v1.1.5] [a b]bp.v1.1.0" {
		t.Error(got)
	}
}
