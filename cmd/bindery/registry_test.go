package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/testing/imagetest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// The user of the registry and the line of its password file.
const (
	registryUser   = "robot"
	registrySecret = "open-sesame"
	htpasswdLine   = registryUser + ":$2b$04$abcdefghijklmnopqrstuuXcjcm5avyCiJoD2uS24xa2lb6fjMB3G\n"
)

// realRegistry is a running registry server of the distribution project.
type realRegistry struct {
	host string
	dir  string
	ca   string // file with the CA certificate; empty without TLS
	cert string // file with a client certificate issued by the CA
	key  string
}

// registrySetup says what the registry requires of its clients.
type registrySetup struct{ tls, clientCertificate, password bool }

// startRegistry runs the registry server. The test is skipped if the program is not installed.
func startRegistry(t *testing.T, o registrySetup) *realRegistry {
	t.Helper()
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("docker-registry is not installed")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &realRegistry{host: l.Addr().String(), dir: t.TempDir()}
	l.Close()
	config := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s/data}}\n", r.dir)
	if o.password {
		r.write(t, "htpasswd", htpasswdLine)
		config += fmt.Sprintf("auth: {htpasswd: {realm: test, path: %s/htpasswd}}\n", r.dir)
	}
	config += fmt.Sprintf("http:\n  addr: %q\n", r.host)
	if o.tls {
		r.certificates(t)
		config += fmt.Sprintf("  tls:\n    certificate: %s/server.crt\n    key: %s/server.key\n", r.dir, r.dir)
		if o.clientCertificate {
			config += fmt.Sprintf("    clientcas: [%s]\n", r.ca)
		}
	}
	r.write(t, "config.yml", config)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "serve", filepath.Join(r.dir, "config.yml"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	for deadline := time.Now().Add(30 * time.Second); ; {
		conn, err := net.Dial("tcp", r.host)
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

func (r *realRegistry) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(r.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// certificates creates a CA and certificates for the registry and a client.
func (r *realRegistry) certificates(t *testing.T) {
	t.Helper()
	sign := func(name string, template, parent *x509.Certificate,
		by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, string, string) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if parent == nil {
			parent, by = template, key
		}
		template.SerialNumber = big.NewInt(time.Now().UnixNano())
		template.Subject = pkix.Name{CommonName: name}
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
		if err != nil {
			t.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		crt := r.write(t, name+".crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
		return template, key, crt, r.write(t, name+".key",
			string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	}
	ca, caKey, file, _ := sign("ca",
		&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	r.ca = file
	sign("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, ca, caKey)
	_, _, r.cert, r.key = sign("client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
		ca, caKey)
}

// auth writes a file with credentials for each of the given names.
func auth(names map[string]string) string {
	auths := map[string]any{}
	for name, secret := range names {
		auths[name] = map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(registryUser + ":" + secret))}
	}
	text, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// fill pushes a catalog as acme/catalog:v1 and a bundle as acme/etcd:v1. It returns a directory with both and with the
// results of rendering them from disk, where the bundle has no image.
func (r *realRegistry) fill(t *testing.T) (dir string) {
	t.Helper()
	dir = workDir(t)
	noise := make([]byte, 400<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cat", "noise.json"),
		fmt.Appendf(nil, `{"schema":"noise","package":"foo","data":"%x"}`, noise), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "bundle"), os.DirFS("../../testdata/bundles/etcd/0.9.4")); err != nil {
		t.Fatal(err)
	}
	r.push(t, "acme/catalog:v1", testregistry.Image{
		Labels: map[string]string{build.ConfigsLabel: "/configs"},
		Layers: []map[string]string{{"etc/motd": "nothing of interest"},
			testregistry.Files(t, filepath.Join(dir, "cat"), "configs")},
	})
	r.push(t, "acme/etcd:v1", testregistry.Image{
		Labels: map[string]string{
			"operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
			"operators.operatorframework.io.bundle.manifests.v1": "manifests/",
			"operators.operatorframework.io.bundle.metadata.v1":  "metadata/",
			"operators.operatorframework.io.bundle.package.v1":   "etcd",
		},
		Layers: []map[string]string{testregistry.Files(t, filepath.Join(dir, "bundle", "manifests"), "manifests"),
			testregistry.Files(t, filepath.Join(dir, "bundle", "metadata"), "metadata")},
	})
	return dir
}

// push pushes the image to the registry.
func (r *realRegistry) push(t *testing.T, name string, i testregistry.Image) {
	t.Helper()
	layout := filepath.Join(t.TempDir(), "layout")
	i.WriteLayout(t, layout, "v1")
	src := imagetest.Opened(t, imagetest.Client(t), "oci:"+layout+":v1")
	d, err := transports.Parse("docker://" + r.host + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	access := registries.Config{AuthFile: r.write(t, "push.json", auth(map[string]string{r.host: registrySecret}))}
	if r.ca == "" {
		yes := true
		access.SkipTLSVerify, access.PlainHTTP = &yes, true
	} else {
		access.CertDir = t.TempDir()
		for from, to := range map[string]string{r.ca: "ca.crt", r.cert: "client.cert", r.key: "client.key"} {
			copyFile(t, from, filepath.Join(access.CertDir, to))
		}
	}
	if _, err := images.Copy(t.Context(), src, src.Top, []transport.Destination{d},
		images.CopyOptions{Registry: access, Temp: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
}

// run runs the program with a fresh directory and only the environment in env. It checks that no temporary files remain
// and no secret is printed.
func (r *realRegistry) run(t *testing.T, dir string, env []string, args ...string) result {
	t.Helper()
	home := t.TempDir()
	tmp := filepath.Join(home, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(binDir, "bindery"), args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + r.dir + ":" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + tmp,
		"XDG_CACHE_HOME=" + home + "/cache"}, env...)
	got := finish(t, cmd)
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%v: left behind: %v, %v", args, left, err)
	}
	for _, secret := range []string{registrySecret,
		base64.StdEncoding.EncodeToString([]byte(registryUser + ":" + registrySecret))} {
		if strings.Contains(got.stdout+got.stderr, secret) {
			t.Errorf("%v: the secret is printed:\n%s", args, got.stderr)
		}
	}
	return got
}

// failed checks that a run failed properly: with an error of the class and nothing on standard output.
func failed(got result, class int, parts ...string) error {
	if got.status != 1 || got.stdout != "" {
		return fmt.Errorf("status %d, %d bytes on standard output\n%s", got.status, len(got.stdout), got.stderr)
	}
	lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
	var e struct {
		Class   int
		Message string
		Hint    string
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil {
		return fmt.Errorf("%w\n%s", err, got.stderr)
	}
	if e.Class != class {
		return fmt.Errorf("class %d, want %d: %s", e.Class, class, e.Message)
	}
	for _, part := range parts {
		if !strings.Contains(e.Message+" "+e.Hint, part) {
			return fmt.Errorf("no %q in %q, hint %q", part, e.Message, e.Hint)
		}
	}
	return nil
}

func TestRegistryOverTLS(t *testing.T) {
	r := startRegistry(t, registrySetup{tls: true})
	dir := r.fill(t)
	catalog := r.host + "/acme/catalog:v1"
	want := r.run(t, dir, nil, "render", "cat").stdout
	certDir := filepath.Join(r.dir, "certs")
	copyFile(t, r.ca, r.write(t, "certs/any-name.crt", ""))
	confDir := filepath.Join(r.dir, "config")
	copyFile(t, r.ca, r.write(t, "config/containers/certs.d/"+r.host+"/ca.crt", ""))
	for name, c := range map[string]struct{ env, args []string }{
		"--ca-file":            {nil, []string{"--ca-file", r.ca}},
		"BINDERY_CA_FILE":      {[]string{"BINDERY_CA_FILE=" + r.ca}, nil},
		"--cert-dir":           {nil, []string{"--cert-dir", certDir}},
		"certs.d":              {[]string{"XDG_CONFIG_HOME=" + confDir}, nil},
		"--tls-verify=false":   {nil, []string{"--tls-verify=false"}},
		"--skip-tls-verify":    {nil, []string{"--skip-tls-verify"}},
		"docker://, --ca-file": {nil, []string{"--ca-file", r.ca, "docker://" + catalog}},
	} {
		args := append([]string{"render"}, c.args...)
		if !strings.Contains(name, "docker://") {
			args = append(args, catalog)
		}
		if got := r.run(t, dir, c.env, args...); got.status != 0 || got.stdout != want {
			t.Errorf("%s: status %d, %d bytes of %d\n%s", name, got.status, len(got.stdout), len(want), got.stderr)
		}
	}
	other := startRegistry(t, registrySetup{tls: true})
	for name, c := range map[string]struct {
		args []string
		part string
	}{
		"nothing":           {nil, "certificate"},
		"another authority": {[]string{"--ca-file", other.ca}, "certificate"},
	} {
		args := append([]string{"render", "--error-format", "json", "--retries", "1", catalog}, c.args...)
		if err := failed(r.run(t, dir, nil, args...), 4, c.part, "--ca-file"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	missing := r.run(t, dir, nil, "render", "--error-format", "json", catalog, "--ca-file",
		filepath.Join(r.dir, "nowhere"))
	if err := failed(missing, 7, "nowhere"); err != nil {
		t.Errorf("a missing file: %v", err)
	}
}

func TestRegistryThatWantsACertificate(t *testing.T) {
	r := startRegistry(t, registrySetup{tls: true, clientCertificate: true})
	dir := r.fill(t)
	certs := filepath.Dir(r.write(t, "certs/x", ""))
	for from, to := range map[string]string{r.ca: "ca.crt", r.cert: "client.cert", r.key: "client.key"} {
		copyFile(t, from, filepath.Join(certs, to))
	}
	catalog := r.host + "/acme/catalog:v1"
	if got := r.run(t, dir, nil, "render", catalog, "--cert-dir", certs); got.status != 0 || got.stdout == "" {
		t.Errorf("%+v", got)
	}
	if err := os.Remove(filepath.Join(certs, "ca.crt")); err != nil {
		t.Fatal(err)
	}
	if got := r.run(t, dir, nil, "render", catalog, "--cert-dir", certs, "--ca-file", r.ca); got.status != 0 ||
		got.stdout == "" {
		t.Errorf("both: %+v", got)
	}
	if err := failed(r.run(t, dir, nil, "render", "--error-format", "json", catalog, "--ca-file", r.ca, "--retries",
		"0"), 4, "certificate"); err != nil {
		t.Error(err)
	}
}

func TestRegistryWithCredentials(t *testing.T) {
	r := startRegistry(t, registrySetup{tls: true, password: true})
	dir := r.fill(t)
	want := r.run(t, dir, nil, "render", "cat").stdout
	catalog := r.host + "/acme/catalog:v1"
	good := auth(map[string]string{r.host: registrySecret})
	file := r.write(t, "auth.json", good)
	r.write(t, "run/containers/auth.json", good)
	r.write(t, "docker/config.json", good)
	r.write(t, "home/.docker/config.json", good)
	r.write(t, "home2/.config/containers/auth.json", good)
	for _, name := range []string{"docker-credential-acme", "docker-credential-broken"} {
		script := "#!/bin/sh\nread host\n[ \"$1 $host\" = \"get " + r.host + "\" ] || exit 1\n" +
			`echo '{"ServerURL":"'$host'","Username":"` + registryUser + `","Secret":"` + registrySecret + `"}'` + "\n"
		if strings.HasSuffix(name, "broken") {
			script = "#!/bin/sh\necho 'the store is locked' >&2\necho 'the store is locked'\nexit 1\n"
		}
		if err := os.Chmod(r.write(t, name, script), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	repositories := r.write(t, "repositories.json",
		auth(map[string]string{r.host: "wrong", r.host + "/acme/catalog": registrySecret,
			r.host + "/acme/other": "wrong"}))
	prefix := r.write(t, "prefix.json", auth(map[string]string{r.host: "wrong", r.host + "/acme": registrySecret}))
	for name, c := range map[string]struct{ env, args []string }{
		"--authfile":         {nil, []string{"--authfile", file}},
		"BINDERY_AUTHFILE":   {[]string{"BINDERY_AUTHFILE=" + file}, nil},
		"REGISTRY_AUTH_FILE": {[]string{"REGISTRY_AUTH_FILE=" + file}, nil},
		"XDG_RUNTIME_DIR":    {[]string{"XDG_RUNTIME_DIR=" + r.dir + "/run"}, nil},
		"DOCKER_CONFIG":      {[]string{"DOCKER_CONFIG=" + r.dir + "/docker"}, nil},
		"~/.docker":          {[]string{"HOME=" + r.dir + "/home"}, nil},
		"~/.config":          {[]string{"HOME=" + r.dir + "/home2"}, nil},
		"--authfile before others": {[]string{"REGISTRY_AUTH_FILE=" + r.write(t, "bad.json",
			auth(map[string]string{r.host: "wrong"}))}, []string{"--authfile", file}},
		"a repository's own": {nil, []string{"--authfile", repositories}},
		"a part of the path": {nil, []string{"--authfile", prefix}},
		"credHelpers": {nil,
			[]string{"--authfile", r.write(t, "helper.json", `{"credHelpers":{"`+r.host+`":"acme"}}`)}},
		"credsStore": {nil,
			[]string{"--authfile", r.write(t, "store.json", `{"auths":{"`+r.host+`":{}},"credsStore":"acme"}`)}},
	} {
		args := append([]string{"render", "--log-level", "debug", "--ca-file", r.ca, catalog}, c.args...)
		if got := r.run(t, dir, c.env, args...); got.status != 0 || got.stdout != want {
			t.Errorf("%s: status %d, %d bytes of %d\n%s", name, got.status, len(got.stdout), len(want), got.stderr)
		}
	}
	for name, c := range map[string]struct {
		args []string
		part string
	}{
		"none":  {nil, "401"},
		"wrong": {[]string{"--authfile", filepath.Join(r.dir, "bad.json")}, "401"},
		"for another repository": {[]string{"--authfile",
			r.write(t, "elsewhere.json", auth(map[string]string{r.host + "/acme/other": registrySecret}))}, "401"},
		"for another port": {[]string{"--authfile",
			r.write(t, "port.json",
				auth(map[string]string{"127.0.0.1": registrySecret, "127.0.0.1:1": registrySecret}))}, "401"},
		"a helper that fails": {[]string{"--authfile",
			r.write(t, "broken.json", `{"credHelpers":{"`+r.host+`":"broken"}}`)}, "broken"},
	} {
		args := append([]string{"render", "--error-format", "json", "--ca-file", r.ca, catalog}, c.args...)
		if err := failed(r.run(t, dir, nil, args...), 4, c.part); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	none := r.run(t, dir, nil, "render", "--error-format", "json", "--ca-file", r.ca, catalog)
	if err := failed(none, 4, "--authfile"); err != nil {
		t.Errorf("no hint: %v", err)
	}
	broken := r.run(t, dir, nil, "render", "--error-format", "json", "--ca-file", r.ca, "--authfile",
		r.write(t, "notjson.json", "{"), catalog)
	if err := failed(broken, 3, "notjson.json"); err != nil {
		t.Errorf("a broken file: %v", err)
	}
}

// A render with a lock file is repeatable even if tags have moved.
func TestLockPinsImages(t *testing.T) {
	r := startRegistry(t, registrySetup{})
	dir := r.fill(t)
	catalog, bundle := r.host+"/acme/catalog:v1", r.host+"/acme/etcd:v1"
	render := func(args ...string) result {
		t.Helper()
		return r.run(t, dir, nil, append([]string{"render", "--use-http", "--error-format", "json"}, args...)...)
	}
	before := render(catalog, bundle, "--lock", "bindery.lock")
	if before.status != 0 || !strings.Contains(before.stdout, bundle) {
		t.Fatalf("status %d\n%s", before.status, before.stderr)
	}
	lock := readFile(t, filepath.Join(dir, "bindery.lock"))
	if !strings.Contains(lock, catalog) || !strings.Contains(lock, bundle) {
		t.Errorf("the lock file is\n%s", lock)
	}
	r.push(t, "acme/catalog:v1", testregistry.Image{
		Labels: map[string]string{build.ConfigsLabel: "/configs"},
		Layers: []map[string]string{{"configs/new.json": `{"schema":"olm.package","name":"new","defaultChannel":"a"}`}},
	})
	if got := render(catalog, bundle); got.stdout == before.stdout || !strings.Contains(got.stdout, `"new"`) {
		t.Errorf("the tag has not moved: %s", got.stderr)
	}
	if got := render(catalog, bundle, "--lock", "bindery.lock"); got.status != 0 || got.stdout != before.stdout {
		t.Errorf("with the lock file: status %d, another answer\n%s", got.status, got.stderr)
	}
	if after := readFile(t, filepath.Join(dir, "bindery.lock")); after != lock {
		t.Errorf("the lock file has changed:\n%s", after)
	}
	// A failed run writes no lock file.
	if err := failed(render(catalog, r.host+"/acme/missing:v1", "--lock", "other.lock"), 4, "missing"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "other.lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a lock file of a failed run: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bindery.lock"), []byte(`{"version":1,"images":{"a":"b"}}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	if err := failed(render(catalog, "--lock", "bindery.lock"), 3, `images["a"]`); err != nil {
		t.Errorf("a malformed lock file: %v", err)
	}
}

// Many images are read concurrently; blobs of one package are in the order of the arguments, also when read from the
// cache.
func TestManyReferencesInOrder(t *testing.T) {
	r := startRegistry(t, registrySetup{})
	dir := r.fill(t)
	var refs []string
	for i := range 30 {
		name := fmt.Sprintf("p%02d", (i*7)%30)
		r.push(t, "acme/"+name+":v1", testregistry.Image{
			Labels: map[string]string{build.ConfigsLabel: "/configs"},
			Layers: []map[string]string{{"configs/c.json": `{"schema":"note","package":"same","name":"` + name + `"}`}},
		})
		refs = append(refs, r.host+"/acme/"+name+":v1")
	}
	env := []string{"XDG_CACHE_HOME=" + t.TempDir()}
	args := append([]string{"render", "--use-http", "-o", "ndjson"}, refs...)
	first := r.run(t, dir, env, args...)
	lines := strings.Split(strings.TrimSpace(first.stdout), "\n")
	if first.status != 0 || len(lines) != len(refs) {
		t.Fatalf("status %d, %d lines\n%s", first.status, len(lines), first.stderr)
	}
	for i, line := range lines {
		if name := refs[i][strings.LastIndex(refs[i], "/")+1:][:3]; !strings.Contains(line, `"`+name+`"`) {
			t.Errorf("line %d is %s and not of %s", i, line, name)
		}
	}
	if again := r.run(t, dir, env, args...); again.stdout != first.stdout {
		t.Errorf("another answer from the cache: status %d\n%s", again.status, again.stderr)
	}
}
