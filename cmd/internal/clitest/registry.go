package clitest

import (
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
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// The user of the registry and the line of its password file.
const (
	RegistryUser   = "robot"
	RegistrySecret = "open-sesame"
	HtpasswdLine   = RegistryUser + ":$2b$04$abcdefghijklmnopqrstuuXcjcm5avyCiJoD2uS24xa2lb6fjMB3G\n"
)

// RealRegistry is a running registry server of the distribution project.
type RealRegistry struct {
	Host string
	Dir  string
	Ca   string // file with the CA certificate; empty without TLS
	Cert string // file with a client certificate issued by the CA
	Key  string
}

func (r *RealRegistry) Write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(r.Dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// Certificates creates a CA and certificates for the registry and a client.
func (r *RealRegistry) Certificates(t *testing.T) {
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
		crt := r.Write(t, name+".crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
		return template, key, crt, r.Write(t, name+".key",
			string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	}
	ca, caKey, file, _ := sign("ca",
		&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	r.Ca = file
	sign("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, ca, caKey)
	_, _, r.Cert, r.Key = sign("client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
		ca, caKey)
}

// Auth writes a file with credentials for each of the given names.
func Auth(names map[string]string) string {
	auths := map[string]any{}
	for name, secret := range names {
		auths[name] = map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(RegistryUser + ":" + secret))}
	}
	text, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Fill pushes a catalog as acme/catalog:v1 and a bundle as acme/etcd:v1. It returns a directory with both and with the
// results of rendering them from disk, where the bundle has no image.
func (r *RealRegistry) Fill(t *testing.T) (dir string) {
	t.Helper()
	dir = WorkDir(t)
	noise := make([]byte, 400<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cat", "noise.json"),
		fmt.Appendf(nil, `{"schema":"noise","package":"foo","data":"%x"}`, noise), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "bundle"), os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
		t.Fatal(err)
	}
	r.Push(t, "acme/catalog:v1", testregistry.Image{
		Labels: map[string]string{build.ConfigsLabel: "/configs"},
		Layers: []map[string]string{{"etc/motd": "nothing of interest"},
			testregistry.Files(t, filepath.Join(dir, "cat"), "configs")},
	})
	r.Push(t, "acme/etcd:v1", testregistry.Image{
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

// Push pushes the image to the registry.
func (r *RealRegistry) Push(t *testing.T, name string, i testregistry.Image) {
	t.Helper()
	layout := filepath.Join(t.TempDir(), "layout")
	i.WriteLayout(t, layout, "v1")
	src := imagetest.Opened(t, imagetest.Client(t), "oci:"+layout+":v1")
	d, err := program.Transports.Parse("docker://" + r.Host + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	access := registries.Config{AuthFile: r.Write(t, "push.json", Auth(map[string]string{r.Host: RegistrySecret}))}
	if r.Ca == "" {
		yes := true
		access.SkipTLSVerify, access.PlainHTTP = &yes, true
	} else {
		access.CertDir = t.TempDir()
		for from, to := range map[string]string{r.Ca: "ca.crt", r.Cert: "client.cert", r.Key: "client.key"} {
			CopyFile(t, from, filepath.Join(access.CertDir, to))
		}
	}
	if _, err := images.Copy(t.Context(), src, src.Top, []transport.Destination{d},
		images.CopyOptions{Options: registries.Options{Registry: access, Temp: t.TempDir()}}); err != nil {
		t.Fatal(err)
	}
}

// Run runs the program with a fresh directory and only the environment in env. It checks that no temporary files remain
// and no secret is printed.
func (r *RealRegistry) Run(t *testing.T, dir string, env []string, args ...string) Result {
	t.Helper()
	home := t.TempDir()
	tmp := filepath.Join(home, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(BinDir, "bindery"), args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + r.Dir + ":" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + tmp,
		"XDG_CACHE_HOME=" + home + "/cache"}, env...)
	got := Finish(t, cmd)
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%v: left behind: %v, %v", args, left, err)
	}
	for _, secret := range []string{RegistrySecret,
		base64.StdEncoding.EncodeToString([]byte(RegistryUser + ":" + RegistrySecret))} {
		if strings.Contains(got.Stdout+got.Stderr, secret) {
			t.Errorf("%v: the secret is printed:\n%s", args, got.Stderr)
		}
	}
	return got
}

// Failed checks that a run failed properly: with an error of the class and nothing on standard output.
func Failed(got Result, class int, parts ...string) error {
	if got.Status != 1 || got.Stdout != "" {
		return fmt.Errorf("status %d, %d bytes on standard output\n%s", got.Status, len(got.Stdout), got.Stderr)
	}
	lines := strings.Split(strings.TrimSpace(got.Stderr), "\n")
	var e struct {
		Class   int
		Message string
		Hint    string
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil {
		return fmt.Errorf("%w\n%s", err, got.Stderr)
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
