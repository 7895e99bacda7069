package probe

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// healthServer answers by the name of the service.
type healthServer struct {
	healthpb.UnimplementedHealthServer
	metadata chan metadata.MD
}

func (h *healthServer) Check(ctx context.Context,
	req *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if md, ok := metadata.FromIncomingContext(ctx); ok && len(h.metadata) == 0 {
		h.metadata <- md
	}
	switch req.GetService() {
	case "down":
		return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_NOT_SERVING}, nil
	case "unknown":
		return nil, status.Error(codes.NotFound, "unknown service")
	case "slow":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

func serveHealth(t *testing.T, h healthpb.HealthServer, o ...grpc.ServerOption) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(o...)
	if h != nil {
		healthpb.RegisterHealthServer(s, h)
	}
	go s.Serve(l)
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

// probe runs the probe with a command line.
func probe(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Run(t.Context(), args, &out, &err)
	return code, out.String(), err.String()
}

func TestExitCodes(t *testing.T) {
	addr := serveHealth(t, &healthServer{metadata: make(chan metadata.MD, 1)})
	without := serveHealth(t, nil)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, test := range []struct {
		name   string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{"serving", []string{"-addr", addr}, 0, "status: SERVING\n", ""},
		{"two dashes and an equals sign", []string{"--addr=" + addr}, 0, "status: SERVING\n", ""},
		{"a service", []string{"-addr", addr, "-service", "x"}, 0, "status: SERVING\n", ""},
		{"gzip", []string{"-addr", addr, "-gzip"}, 0, "status: SERVING\n", ""},
		{"verbose", []string{"-addr", addr, "-v"}, 0, "status: SERVING\n", "time elapsed: connect="},
		{"not serving", []string{"-addr", addr, "-service", "down"}, 4, "",
			`service unhealthy (responded with "NOT_SERVING")`},
		{"unknown service", []string{"-addr", addr, "-service", "unknown"}, 3, "", "error: health rpc failed"},
		{"slow answer", []string{"-addr", addr, "-service", "slow", "-rpc-timeout", "50ms"}, 3, "",
			"timeout: health rpc did not complete within 50ms"},
		{"no health service", []string{"-addr", without}, 3, "",
			"error: this server does not implement the grpc health protocol"},
		{"connection refused", []string{"-addr", "127.0.0.1:1", "-connect-timeout", "100ms"}, 2, "",
			"(TRANSIENT_FAILURE: connection error: desc = \"transport: Error while dialing: dial tcp 127.0.0.1:1: " +
				"connect"},
		{"connection refused, with the text of other probes", []string{"-addr", "127.0.0.1:1", "-connect-timeout", "100ms"}, 2, "",
			`timeout: failed to connect service "127.0.0.1:1" within 100ms`},
		{"no answer to the connection", []string{"-addr", silent.Addr().String(), "-connect-timeout", "100ms"}, 2, "",
			"timeout: failed to connect service"},
		{"no address", nil, 1, "", "error: -addr not specified"},
		{"unknown flag", []string{"-nosuch"}, 1, "", "flag provided but not defined: -nosuch"},
		{"an argument", []string{"-addr", addr, "x"}, 1, "", `unexpected argument "x"`},
		{"no time", []string{"-addr", addr, "-connect-timeout", "0s"}, 1, "",
			"-connect-timeout must be greater than zero"},
		{"TLS flag without TLS", []string{"-addr", addr, "-tls-no-verify"}, 1, "",
			"specified -tls-no-verify without specifying -tls"},
		{"certificate without key", []string{"-addr", addr, "-tls", "-tls-client-cert", "x"}, 1, "",
			"without specifying -tls-client-key"},
		{"CA that is not read", []string{"-addr", addr, "-tls", "-tls-ca-cert", "/nonexistent"}, 1, "",
			"failed to initialize tls credentials"},
		{"ALTS", []string{"-addr", addr, "-alts"}, 1, "", "-alts is not supported"},
		{"SPIFFE", []string{"-addr", addr, "-spiffe"}, 1, "", "-spiffe is not supported"},
		{"bad header", []string{"-addr", addr, "-rpc-header", "x"}, 1, "", "invalid RPC header"},
		{"version", []string{"-version"}, 0, "bindery grpc_health_probe\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := probe(t, test.args...)
			if code != test.code || stdout != test.stdout || !strings.Contains(stderr, test.stderr) {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d, %q, %q", code, stdout, stderr, test.code,
					test.stdout, test.stderr)
			}
			if code == 0 && test.stderr == "" && stderr != "" {
				t.Errorf("stderr %q", stderr)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	h := &healthServer{metadata: make(chan metadata.MD, 1)}
	addr := serveHealth(t, h)
	code, _, stderr := probe(t, "-addr", addr, "-rpc-header", "X-A: 1", "-rpc-header", "x-a: 2", "-rpc-header=x-b:3: 4",
		"-user-agent", "tester")
	if code != 0 {
		t.Fatal(stderr)
	}
	md := <-h.metadata
	if got := strings.Join(append(md.Get("x-a"), md.Get("x-b")...), ","); got != "1,2,3: 4" {
		t.Errorf("headers %q", got)
	}
	if got := md.Get("user-agent"); len(got) != 1 || !strings.HasPrefix(got[0], "tester ") {
		t.Errorf("user agent %q", got)
	}
}

// certificate returns a self-signed certificate for a name.
func certificate(t *testing.T, name string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}

func TestTLS(t *testing.T) {
	cert, ca := certificate(t, "catalog.test")
	addr := serveHealth(t, &healthServer{metadata: make(chan metadata.MD, 1)},
		grpc.Creds(credentials.NewServerTLSFromCert(&cert)))
	for _, test := range []struct {
		name string
		args []string
		code int
		told string
	}{
		{"trusted, by name", []string{"-tls", "-tls-ca-cert", ca, "-tls-server-name", "catalog.test"}, 0, ""},
		{"trusted, wrong name", []string{"-tls", "-tls-ca-cert", ca, "-connect-timeout", "300ms"}, 2,
			"x509: cannot validate certificate for 127.0.0.1"},
		{"not trusted", []string{"-tls", "-connect-timeout", "300ms"}, 2, "x509: "},
		{"not verified", []string{"-tls", "-tls-no-verify"}, 0, ""},
		{"no TLS", []string{"-connect-timeout", "300ms"}, 2, "TRANSIENT_FAILURE: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, _, stderr := probe(t, append([]string{"-addr", addr}, test.args...)...)
			if code != test.code || !strings.Contains(stderr, test.told) {
				t.Errorf("exit code %d, want %d: %s lacks %q", code, test.code, stderr, test.told)
			}
		})
	}
}
