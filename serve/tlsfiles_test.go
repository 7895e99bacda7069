package serve

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/serve/probe"
)

// makeCertificate writes a self-signed certificate for 127.0.0.1 and its key.
func makeCertificate(t testing.TB, dir string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	do(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	do(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	do(t, err)
	write(t, filepath.Join(dir, "tls.crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, filepath.Join(dir, "tls.key"),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})))
}

// serialOf returns the serial number of a server's certificate, and the negotiated protocol.
func serialOf(t testing.TB, addr string, c *tls.Config) (int64, string, error) {
	t.Helper()
	c.InsecureSkipVerify = true
	conn, err := (&tls.Dialer{Config: c}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return 0, "", err
	}
	defer conn.Close()
	state := conn.(*tls.Conn).ConnectionState()
	return state.PeerCertificates[0].SerialNumber.Int64(), state.NegotiatedProtocol, nil
}

func tlsOptions(dir string) Options {
	return Options{TLSCert: filepath.Join(dir, "tls.crt"), TLSKey: filepath.Join(dir, "tls.key")}
}

func TestTLSAndTheProbe(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/catalog/a.yaml", sampleA)
	makeCertificate(t, dir, 1)
	s := start(t, directory(t, dir+"/catalog"), tlsOptions(dir))
	for _, c := range []struct {
		args string
		code int
	}{
		{"-tls -tls-ca-cert " + dir + "/tls.crt", probe.ExitServing},
		{"-tls -tls-no-verify", probe.ExitServing},
		{"-tls -connect-timeout 200ms", probe.ExitConnectionFailure},
		{"-connect-timeout 200ms", probe.ExitConnectionFailure},
	} {
		var stdout, stderr bytes.Buffer
		if code := probe.Run(t.Context(), append(strings.Fields(c.args), "-addr", s.addr), &stdout,
			&stderr); code != c.code {
			t.Errorf("%s: exit code %d, want %d: %s", c.args, code, c.code, stderr.String())
		}
	}
	if _, protocol, err := serialOf(t, s.addr, &tls.Config{NextProtos: []string{"h2"}}); err != nil ||
		protocol != "h2" {
		t.Errorf("protocol %q, %v", protocol, err)
	}
	if _, _, err := serialOf(t, s.addr, &tls.Config{NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS10,
		MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	// A client without TLS that sends more than the gate waits for is refused without affecting others.
	conn, err := net.Dial("tcp", s.addr)
	do(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+strings.Repeat("\x00", 100))
	do(t, err)
	do(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a client without TLS is kept")
	}
}

// A new certificate is used for new connections, also when a Kubernetes secret is updated; a broken pair is logged and
// does not replace the old one.
func TestTLSFilesChange(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/catalog/a.yaml", sampleA)
	secret := dir + "/secret"
	makeCertificate(t, secret+"/..1", 1)
	do(t, os.Symlink("..1", secret+"/..data"))
	do(t, os.Symlink("..data/tls.crt", secret+"/tls.crt"))
	do(t, os.Symlink("..data/tls.key", secret+"/tls.key"))
	o := tlsOptions(secret)
	o.ReloadEvery = 5 * time.Millisecond
	metrics := listenLocally(t)
	o.MetricsListener = metrics
	s := start(t, directory(t, dir+"/catalog"), o)
	expect := func(want int64) {
		t.Helper()
		if got, _, err := serialOf(t, s.addr, &tls.Config{NextProtos: []string{"h2"}}); err != nil || got != want {
			t.Errorf("serial number %d, %v, want %d", got, err, want)
		}
	}
	swap := func(to string) {
		t.Helper()
		do(t, os.Symlink(to, secret+"/..next"))
		do(t, os.Rename(secret+"/..next", secret+"/..data"))
	}
	expect(1)
	makeCertificate(t, secret+"/..2", 2)
	swap("..2")
	s.log.wait(t, "TLS certificate loaded")
	expect(2)
	makeCertificate(t, secret+"/..3", 3)
	do(t, os.Rename(secret+"/..3/tls.key", secret+"/..3/other"))
	write(t, secret+"/..3/tls.key", string(readFile(t, secret+"/..2/tls.key")))
	swap("..3")
	s.log.wait(t, "TLS certificate cannot be loaded")
	expect(2)
	do(t, os.Rename(secret+"/..3/other", secret+"/..3/tls.key"))
	s.log.wait(t, "TLS certificate loaded")
	expect(3)
	m := scrape(t, "http://"+metrics.Addr().String()+"/metrics")
	if m.value(t, "bindery_tls_certificate_load_failures_total") < 1 || m.value(t,
		"bindery_tls_certificate_not_after_timestamp_seconds") < float64(time.Now().Unix()) {
		t.Error("the metrics do not tell of the certificate")
	}
	do(t, s.stop())
}

// Without looking for changes, a signal triggers the reload.
func TestTLSFilesAfterSignal(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/catalog/a.yaml", sampleA)
	makeCertificate(t, dir, 1)
	s := start(t, directory(t, dir+"/catalog"), tlsOptions(dir))
	makeCertificate(t, dir, 2)
	s.reload <- syscall.SIGHUP
	s.log.wait(t, "the catalog was loaded again")
	if got, _, err := serialOf(t, s.addr, &tls.Config{NextProtos: []string{"h2"}}); err != nil || got != 2 {
		t.Errorf("serial number %d, %v", got, err)
	}
}

func TestTLSFilesThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/catalog/a.yaml", sampleA)
	makeCertificate(t, dir, 1)
	write(t, dir+"/large", strings.Repeat("x", maxCertificateFile+1))
	for name, c := range map[string]struct{ cert, key, want string }{
		"no key":         {dir + "/tls.crt", "", "go together"},
		"no certificate": {"", dir + "/tls.key", "go together"},
		"not there":      {dir + "/nosuch", dir + "/tls.key", "nosuch"},
		"swapped":        {dir + "/tls.key", dir + "/tls.crt", "tls.key"},
		"too large":      {dir + "/large", dir + "/tls.key", "longer than"},
		"a directory":    {dir + "/tls.crt", dir + "/catalog", "is a directory, expected a file"},
	} {
		l := listenLocally(t)
		err := Run(context.Background(), directory(t, dir+"/catalog"),
			Options{Listener: l, TLSCert: c.cert, TLSKey: c.key})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: the listener is open: %v", name, err)
		}
	}
}
