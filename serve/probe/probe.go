package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/operator-bindery/bindery/internal/regularfile"
)

// Exit codes of grpc_health_probe.
const (
	ExitServing           = 0
	ExitInvalidArguments  = 1
	ExitConnectionFailure = 2
	ExitRPCFailure        = 3
	ExitUnhealthy         = 4
)

// Run probes once. The arguments are those of grpc_health_probe without the program's name. It prints the status to
// stdout and everything else to stderr, and returns the exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return ExitServing
	}
	if printed := (errPrinted{}); errors.As(err, &printed) {
		return ExitInvalidArguments
	}
	if err != nil {
		fmt.Fprintf(stderr, "error: %v\n", err)
		return ExitInvalidArguments
	}
	if f.version {
		fmt.Fprintln(stdout, "bindery grpc_health_probe")
		return ExitServing
	}
	p := &prober{flags: f, stdout: stdout, stderr: stderr}
	return p.run(ctx)
}

type prober struct {
	*flags
	stdout, stderr io.Writer
}

func (p *prober) logf(format string, args ...any) {
	if p.verbose {
		fmt.Fprintf(p.stderr, format+"\n", args...)
	}
}

func (p *prober) run(ctx context.Context) int {
	creds, err := p.credentials(ctx)
	if err != nil {
		fmt.Fprintf(p.stderr, "error: failed to initialize tls credentials: %v\n", err)
		return ExitInvalidArguments
	}
	// The address is used unchanged: gRPC's own name resolution and proxies are not used.
	conn, err := grpc.NewClient("passthrough:///"+p.addr, grpc.WithTransportCredentials(creds),
		grpc.WithUserAgent(p.userAgent), grpc.WithNoProxy(), grpc.WithDisableServiceConfig())
	if err != nil {
		fmt.Fprintf(p.stderr, "error: failed to connect service at %q: %v\n", p.addr, err)
		return ExitConnectionFailure
	}
	defer conn.Close()
	start := time.Now()
	if err := p.connect(ctx, conn); err != nil {
		fmt.Fprintf(p.stderr, "timeout: failed to connect service %q within %v: %v\n", p.addr, p.connectTimeout, err)
		return ExitConnectionFailure
	}
	connected := time.Now()
	p.logf("connection established (took %v)", connected.Sub(start))
	return p.check(ctx, conn, connected.Sub(start))
}

// connect waits until the connection is ready and retries until the timeout: a pod's server may be starting.
func (p *prober) connect(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, p.connectTimeout)
	defer cancel()
	conn.Connect()
	for {
		state := conn.GetState()
		if state == connectivity.Ready {
			return nil
		}
		if state == connectivity.Idle {
			conn.Connect()
		}
		if !conn.WaitForStateChange(ctx, state) {
			return fmt.Errorf("%w (%s)", ctx.Err(), p.why(conn, state))
		}
	}
}

// why describes the state of a connection and the error of its last attempt, such as an untrusted certificate, which
// gRPC reports to calls only.
func (p *prober) why(conn *grpc.ClientConn, state connectivity.State) string {
	if state != connectivity.TransientFailure {
		return state.String()
	}
	// A call without waiting fails immediately in this state; the timeout is for a state that has just changed.
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: p.service})
	if s := status.Convert(err); s.Code() == codes.Unavailable {
		// The server chose the names in its certificate: remove control characters.
		return fmt.Sprintf("%s: %.600s", state, strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return '?'
			}
			return r
		}, s.Message()))
	}
	return state.String()
}

func (p *prober) check(ctx context.Context, conn *grpc.ClientConn, connect time.Duration) int {
	ctx, cancel := context.WithTimeout(ctx, p.rpcTimeout)
	defer cancel()
	if len(p.rpcHeaders.MD) > 0 {
		ctx = metadata.NewOutgoingContext(ctx, p.rpcHeaders.MD)
	}
	var options []grpc.CallOption
	if p.gzip {
		options = append(options, grpc.UseCompressor(gzip.Name))
	}
	start := time.Now()
	answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: p.service},
		options...)
	took := time.Since(start)
	if err != nil {
		switch s := status.Convert(err); s.Code() {
		case codes.Unimplemented:
			fmt.Fprintf(p.stderr,
				"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s\n",
				s.Message())
		case codes.DeadlineExceeded:
			fmt.Fprintf(p.stderr, "timeout: health rpc did not complete within %v\n", p.rpcTimeout)
		default:
			fmt.Fprintf(p.stderr, "error: health rpc failed: %v\n", err)
		}
		return ExitRPCFailure
	}
	if answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		fmt.Fprintf(p.stderr, "service unhealthy (responded with %q)\n", answer.GetStatus())
		return ExitUnhealthy
	}
	p.logf("time elapsed: connect=%v rpc=%v", connect, took)
	fmt.Fprintf(p.stdout, "status: %v\n", answer.GetStatus())
	return ExitServing
}

func (p *prober) credentials(ctx context.Context) (credentials.TransportCredentials, error) {
	if !p.tls {
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{ServerName: p.tlsServerName,
		InsecureSkipVerify: p.tlsNoVerify} //nolint:gosec // requested by the user
	if p.tlsCACert != "" {
		pem, err := regularfile.ReadMounted(ctx, p.tlsCACert)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("no root CA certs parsed from file %q", p.tlsCACert)
		}
	}
	if p.tlsClientCert != "" {
		cert, err := regularfile.ReadMounted(ctx, p.tlsClientCert)
		var key []byte
		if err == nil {
			key, err = regularfile.ReadMounted(ctx, p.tlsClientKey)
		}
		var pair tls.Certificate
		if err == nil {
			pair, err = tls.X509KeyPair(cert, key)
		}
		if err != nil {
			return nil, fmt.Errorf("failed to load tls client cert/key pair: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(config), nil
}
