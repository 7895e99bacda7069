package releasetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The vendor's hosts: of the graphs, of the signatures, of OKD's graphs, and of the base of the graph image.
const (
	graphHost     = "api.openshift.com"
	signatureHost = "mirror.openshift.com"
	okdHost       = "origin-release.ci.openshift.org"
	baseHost      = "registry.access.redhat.com"
)

// Proxy starts a proxy that stands in for the vendor's hosts: it answers their HTTPS requests itself, as [Servers]
// says, those to api.openshift.com and mirror.openshift.com by path, those to origin-release.ci.openshift.org with
// OKD's graphs, and those to registry.access.redhat.com from the registry. Connections to other hosts are refused. It
// returns the address for HTTPS_PROXY and a file with the authority of the certificates for SSL_CERT_FILE.
func (w *World) Proxy(t testing.TB, registry http.Handler) (address, caFile string) {
	t.Helper()
	certificate := certificateFor(t, graphHost, signatureHost, okdHost, baseHost)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	if err := os.WriteFile(caFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	behind := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
			host, _, _ := strings.Cut(q.Host, ":")
			if host == baseHost && strings.HasPrefix(q.URL.Path, "/v2/") {
				registry.ServeHTTP(out, q)
				return
			}
			w.serve(out, q, host)
		})}
	tunnels := &tunnels{accepted: make(chan net.Conn), closed: make(chan struct{})}
	go func() { _ = behind.Serve(tunnels) }()
	proxy := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		host, _, _ := strings.Cut(q.Host, ":")
		if q.Method != http.MethodConnect || certificate.Leaf.VerifyHostname(host) != nil {
			out.WriteHeader(http.StatusBadGateway)
			return
		}
		conn, _, err := http.NewResponseController(out).Hijack()
		if err != nil {
			return
		}
		if _, err := conn.Write([]byte("HTTP/1.1 200 ok\r\n\r\n")); err != nil {
			conn.Close()
			return
		}
		select {
		case tunnels.accepted <- tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}}):
		case <-tunnels.closed:
			conn.Close()
		}
	}))
	t.Cleanup(func() {
		behind.Close()
		proxy.Close()
	})
	return proxy.URL, caFile
}

// certificateFor makes a certificate for hosts that is its own authority.
func certificateFor(t testing.TB, hosts ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: hosts, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// tunnels is a listener whose connections are those that the proxy accepted.
type tunnels struct {
	accepted chan net.Conn
	once     sync.Once
	closed   chan struct{}
}

func (l *tunnels) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *tunnels) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *tunnels) Addr() net.Addr { return &net.TCPAddr{} }
