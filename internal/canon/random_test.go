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

// TestFastEqualsSlowOnRandomDocuments composes documents of YAML's syntax elements, which finds more differences than
// random bytes do.
func TestFastEqualsSlowOnRandomDocuments(t *testing.T) {
	tokens := strings.Split(
		"a|b|c|: |:|:\n|\n|\n|\n  |\n    |\n |- |-|  | |\\|>|\\|\n|>\n|+|2|\"|'|\"a\"|'b'|#| # "+
			"x\n|1|-1|1.0|.5|é|\\n|\\\n|\\ |[|]|, |{|}|[]|{}|yes|~|null|\t|a: b\n|a: |b:\n|- a\n|  - |\n- "+
			"|x\n|<<|0x1|.inf|1e3|..|---|?|&a|*a|!!str |%|@|,|\"a\": |''|\u2028", "|")
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

// TestFastEqualsSlowOnDamagedCatalogs changes a few bytes in pieces of real catalogs.
func TestFastEqualsSlowOnDamagedCatalogs(t *testing.T) {
	const damage = " \n:-#\"'|>[]{},\\ab1&*!?\t"
	var docs [][]byte
	corpus(t, func(_ string, data []byte) { docs = append(docs, data) })
	random := rand.New(rand.NewPCG(2, uint64(*randomDocuments)))
	c := Converter{Limits: Limits{}.withDefaults()}
	fast := 0
	for range *randomDocuments / 10 {
		doc := docs[random.IntN(len(docs))]
		start := random.IntN(len(doc) + 1)
		start += bytes.IndexByte(doc[start:], '\n') + 1
		doc = bytes.Clone(doc[start:min(len(doc), start+random.IntN(1500))])
		for n := random.IntN(3); n > 0 && len(doc) > 0; n-- {
			at, b := random.IntN(len(doc)), damage[random.IntN(len(damage))]
			switch random.IntN(3) {
			case 0:
				doc = append(doc[:at], doc[at+1:]...)
			case 1:
				doc[at] = b
			case 2:
				doc = append(doc[:at], append([]byte{b}, doc[at:]...)...)
			}
		}
		got, ok := c.appendFast(nil, doc, c.Limits)
		if !ok {
			continue
		}
		fast++
		if want, err := c.appendSlow(nil, doc, c.Limits); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q: %v\n fast %s\n slow %s", doc, err, got, want)
		}
	}
	if t.Logf("%d of %d pieces the fast way", fast, *randomDocuments/10); fast == 0 {
		t.Error("no piece went the fast way")
	}
}
