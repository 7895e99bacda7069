package clitest

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	migratecmd "github.com/operator-bindery/bindery/cmd/internal/migrate"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

func Exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Lstat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// LineResults parses the file of --results.
func LineResults(t *testing.T, text string) []migratecmd.LineResult {
	t.Helper()
	var all []migratecmd.LineResult
	for dec := json.NewDecoder(strings.NewReader(text)); dec.More(); {
		var r migratecmd.LineResult
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// Contents returns the files below a directory with their contents.
func Contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	return testregistry.Files(t, dir, "")
}
