package safety_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/operator-bindery/bindery/olmv1/safety"
)

// Any two definitions have one answer, whatever is in them.
func FuzzDefinition(f *testing.F) {
	for _, c := range cases {
		old, next := definition(f, c.old), definition(f, c.new)
		f.Add(text(f, old), text(f, next))
	}
	f.Add([]byte(`{"spec":{"versions":[{"name":"v1"}]}}`), []byte(`{"spec":{"versions":[{}]}}`))
	f.Fuzz(func(t *testing.T, old, next []byte) {
		if !json.Valid(old) || !json.Valid(next) {
			return
		}
		var first []string
		for i := range 2 {
			j, err := safety.NewJudge()
			if err != nil {
				t.Fatal(err)
			}
			changes, _ := j.Definition(t.Context(), safety.NewDefinition("a", old), safety.NewDefinition("a", next))
			if got := lines(changes); i == 0 {
				first = got
			} else if !slices.Equal(got, first) {
				t.Errorf("%q and %q", first, got)
			}
		}
	})
}
