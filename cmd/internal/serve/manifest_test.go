package serve_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// The server starts with the arguments in the manifest, its probes succeed, and it listens on the named ports.
func TestManifestOfAServedCatalog(t *testing.T) {
	deployment, service := clitest.ServedCatalog(t)
	c := deployment.Spec.Template.Spec.Containers[0]
	named := map[string]string{}
	for _, p := range c.Ports {
		named[p.Name] = clitest.FreePort(t)
	}
	for _, p := range service.Spec.Ports {
		if p.TargetPort.Type != intstr.String || named[p.TargetPort.StrVal] == "" {
			t.Errorf("the service's port %s leads nowhere", p.Name)
		}
	}
	dir := clitest.WorkDir(t)
	writePair(t, dir)
	here := strings.NewReplacer("/configs", "cat", "/cache", "cache", "/tls/", "", ":50051", "127.0.0.1:"+named["grpc"],
		":8080", "127.0.0.1:"+named["https"], ":9090", "127.0.0.1:"+named["metrics"])
	var args []string
	for _, a := range c.Args {
		args = append(args, here.Replace(a))
	}
	args = append(args, "-p", named["grpc"])
	var health []string
	for _, p := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		health = nil
		for _, a := range p.Exec.Command[1:] {
			health = append(health, here.Replace(a))
		}
	}
	stop := clitest.ServeProbed(t, "bindery", dir, health, args...)
	defer stop()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(clitest.ReadFile(t, filepath.Join(dir, "tls.crt"))))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	for at, want := range map[string]string{
		"https://127.0.0.1:" + named["https"] + "/":           "<h1>Operator catalog</h1>",
		"https://127.0.0.1:" + named["https"] + "/api/v1/all": `"schema":"olm.package"`,
		"http://127.0.0.1:" + named["metrics"] + "/metrics":   "bindery_catalog_ready 1",
	} {
		answer, err := client.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s: %.300s lacks %s (%v)", at, answer.Status, text, want, err)
		}
	}
}

// writePair writes a certificate for 127.0.0.1 and its key to dir, as tls.crt and tls.key.
func writePair(t *testing.T, dir string) {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	clitest.WriteFile(t, filepath.Join(dir, "tls.crt"),
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	clitest.WriteFile(t, filepath.Join(dir, "tls.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
}
