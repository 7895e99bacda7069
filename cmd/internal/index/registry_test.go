package index_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// registrySetup says what the registry requires of its clients.
type registrySetup struct{ tls, clientCertificate, password bool }

// startRegistry runs the registry server. The test is skipped if the program is not installed.
func startRegistry(t *testing.T, o registrySetup) *clitest.RealRegistry {
	t.Helper()
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("docker-registry is not installed")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &clitest.RealRegistry{Host: l.Addr().String(), Dir: t.TempDir()}
	l.Close()
	config := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s/data}}\n", r.Dir)
	if o.password {
		r.Write(t, "htpasswd", clitest.HtpasswdLine)
		config += fmt.Sprintf("auth: {htpasswd: {realm: test, path: %s/htpasswd}}\n", r.Dir)
	}
	config += fmt.Sprintf("http:\n  addr: %q\n", r.Host)
	if o.tls {
		r.Certificates(t)
		config += fmt.Sprintf("  tls:\n    certificate: %s/server.crt\n    key: %s/server.key\n", r.Dir, r.Dir)
		if o.clientCertificate {
			config += fmt.Sprintf("    clientcas: [%s]\n", r.Ca)
		}
	}
	r.Write(t, "config.yml", config)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "serve", filepath.Join(r.Dir, "config.yml"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	for deadline := time.Now().Add(30 * time.Second); ; {
		conn, err := net.Dial("tcp", r.Host)
		if err == nil {
			conn.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the registry does not answer: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return r
}

func TestRegistryOverTLS(t *testing.T) {
	r := startRegistry(t, registrySetup{tls: true})
	dir := r.Fill(t)
	catalog := r.Host + "/acme/catalog:v1"
	want := r.Run(t, dir, nil, "render", "cat").Stdout
	certDir := filepath.Join(r.Dir, "certs")
	clitest.CopyFile(t, r.Ca, r.Write(t, "certs/any-name.crt", ""))
	confDir := filepath.Join(r.Dir, "config")
	clitest.CopyFile(t, r.Ca, r.Write(t, "config/containers/certs.d/"+r.Host+"/ca.crt", ""))
	for name, c := range map[string]struct{ env, args []string }{
		"--ca-file":            {nil, []string{"--ca-file", r.Ca}},
		"BINDERY_CA_FILE":      {[]string{"BINDERY_CA_FILE=" + r.Ca}, nil},
		"--cert-dir":           {nil, []string{"--cert-dir", certDir}},
		"certs.d":              {[]string{"XDG_CONFIG_HOME=" + confDir}, nil},
		"--tls-verify=false":   {nil, []string{"--tls-verify=false"}},
		"--skip-tls-verify":    {nil, []string{"--skip-tls-verify"}},
		"docker://, --ca-file": {nil, []string{"--ca-file", r.Ca, "docker://" + catalog}},
	} {
		args := append([]string{"render"}, c.args...)
		if !strings.Contains(name, "docker://") {
			args = append(args, catalog)
		}
		if got := r.Run(t, dir, c.env, args...); got.Status != 0 || got.Stdout != want {
			t.Errorf("%s: status %d, %d bytes of %d\n%s", name, got.Status, len(got.Stdout), len(want), got.Stderr)
		}
	}
	other := startRegistry(t, registrySetup{tls: true})
	for name, c := range map[string]struct {
		args []string
		part string
	}{
		"nothing":           {nil, "certificate"},
		"another authority": {[]string{"--ca-file", other.Ca}, "certificate"},
	} {
		args := append([]string{"render", "--error-format", "json", "--retries", "1", catalog}, c.args...)
		if err := clitest.Failed(r.Run(t, dir, nil, args...), 4, c.part, "--ca-file"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	missing := r.Run(t, dir, nil, "render", "--error-format", "json", catalog, "--ca-file",
		filepath.Join(r.Dir, "nowhere"))
	if err := clitest.Failed(missing, 7, "nowhere"); err != nil {
		t.Errorf("a missing file: %v", err)
	}
}

func TestRegistryThatWantsACertificate(t *testing.T) {
	r := startRegistry(t, registrySetup{tls: true, clientCertificate: true})
	dir := r.Fill(t)
	certs := filepath.Dir(r.Write(t, "certs/x", ""))
	for from, to := range map[string]string{r.Ca: "ca.crt", r.Cert: "client.cert", r.Key: "client.key"} {
		clitest.CopyFile(t, from, filepath.Join(certs, to))
	}
	catalog := r.Host + "/acme/catalog:v1"
	if got := r.Run(t, dir, nil, "render", catalog, "--cert-dir", certs); got.Status != 0 || got.Stdout == "" {
		t.Errorf("%+v", got)
	}
	if err := os.Remove(filepath.Join(certs, "ca.crt")); err != nil {
		t.Fatal(err)
	}
	if got := r.Run(t, dir, nil, "render", catalog, "--cert-dir", certs, "--ca-file", r.Ca); got.Status != 0 ||
		got.Stdout == "" {
		t.Errorf("both: %+v", got)
	}
	if err := clitest.Failed(r.Run(t, dir, nil, "render", "--error-format", "json", catalog, "--ca-file", r.Ca, "--retries",
		"0"), 4, "certificate"); err != nil {
		t.Error(err)
	}
}

func TestRegistryWithCredentials(t *testing.T) {
	r := startRegistry(t, registrySetup{tls: true, password: true})
	dir := r.Fill(t)
	want := r.Run(t, dir, nil, "render", "cat").Stdout
	catalog := r.Host + "/acme/catalog:v1"
	good := clitest.Auth(map[string]string{r.Host: clitest.RegistrySecret})
	file := r.Write(t, "auth.json", good)
	r.Write(t, "run/containers/auth.json", good)
	r.Write(t, "docker/config.json", good)
	r.Write(t, "home/.docker/config.json", good)
	r.Write(t, "home2/.config/containers/auth.json", good)
	for _, name := range []string{"docker-credential-acme", "docker-credential-broken"} {
		script := "#!/bin/sh\nread host\n[ \"$1 $host\" = \"get " + r.Host + "\" ] || exit 1\n" +
			`echo '{"ServerURL":"'$host'","Username":"` + clitest.RegistryUser + `","Secret":"` + clitest.RegistrySecret + `"}'` + "\n"
		if strings.HasSuffix(name, "broken") {
			script = "#!/bin/sh\necho 'the store is locked' >&2\necho 'the store is locked'\nexit 1\n"
		}
		if err := os.Chmod(r.Write(t, name, script), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	repositories := r.Write(t, "repositories.json",
		clitest.Auth(map[string]string{r.Host: "wrong", r.Host + "/acme/catalog": clitest.RegistrySecret,
			r.Host + "/acme/other": "wrong"}))
	prefix := r.Write(t, "prefix.json", clitest.Auth(map[string]string{r.Host: "wrong", r.Host + "/acme": clitest.RegistrySecret}))
	for name, c := range map[string]struct{ env, args []string }{
		"--authfile":         {nil, []string{"--authfile", file}},
		"BINDERY_AUTHFILE":   {[]string{"BINDERY_AUTHFILE=" + file}, nil},
		"REGISTRY_AUTH_FILE": {[]string{"REGISTRY_AUTH_FILE=" + file}, nil},
		"XDG_RUNTIME_DIR":    {[]string{"XDG_RUNTIME_DIR=" + r.Dir + "/run"}, nil},
		"DOCKER_CONFIG":      {[]string{"DOCKER_CONFIG=" + r.Dir + "/docker"}, nil},
		"~/.docker":          {[]string{"HOME=" + r.Dir + "/home"}, nil},
		"~/.config":          {[]string{"HOME=" + r.Dir + "/home2"}, nil},
		"--authfile before others": {[]string{"REGISTRY_AUTH_FILE=" + r.Write(t, "bad.json",
			clitest.Auth(map[string]string{r.Host: "wrong"}))}, []string{"--authfile", file}},
		"a repository's own": {nil, []string{"--authfile", repositories}},
		"a part of the path": {nil, []string{"--authfile", prefix}},
		"credHelpers": {nil,
			[]string{"--authfile", r.Write(t, "helper.json", `{"credHelpers":{"`+r.Host+`":"acme"}}`)}},
		"credsStore": {nil,
			[]string{"--authfile", r.Write(t, "store.json", `{"auths":{"`+r.Host+`":{}},"credsStore":"acme"}`)}},
	} {
		args := append([]string{"render", "--log-level", "debug", "--ca-file", r.Ca, catalog}, c.args...)
		if got := r.Run(t, dir, c.env, args...); got.Status != 0 || got.Stdout != want {
			t.Errorf("%s: status %d, %d bytes of %d\n%s", name, got.Status, len(got.Stdout), len(want), got.Stderr)
		}
	}
	for name, c := range map[string]struct {
		args []string
		part string
	}{
		"none":  {nil, "401"},
		"wrong": {[]string{"--authfile", filepath.Join(r.Dir, "bad.json")}, "401"},
		"for another repository": {[]string{"--authfile",
			r.Write(t, "elsewhere.json", clitest.Auth(map[string]string{r.Host + "/acme/other": clitest.RegistrySecret}))}, "401"},
		"for another port": {[]string{"--authfile",
			r.Write(t, "port.json",
				clitest.Auth(map[string]string{"127.0.0.1": clitest.RegistrySecret, "127.0.0.1:1": clitest.RegistrySecret}))}, "401"},
		"a helper that fails": {[]string{"--authfile",
			r.Write(t, "broken.json", `{"credHelpers":{"`+r.Host+`":"broken"}}`)}, "broken"},
	} {
		args := append([]string{"render", "--error-format", "json", "--ca-file", r.Ca, catalog}, c.args...)
		if err := clitest.Failed(r.Run(t, dir, nil, args...), 4, c.part); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	none := r.Run(t, dir, nil, "render", "--error-format", "json", "--ca-file", r.Ca, catalog)
	if err := clitest.Failed(none, 4, "--authfile"); err != nil {
		t.Errorf("no hint: %v", err)
	}
	broken := r.Run(t, dir, nil, "render", "--error-format", "json", "--ca-file", r.Ca, "--authfile",
		r.Write(t, "notjson.json", "{"), catalog)
	if err := clitest.Failed(broken, 3, "notjson.json"); err != nil {
		t.Errorf("a broken file: %v", err)
	}
}

// A render with a lock file is repeatable even if tags have moved.
func TestLockPinsImages(t *testing.T) {
	r := startRegistry(t, registrySetup{})
	dir := r.Fill(t)
	catalog, bundle := r.Host+"/acme/catalog:v1", r.Host+"/acme/etcd:v1"
	render := func(args ...string) clitest.Result {
		t.Helper()
		return r.Run(t, dir, nil, append([]string{"render", "--use-http", "--error-format", "json"}, args...)...)
	}
	before := render(catalog, bundle, "--lock", "bindery.lock")
	if before.Status != 0 || !strings.Contains(before.Stdout, bundle) {
		t.Fatalf("status %d\n%s", before.Status, before.Stderr)
	}
	lock := clitest.ReadFile(t, filepath.Join(dir, "bindery.lock"))
	if !strings.Contains(lock, catalog) || !strings.Contains(lock, bundle) {
		t.Errorf("the lock file is\n%s", lock)
	}
	r.Push(t, "acme/catalog:v1", testregistry.Image{
		Labels: map[string]string{build.ConfigsLabel: "/configs"},
		Layers: []map[string]string{{"configs/new.json": `{"schema":"olm.package","name":"new","defaultChannel":"a"}`}},
	})
	if got := render(catalog, bundle); got.Stdout == before.Stdout || !strings.Contains(got.Stdout, `"new"`) {
		t.Errorf("the tag has not moved: %s", got.Stderr)
	}
	if got := render(catalog, bundle, "--lock", "bindery.lock"); got.Status != 0 || got.Stdout != before.Stdout {
		t.Errorf("with the lock file: status %d, another answer\n%s", got.Status, got.Stderr)
	}
	if after := clitest.ReadFile(t, filepath.Join(dir, "bindery.lock")); after != lock {
		t.Errorf("the lock file has changed:\n%s", after)
	}
	// A failed run writes no lock file.
	if err := clitest.Failed(render(catalog, r.Host+"/acme/missing:v1", "--lock", "other.lock"), 4, "missing"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "other.lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a lock file of a failed run: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bindery.lock"), []byte(`{"version":1,"images":{"a":"b"}}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	if err := clitest.Failed(render(catalog, "--lock", "bindery.lock"), 3, `images["a"]`); err != nil {
		t.Errorf("a malformed lock file: %v", err)
	}
}

// Many images are read concurrently; blobs of one package are in the order of the arguments, also when read from the
// cache.
func TestManyReferencesInOrder(t *testing.T) {
	r := startRegistry(t, registrySetup{})
	dir := r.Fill(t)
	var refs []string
	for i := range 30 {
		name := fmt.Sprintf("p%02d", (i*7)%30)
		r.Push(t, "acme/"+name+":v1", testregistry.Image{
			Labels: map[string]string{build.ConfigsLabel: "/configs"},
			Layers: []map[string]string{{"configs/c.json": `{"schema":"note","package":"same","name":"` + name + `"}`}},
		})
		refs = append(refs, r.Host+"/acme/"+name+":v1")
	}
	env := []string{"XDG_CACHE_HOME=" + t.TempDir()}
	args := append([]string{"render", "--use-http", "-o", "ndjson"}, refs...)
	first := r.Run(t, dir, env, args...)
	lines := strings.Split(strings.TrimSpace(first.Stdout), "\n")
	if first.Status != 0 || len(lines) != len(refs) {
		t.Fatalf("status %d, %d lines\n%s", first.Status, len(lines), first.Stderr)
	}
	for i, line := range lines {
		if name := refs[i][strings.LastIndex(refs[i], "/")+1:][:3]; !strings.Contains(line, `"`+name+`"`) {
			t.Errorf("line %d is %s and not of %s", i, line, name)
		}
	}
	if again := r.Run(t, dir, env, args...); again.Stdout != first.Stdout {
		t.Errorf("another answer from the cache: status %d\n%s", again.Status, again.Stderr)
	}
}
