package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/check/rules"
)

// Files with very many keys are refused with the first of them.
func TestFilesWithManyKeysAreRefused(t *testing.T) {
	var keys strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&keys, "fbc_%d: 1\n", i)
	}
	if _, err := rules.ReadData(strings.NewReader(keys.String()), "data.yaml"); err == nil ||
		strings.Count(err.Error(), "there is no rule data") != 20 {
		t.Errorf("got %.200v", err)
	}
}
