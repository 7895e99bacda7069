//go:build unix

package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func accountsIn(t testing.TB, file string) *Accounts {
	t.Helper()
	a, err := Config{AuthFile: file, RegistriesConf: os.DevNull}.Accounts()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Of many that keep credentials at once none is lost, and nothing is left beside the file.
func TestAccountsAtOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "auth.json")
	var wg sync.WaitGroup
	for n := range 24 {
		a := accountsIn(t, file) // as another process would have it
		wg.Go(func() {
			if where, err := a.Keep(t.Context(), fmt.Sprintf("r%d.example.com", n), "me", "secret"); err != nil || where != file {
				t.Error(where, err)
			}
			if n%2 == 1 {
				if err := a.Forget(t.Context(), fmt.Sprintf("r%d.example.com", n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for n := range 24 {
		got, err := find(t, Config{AuthFile: file, RegistriesConf: os.DevNull}, fmt.Sprintf("r%d.example.com/a", n))
		if want := n%2 == 0; err != nil || (got.user == "me") != want {
			t.Errorf("%d: %+v, %v", n, got, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// What else is in the file stays, the file that a link names is the one that is changed, and what a killed process has left
// is removed.
func TestAccountsKeepTheRest(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real", "auth.json"), filepath.Join(dir, "auth.json")
	write(t, file, `{"auths":{"a.example.com":{"auth":"bWU6eA==","more":[1]},"quay.io/x":{}},"credHelpers":{"h.example.com":"none"},
		"psFormat":"table {{.Names}}","detachKeys":1e2}`)
	left := filepath.Join(dir, "real", ".auth.json.bindery-0123456789abcdef")
	write(t, left, "a secret")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	a := accountsIn(t, link)
	if _, err := a.Keep(t.Context(), "b.example.com/team", "me", "y"); err != nil {
		t.Fatal(err)
	}
	if err := a.Forget(t.Context(), "quay.io/x"); err != nil {
		t.Fatal(err)
	}
	if err := a.Forget(t.Context(), "quay.io/x"); !errors.Is(err, ErrNotLoggedIn) {
		t.Error(err)
	}
	want := `{"auths":{"a.example.com":{"auth":"bWU6eA==","more":[1]},"b.example.com/team":{"auth":"bWU6eQ=="}},` +
		`"credHelpers":{"h.example.com":"none"},"detachKeys":1e2,"psFormat":"table {{.Names}}"}`
	if got := compact(t, file); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("a leftover: %v", err)
	}
}

func compact(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var value map[string]json.RawMessage
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	text, _ = json.Marshal(value)
	return string(text)
}

// A file that is not one of credentials is refused at once, and stays as it is.
func TestAccountsRefused(t *testing.T) {
	dir := t.TempDir()
	at := func(name, text string) string {
		path := filepath.Join(dir, name)
		write(t, path, text)
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ rule, file, message string }{
		{"an endless device", "/dev/zero", "not a regular file"},
		{"nothing", os.DevNull, "not a regular file"},
		{"a FIFO", fifo, "not a regular file"},
		{"a directory", dir, "not a regular file"},
		{"no JSON", at("text", "secret text"), "not JSON"},
		{"a list", at("list", `["secret"]`), "array"},
		{"null", at("null", `null`), "null where an object belongs"},
		{"auths of another kind", at("auths", `{"auths":"secret"}`), "auths: a string"},
		{"too large", at("large", `{"x":"`+strings.Repeat("a", 5<<20)+`"}`), "longer than"},
		{"docker's old form", at(".dockercfg", `{}`), "old form"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			before, _ := os.Stat(c.file)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			a := accountsIn(t, c.file)
			_, err := a.Keep(ctx, "a.example.com", "me", "x")
			for _, err := range []error{err, a.Forget(ctx, "a.example.com"), a.ForgetAll(ctx)} {
				if err == nil || !strings.Contains(err.Error(), c.message) || strings.Contains(err.Error(), "secret") {
					t.Error(err)
				}
			}
			if after, err := os.Stat(c.file); err != nil || after.Size() != before.Size() {
				t.Errorf("%v, %v", after, err)
			}
			if ctx.Err() != nil {
				t.Error("it was waited for")
			}
		})
	}
	if _, err := (Config{}).Accounts(); err == nil {
		t.Error("there is a place without any")
	}
}

// Docker's configuration has its own name for docker.io, and nothing for paths.
func TestAccountsOfDocker(t *testing.T) {
	file := filepath.Join(t.TempDir(), "docker", "config.json")
	a, err := Config{AuthFiles: []string{file, "elsewhere"}}.Accounts()
	if err != nil || !a.Docker {
		t.Fatal(a, err)
	}
	if _, err := a.Keep(t.Context(), "docker.io", "me", "x"); err != nil {
		t.Fatal(err)
	}
	if got, want := compact(t, file), `{"auths":{"https://index.docker.io/v1/":{"auth":"bWU6eA=="}}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, err := a.Keep(t.Context(), "quay.io/team", "me", "x"); err == nil || !strings.Contains(err.Error(), "no entries for paths") {
		t.Error(err)
	}
	if err := a.ForgetAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := compact(t, file); got != `{"auths":{}}` {
		t.Error(got)
	}
}

// A helper that the file or registries.conf names keeps the credentials in place of the file.
func TestAccountsOfHelpers(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$1\" >> " + dir + "/calls\ncat >> " + dir + "/calls\n"
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-keeper"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	file := filepath.Join(dir, "auth.json")
	text := `{"credHelpers":{"a.example.com":"keeper"}}`
	write(t, file, text)
	a := accountsIn(t, file)
	where, err := a.Keep(t.Context(), "a.example.com", "me", "x")
	if err != nil || !strings.HasSuffix(where, "docker-credential-keeper") || compact(t, file) != text {
		t.Error(where, err, compact(t, file))
	}
	if err := a.Forget(t.Context(), "a.example.com"); err != nil {
		t.Error(err)
	}
	conf := filepath.Join(dir, "registries.conf")
	write(t, conf, `credential-helpers = ["keeper"]`)
	all, err := Config{AuthFile: file, RegistriesConf: conf}.Accounts()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all.Keep(t.Context(), "b.example.com", "me", "x"); err != nil {
		t.Error(err)
	}
	if _, err := all.Keep(t.Context(), "b.example.com/team", "me", "x"); err == nil || !strings.Contains(err.Error(), "nothing for paths") {
		t.Error(err)
	}
	calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
	for _, want := range []string{`store`, `"ServerURL":"a.example.com"`, "erase\na.example.com", `"ServerURL":"b.example.com"`} {
		if !strings.Contains(string(calls), want) {
			t.Errorf("no %s in %s", want, calls)
		}
	}
}
