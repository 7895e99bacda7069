package clitest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/operator-bindery/bindery/internal/testing/sigstoretest"
)

// The identity in the tokens of [Sigstore].
const (
	SigstoreIssuer = "https://accounts.example.com"
	SigstoreMail   = "release@example.com"
)

// Sigstore starts the services of signatures by an identity for a script: $FULCIO, $REKOR and $TSA are their URLs, $ISSUER
// and $MAIL are what the token in the file token says, and signing_config.json and trusted_root.json are of the instance.
// other_root.json is of another one.
func Sigstore(script testing.TB, e *testscript.Env) {
	s := sigstoretest.New(script)
	for name, value := range map[string]string{"FULCIO": s.FulcioURL, "REKOR": s.RekorURL, "TSA": s.TSAURL,
		"ISSUER": SigstoreIssuer, "MAIL": SigstoreMail} {
		e.Setenv(name, value)
	}
	for name, text := range map[string][]byte{"token": []byte(s.Token(SigstoreMail, SigstoreIssuer)),
		"signing_config.json": s.SigningConfig(), "trusted_root.json": s.TrustedRoot(), "rekor.pub": s.RekorKeyPEM(),
		"fulcio.pem": s.FulcioRootPEM(), "other_root.json": sigstoretest.New(script).TrustedRoot()} {
		if err := os.WriteFile(filepath.Join(e.WorkDir, name), text, 0o600); err != nil {
			script.Fatal(err)
		}
	}
}
