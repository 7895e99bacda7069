package app_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

func TestVersionAsJSON(t *testing.T) {
	got := clitest.RunProgram(t, t.TempDir(), "bindery", "version", "-o", "json")
	var v struct {
		Version, Commit, Date, Go, Platform, Build string
		Servers                                    []string
	}
	if err := json.Unmarshal([]byte(got.Stdout), &v); err != nil || got.Status != 0 {
		t.Fatalf("%v, status %d: %s", err, got.Status, got.Stdout)
	}
	if !strings.HasPrefix(v.Version, "v") || v.Go != runtime.Version() ||
		v.Platform != runtime.GOOS+"/"+runtime.GOARCH ||
		v.Build != "usual" && v.Build != "full" && v.Build != "small" || v.Servers == nil {
		t.Errorf("got %+v", v)
	}
}

// The binary that krew installs is a link with this name.
func TestKubectlPlugin(t *testing.T) {
	got := clitest.RunProgram(t, t.TempDir(), "kubectl-bindery", "list", "--help")
	if got.Status != 0 || !strings.Contains(got.Stdout, "kubectl bindery list COMMAND") ||
		!strings.Contains(got.Stdout, "\n  kubectl bindery list ") {
		t.Errorf("status %d: %s", got.Status, got.Stdout)
	}
	if got := clitest.RunProgram(t, t.TempDir(), "kubectl-bindery", "nosuch"); got.Status == 0 ||
		!strings.Contains(got.Stderr, "usage: kubectl bindery COMMAND") {
		t.Errorf("status %d: %s", got.Status, got.Stderr)
	}
	if got := clitest.RunProgram(t, t.TempDir(), "kubectl-bindery", "completion", "bash"); !strings.Contains(got.Stdout,
		"_bindery_complete()") {
		t.Errorf("status %d: %s", got.Status, got.Stdout)
	}
}
