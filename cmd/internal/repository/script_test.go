package repository_test

import (
	"net/http"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// TestScripts has a registry that takes the user ci with the password "open sesame" alone at $SECURED, and one that
// deletes tags at $UNTAGS, each of whose lists has two tags a page.
func TestScripts(t *testing.T) {
	clitest.RunScripts(t, func(script testing.TB, e *testscript.Env) {
		secured := testregistry.New(script)
		secured.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
			user, password, _ := r.BasicAuth()
			if user == "ci" && password == "open sesame" {
				return false
			}
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
			return true
		})
		e.Setenv("SECURED", secured.Host())
		untags := testregistry.New(script)
		untags.SetRules(testregistry.Rules{Untags: true, Page: 2})
		e.Setenv("UNTAGS", untags.Host())
		e.Setenv("HOME", e.WorkDir)
		e.Setenv("XDG_RUNTIME_DIR", e.WorkDir)
	})
}
