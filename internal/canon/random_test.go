package canon

import (
	"bytes"
	"errors"
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
)

var randomDocuments = flag.Int("documents", 30_000, "how many random documents to compare both ways with")

// TestFastEqualsSlowOnRandomDocuments puts documents together from what YAML has a meaning for, which finds more than
// random bytes do.
func TestFastEqualsSlowOnRandomDocuments(t *testing.T) {
	tokens := strings.Split("a|b|c|: |:|:\n|\n|\n|\n  |\n    |\n |- |-|  | |\\|>|\\|\n|>\n|+|2|\"|'|\"a\"|'b'|#| # x\n|1|-1|1.0|.5|é|\\n|\\\n|\\ |[|]|, |{|}|[]|{}|yes|~|null|\t|a: b\n|a: |b:\n|- a\n|  - |\n- |x\n|<<|0x1|.inf|1e3|..|---|?|&a|*a|!!str |%|@|,|\"a\": |''|\u2028", "|")
	for i, s := range tokens {
		if s == "\\" {
			tokens[i] = "|"
		}
	}
	random := rand.New(rand.NewPCG(1, uint64(*randomDocuments)))
	c := Converter{Limits: Limits{}.withDefaults()}
	fast, valid := 0, 0
	for range *randomDocuments {
		var b strings.Builder
		for range 1 + random.IntN(18) {
			b.WriteString(tokens[random.IntN(len(tokens))])
		}
		if random.IntN(4) > 0 {
			b.WriteByte('\n')
		}
		doc := []byte(b.String())
		got, ok := c.appendFast(nil, doc, c.Limits)
		if !ok {
			duplicate := false
			slow := Converter{Limits: c.Limits, Warn: func(int, string) { duplicate = true }}
			if got, err := slow.appendSlow(nil, doc, c.Limits); !duplicate {
				agrees(t, doc, got, err)
			}
			continue
		}
		fast++
		want, err := c.appendSlow(nil, doc, c.Limits)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q: %v\n fast %s\n slow %s", doc, err, got, want)
		}
		if _, err := reference(doc); err == nil || errors.As(err, new(*LimitError)) {
			valid++
		}
		agrees(t, doc, got, nil)
	}
	t.Logf("%d of %d documents the fast way, %d valid", fast, *randomDocuments, valid)
	if fast < *randomDocuments/20 {
		t.Errorf("only %d of %d documents went the fast way", fast, *randomDocuments)
	}
}
