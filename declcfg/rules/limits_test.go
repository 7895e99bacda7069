package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg/rules"
)

// Files with very many keys are refused at once.
func TestFilesWithManyKeysAreRefused(t *testing.T) {
	var keys strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&keys, "fbc_%d: 1\n", i)
	}
	if _, err := rules.ReadData(strings.NewReader(keys.String()), "data.yaml"); err == nil ||
		!strings.Contains(err.Error(), "more than 10000 items") {
		t.Errorf("got %.200v", err)
	}
}
