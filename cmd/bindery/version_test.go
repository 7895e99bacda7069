package main

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
)

func TestVersionAsJSON(t *testing.T) {
	got := runProgram(t, t.TempDir(), "bindery", "version", "-o", "json")
	var v struct {
		Version, Commit, Date, Go, Platform, Build string
		Servers                                    []string
	}
	if err := json.Unmarshal([]byte(got.stdout), &v); err != nil || got.status != 0 {
		t.Fatalf("%v, status %d: %s", err, got.status, got.stdout)
	}
	if !strings.HasPrefix(v.Version, "v") || v.Go != runtime.Version() ||
		v.Platform != runtime.GOOS+"/"+runtime.GOARCH ||
		v.Build != "usual" && v.Build != "full" && v.Build != "small" || v.Servers == nil {
		t.Errorf("got %+v", v)
	}
}

// The binary that krew installs is a link with this name.
func TestKubectlPlugin(t *testing.T) {
	got := runProgram(t, t.TempDir(), "kubectl-bindery", "list", "--help")
	if got.status != 0 || !strings.Contains(got.stdout, "kubectl bindery list COMMAND") ||
		!strings.Contains(got.stdout, "\n  kubectl bindery list ") {
		t.Errorf("status %d: %s", got.status, got.stdout)
	}
	if got := runProgram(t, t.TempDir(), "kubectl-bindery", "nosuch"); got.status == 0 ||
		!strings.Contains(got.stderr, "usage: kubectl bindery COMMAND") {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
	if got := runProgram(t, t.TempDir(), "kubectl-bindery", "completion", "bash"); !strings.Contains(got.stdout,
		"_bindery_complete()") {
		t.Errorf("status %d: %s", got.status, got.stdout)
	}
}
