//go:build unix

package repository_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// A credential helper is a program of the user's, and inherits no secret that the command was given: whatever the command
// does, and whether it reads the secret or not.
func TestHelpersInheritNoSecrets(t *testing.T) {
	dir := clitest.WorkDir(t)
	closed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="closed"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer closed.Close()
	host := strings.TrimPrefix(closed.URL, "http://")
	seen := filepath.Join(dir, "environment")
	helper := "#!/bin/sh\nenv >> " + seen + "\necho credentials not found in native keychain\nexit 1\n"
	auth := filepath.Join(dir, "auth.json")
	for name, text := range map[string]string{filepath.Join(dir, "docker-credential-seeing"): helper,
		auth: `{"credHelpers":{"` + host + `":"seeing"}}`} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	secrets := []string{"BINDERY_SIGN_PASSPHRASE=hush-1", "SIGSTORE_ID_TOKEN=hush-2", "ACTIONS_ID_TOKEN_REQUEST_TOKEN=hush-3",
		"SIGNING=hush-4", "SEALING=hush-5 of more than sixteen bytes", "BINDERY_SIGN_KEY=env://SIGNING", "BINDERY_CACHE_KEY=env://SEALING"}
	image := host + "/acme/tool:v1"
	for _, words := range []string{
		"digest " + image, "tags " + host + "/acme/tool", "render " + image, "inspect " + image, "tree " + image,
		"copy " + image + " oci:out", "list packages " + image, "verify " + image, "sign " + image + " --sign-key env://SIGNING",
		"build catalog cat -t " + image + " --push --server none",
	} {
		t.Run(strings.Fields(words)[0], func(t *testing.T) {
			_ = os.Remove(seen)
			cmd := clitest.Command(dir, "bindery", append(strings.Fields(words), "--retries", "0", "--authfile", auth, "--use-http")...)
			cmd.Env = append(append(cmd.Env, secrets...), "PATH="+dir+":"+os.Getenv("PATH"))
			got := clitest.Finish(t, cmd)
			text, _ := os.ReadFile(seen)
			if strings.Contains(string(text), "hush") {
				t.Errorf("%+v: the helper saw\n%s", got, text)
			}
			if len(text) == 0 {
				t.Errorf("the helper was not asked: %+v", got)
			}
		})
	}
}
