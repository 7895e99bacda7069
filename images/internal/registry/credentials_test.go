package registry

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/internal/fault"
)

func encoded(user, secret string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + secret))
}

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

func find(t testing.TB, r Config, name string) (credentials, error) {
	t.Helper()
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	sys, err := r.System(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return newCredentialStore(r, sys, func(err error) { t.Log(err) }).find(t.Context(), named)
}

// The places are searched in this order, and a named file is the only one.
func TestPlacesOfCredentials(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{
		"XDG_RUNTIME_DIR": filepath.Join(dir, "run"), "XDG_CONFIG_HOME": filepath.Join(dir, "config"),
		"DOCKER_CONFIG": filepath.Join(dir, "docker"), "HOME": filepath.Join(dir, "home"),
	}
	entry := func(user string) string { return fmt.Sprintf(`{"quay.io":{"auth":%q}}`, encoded(user, "p")) }
	auths := func(user string) string { return `{"auths":` + entry(user) + `}` }
	places := []struct{ name, path, text string }{
		{"legacy", "home/.dockercfg", entry("legacy")},
		{"config", "config/containers/auth.json", auths("config")},
		{"runtime", "run/containers/auth.json", auths("runtime")},
		{"docker", "docker/config.json", auths("docker")},
	}
	options := func() Config { return Config{}.Env(func(name string) string { return env[name] }) }
	if got, err := find(t, options(), "quay.io/a/b"); err != nil || got != (credentials{}) {
		t.Errorf("nothing is there: %v, %v", got, err)
	}
	for _, p := range places {
		write(t, filepath.Join(dir, p.path), p.text)
		if got, err := find(t, options(), "quay.io/a/b"); err != nil || got.user != p.name {
			t.Errorf("%s: got %v, %v", p.name, got, err)
		}
	}
	named := filepath.Join(dir, "named.json")
	write(t, named, auths("named"))
	env["REGISTRY_AUTH_FILE"] = named
	if got, err := find(t, options(), "quay.io/a/b"); err != nil || got.user != "named" {
		t.Errorf("REGISTRY_AUTH_FILE: %v, %v", got, err)
	}
	if got, err := find(t, options(), "other.io/a/b"); err != nil || got != (credentials{}) {
		t.Errorf("a named file is the only one: %v, %v", got, err)
	}
	flag := filepath.Join(dir, "flag.json")
	write(t, flag, auths("flag"))
	if got, err := find(t, Config{AuthFile: flag}.Env(func(name string) string { return env[name] }),
		"quay.io/a/b"); err != nil || got.user != "flag" {
		t.Errorf("a flag: %v, %v", got, err)
	}
	delete(env, "REGISTRY_AUTH_FILE")
	delete(env, "XDG_CONFIG_HOME")
	delete(env, "DOCKER_CONFIG")
	delete(env, "XDG_RUNTIME_DIR")
	write(t, filepath.Join(dir, "home/.docker/config.json"), auths("home docker"))
	if got, err := find(t, options(), "quay.io/a/b"); err != nil || got.user != "home docker" {
		t.Errorf("HOME: %v, %v", got, err)
	}
	write(t, filepath.Join(dir, "home/.config/containers/auth.json"), auths("home config"))
	if got, err := find(t, options(), "quay.io/a/b"); err != nil || got.user != "home config" {
		t.Errorf("HOME: %v, %v", got, err)
	}
	clear(env)
	if r := options(); len(r.AuthFiles) > 1 || r.CertDirs != nil {
		t.Errorf("without an environment: %+v", r)
	}
}

func TestEntriesOfCredentials(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.json")
	text := `{"auths":{`
	for _, key := range []string{"quay.io", "quay.io/a", "quay.io/a/b", "quay.io/ab", "host:5000", "https://old.io/v1/",
		"https://index.docker.io/v1/"} {
		text += fmt.Sprintf("%q:{\"auth\":%q},", key, encoded(strings.ReplaceAll(key, ":", "_"), "p:with:colons\x00"))
	}
	write(t, path, text+`"plain.io":{"username":"u","password":"p"},"id.io":{"auth":"`+encoded("u",
		"")+`","identitytoken":"t"},"token.io":{"registrytoken":"r"},"empty.io":{}}}`)
	for name, want := range map[string]string{
		"quay.io/a/b": "quay.io/a/b", "quay.io/a/b/c": "quay.io/a/b", "quay.io/a/bc": "quay.io/a",
		"quay.io/ab/c": "quay.io/ab", "quay.io/abc": "quay.io",
		"host:5000/a": "host_5000", "host:5001/a": "", "old.io/a": "https_//old.io/v1/",
		"docker.io/library/x": "https_//index.docker.io/v1/", "busybox": "https_//index.docker.io/v1/",
		"sub.quay.io/a": "", "plain.io/a": "u", "empty.io/a": "",
	} {
		got, err := find(t, Config{AuthFile: path}, name)
		if err != nil || got.user != want {
			t.Errorf("%s: %q instead of %q, %v", name, got.user, want, err)
		}
		if want == "quay.io" && got.secret != "p:with:colons" {
			t.Errorf("secret %q", got.secret)
		}
	}
	if got, err := find(t, Config{AuthFile: path}, "id.io/a"); err != nil || got.identityToken != "t" {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := find(t, Config{AuthFile: path}, "token.io/a"); err != nil || got.registryToken != "r" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestCredentialHelpers(t *testing.T) {
	asked := helper(t, "test", "quay.io", "helped", "secret")
	path := filepath.Join(t.TempDir(), "config.json")
	auth := encoded("file", "p")
	for name, c := range map[string]struct{ text, ref, want string }{
		"of a host": {`{"credHelpers":{"quay.io":"test"},"auths":{"quay.io/a":{"auth":"` + auth +
			`"}}}`, "quay.io/a/b", "helped"},
		"of another host": {`{"credHelpers":{"other.io":"test"},"auths":{"quay.io":{"auth":"` + auth + `"}}}`,
			"quay.io/a/b", "file"},
		"of all":                    {`{"credsStore":"test"}`, "quay.io/a/b", "helped"},
		"of all, with empty marker": {`{"credsStore":"test","auths":{"quay.io":{}}}`, "quay.io/a/b", "helped"},
		"of all, with an entry": {`{"credsStore":"test","auths":{"quay.io":{"auth":"` + auth + `"}}}`,
			"quay.io/a/b", "file"},
		"does not know it": {`{"credsStore":"test"}`, "other.io/a/b", ""},
	} {
		write(t, path, c.text)
		if got, err := find(t, Config{AuthFile: path}, c.ref); err != nil || got.user != c.want {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	if log, err := os.ReadFile(asked); err != nil || !strings.Contains(string(log), "get quay.io\n") ||
		strings.Contains(string(log), "quay.io/a") {
		t.Errorf("asked %q, %v", log, err)
	}
	conf := filepath.Join(t.TempDir(), "registries.conf")
	write(t, conf, `credential-helpers = ["test", "containers-auth.json"]`)
	write(t, path, `{"auths":{"quay.io":{"auth":"`+auth+`"},"other.io":{"auth":"`+auth+`"}}}`)
	for ref, want := range map[string]string{"quay.io/a": "helped", "other.io/a": "file"} {
		if got, err := find(t, Config{AuthFile: path, RegistriesConf: conf}, ref); err != nil || got.user != want {
			t.Errorf("registries.conf, %s: got %v, %v", ref, got, err)
		}
	}
	for _, bad := range []string{"../x", "", "a\x00b", "not-there"} {
		write(t, path, fmt.Sprintf(`{"credHelpers":{"quay.io":%q}}`, bad))
		if _, err := find(t, Config{AuthFile: path}, "quay.io/a"); err == nil {
			t.Errorf("helper %q: no error", bad)
		}
	}
	helper(t, "token", "quay.io", "<token>", "identity")
	write(t, path, `{"credsStore":"token"}`)
	if got, err := find(t, Config{AuthFile: path}, "quay.io/a"); err != nil || got.identityToken != "identity" {
		t.Errorf("got %v, %v", got, err)
	}
}

// A broken file is an error that names it and the field, and shows nothing of what is in it.
func TestBrokenAuthFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.json")
	for name, c := range map[string]struct{ text, field string }{
		"empty":          {"", "not JSON"},
		"not JSON":       {"canary-secret", "not JSON from byte 1"},
		"cut":            {`{"auths":{"quay.io":{"auth":"canary-secret`, "not JSON"},
		"a list":         {`["canary-secret"]`, "array"},
		"auths":          {`{"auths":"canary-secret"}`, "auths: a string"},
		"entry":          {`{"auths":{"quay.io":"canary-secret"}}`, `auths."quay.io": a string`},
		"auth of a type": {`{"auths":{"quay.io":{"auth":["canary-secret"]}}}`, `auths."quay.io": a`},
		"not base64":     {`{"auths":{"quay.io":{"auth":"canary-secret!"}}}`, `auths."quay.io".auth: not base64`},
		"without a colon": {`{"auths":{"quay.io":{"auth":"` + base64.StdEncoding.EncodeToString(
			[]byte("canary-secret")) + `"}}}`, `auths."quay.io".auth: not USER:PASSWORD`},
		"helpers": {`{"credHelpers":["canary-secret"]}`, "credHelpers"},
		"store":   {`{"credsStore":7}`, "credsStore: a number"},
	} {
		write(t, path, c.text)
		_, err := find(t, Config{AuthFile: path}, "quay.io/a/b")
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(),
			c.field) {
			t.Errorf("%s: got %v", name, err)
		}
		if strings.Contains(fmt.Sprint(err), "canary") || strings.Contains(fmt.Sprint(err), "Y2FuYXJ5") {
			t.Errorf("%s: the content is in %v", name, err)
		}
	}
	write(t, path, `{"auths":{"broken.io":{"auth":"!"},"quay.io":{"auth":"`+encoded("u", "p")+`"}}}`)
	if got, err := find(t, Config{AuthFile: path}, "quay.io/a/b"); err != nil || got.user != "u" {
		t.Errorf("a broken entry of another registry: %v, %v", got, err)
	}
	if _, err := find(t, Config{AuthFile: os.DevNull}, "quay.io/a/b"); err != nil {
		t.Errorf("%s: %v", os.DevNull, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if got, err := find(t, Config{AuthFile: link}, "quay.io/a/b"); err != nil || got.user != "u" {
		t.Errorf("a mounted secret is a link: %v, %v", got, err)
	}
}
