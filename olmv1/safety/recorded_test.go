package safety_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/olmv1/safety"
)

// address is in operator-controller's texts about oneOf.
var address = regexp.MustCompile(`0x[0-9a-f]+`)

// words returns the lines of a message, each with its words sorted: their order is random in operator-controller. What it
// says of lists of rules differs from run to run, so that of these lines the beginning is compared.
func words(message string) []string {
	message = strings.TrimPrefix(message, `validating upgrade for CRD "things.example.com": `)
	var out []string
	for line := range strings.Lines(message) {
		line = address.ReplaceAllString(line, "0x…")
		if head, details, ok := strings.Cut(line, "unhandled changes found"); ok &&
			(strings.Contains(details, "XValidations <complex") || strings.Contains(details, "(Message ")) {
			line = head
		}
		all := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \n\u00a0[]", r) })
		slices.Sort(all)
		out = append(out, strings.Join(all, " "))
	}
	slices.Sort(out)
	return out
}

// Every upgrade that operator-controller judged on an API server is judged so here: changes of each attribute of a schema to
// each other value, of types, of versions, and of many at once.
func TestRecordedUpgrades(t *testing.T) {
	text := recorded.Archive(t, "../../testdata/olmv1/safety.tar.zst")["safety.jsonl"]
	judge, err := safety.NewJudge()
	if err != nil {
		t.Fatal(err)
	}
	refused, all := 0, 0
	for d := json.NewDecoder(bytes.NewReader(text)); ; all++ {
		var one struct {
			ID, Message string
			Old, New    []json.RawMessage
		}
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		var sides [2][]safety.Definition
		for i, side := range [][]json.RawMessage{one.Old, one.New} {
			for _, text := range side {
				sides[i] = append(sides[i], safety.NewDefinition("things.example.com", text))
			}
		}
		found, err := judge.Upgrade(t.Context(), sides[0], sides[1])
		if err != nil {
			t.Errorf("%s: %v", one.ID, err)
		}
		if len(found) > 0 {
			refused++
		}
		if got, want := words(safety.Message(found)), words(one.Message); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\noperator-controller says:\n%s", one.ID, safety.Message(found), one.Message)
		}
	}
	if all < 1900 || refused < 1800 || refused == all {
		t.Errorf("%d of %d upgrades are refused", refused, all)
	}
}
