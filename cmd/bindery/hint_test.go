package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/testregistry"
)

// What people type first, and what then helps them further.
func TestHints(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"images cat", `hint: did you mean "bindery list images"?`},
		{"unpack x", `hint: did you mean "bindery bundle unpack"?`},
		{"template semver x.yaml", "hint: its commands are render, convert\n"},
		{"bundle generate cat --default-channel x", `hint: did you mean "--default"?`},
		{"list bundles small.db ectd", `hint: did you mean "etcd"?`},
		{"list images small.db --channel aplha", `hint: did you mean "alpha"?`},
		{"graph small.db -p nosuch", "hint: there are "},
		{"graph small.db -p etcd -c stabel", "hint: there are alpha, "},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := runProgram(t, workDir(t), "bindery", strings.Fields(c.args)...)
			if got.status != 1 || got.stdout != "" || !strings.Contains(got.stderr, c.want) {
				t.Errorf("%+v without %s", got, c.want)
			}
		})
	}
}

// A script learns from the error as JSON which reference is wrong; of several none is more wrong than the others.
func TestObjectOfErrors(t *testing.T) {
	registry := testregistry.New(t)
	wrong := registry.Host() + "/acme/nosuch:v1"
	for args, object := range map[string]string{
		"render " + wrong:                               wrong,
		"render cat " + wrong:                           wrong,
		"render cat " + wrong + " " + wrong + "x":       "",
		"bundle validate " + wrong:                      wrong,
		"list packages nosuch":                          "nosuch",
		"list bundles small.db nosuch":                  "nosuch",
		"render docker://user:secret@example.com/x/y:v": "docker://***@example.com/x/y:v",
	} {
		t.Run(args, func(t *testing.T) {
			got := runProgram(t, workDir(t), "bindery", append(strings.Fields(args), "--use-http", "--no-cache", "--error-format", "json")...)
			var e struct{ Object *string }
			if err := json.Unmarshal([]byte(got.stderr), &e); err != nil || got.status != 1 || e.Object == nil || *e.Object != object || strings.Contains(got.stderr, "secret") {
				t.Errorf("%v, want the object %q: %+v", err, object, got)
			}
		})
	}
}

func TestHintOfRefusedPush(t *testing.T) {
	registry := testregistry.New(t)
	registry.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v2/" {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	dir := workDir(t)
	if err := os.WriteFile(filepath.Join(dir, "none.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := runProgram(t, dir, "bindery", "build", "catalog", "cat", "-t", registry.Host()+"/a/b:v1", "--push", "--use-http", "--authfile", "none.json")
	if got.status != 1 || !strings.Contains(got.stderr, "\nhint: --authfile FILE or $REGISTRY_AUTH_FILE") {
		t.Errorf("%+v", got)
	}
}
