package images

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// write makes a file and the directories above it.
func write(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// helper installs a credential helper that knows one host, and appends what it is asked to a file beside it.
func helper(t *testing.T, name, host, user, secret string) string {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf(
		"#!/bin/sh\nread -r host\necho \"$1 $host\" >>%s/asked\nif [ \"$host\" = %q ]; then echo "+
			"'{\"Username\":%q,\"Secret\":%q}'; else echo 'credentials not found in native keychain'; exit 1; fi\n",
		dir, host, user, secret)
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-"+name), []byte(script),
		0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return filepath.Join(dir, "asked")
}
