package probe

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc/metadata"
)

type flags struct {
	addr           string
	service        string
	userAgent      string
	connectTimeout time.Duration
	rpcTimeout     time.Duration
	rpcHeaders     headers
	tls            bool
	tlsNoVerify    bool
	tlsCACert      string
	tlsClientCert  string
	tlsClientKey   string
	tlsServerName  string
	alts           bool
	spiffe         bool
	gzip           bool
	verbose        bool
	version        bool
}

// headers is a repeatable flag of the form "name: value".
type headers struct{ metadata.MD }

func (h *headers) String() string {
	var pairs []string
	for name, values := range h.MD {
		for _, v := range values {
			pairs = append(pairs, name+": "+v)
		}
	}
	return strings.Join(pairs, ", ")
}

func (h *headers) Set(s string) error {
	name, value, ok := strings.Cut(s, ":")
	name = strings.ToLower(strings.TrimSpace(name))
	if !ok || name == "" {
		return fmt.Errorf("invalid RPC header, expected 'key: value', got %q", s)
	}
	if h.MD == nil {
		h.MD = metadata.MD{}
	}
	h.MD.Append(name, strings.TrimSpace(value))
	return nil
}

// Flags returns the flags of [Run], for help texts.
func Flags() *flag.FlagSet { return (&flags{}).declare() }

func parseFlags(args []string, stderr io.Writer) (*flags, error) {
	f := &flags{}
	set := f.declare()
	set.SetOutput(stderr)
	if err := set.Parse(args); err != nil {
		// The flag set has printed it.
		return nil, errPrinted{err}
	}
	return f, f.check(set.Args())
}

func (f *flags) declare() *flag.FlagSet {
	set := flag.NewFlagSet("grpc_health_probe", flag.ContinueOnError)
	set.StringVar(&f.addr, "addr", "", "(required) tcp host:port to connect")
	set.StringVar(&f.service, "service", "", "service name to check")
	set.StringVar(&f.userAgent, "user-agent", "grpc_health_probe", "user-agent header value of health check requests")
	set.DurationVar(&f.connectTimeout, "connect-timeout", time.Second, "timeout for establishing connection")
	set.DurationVar(&f.rpcTimeout, "rpc-timeout", time.Second, "timeout for health check rpc")
	set.Var(&f.rpcHeaders, "rpc-header", "additional RPC header in 'name: value' format, may be repeated")
	set.BoolVar(&f.tls, "tls", false, "use TLS")
	set.BoolVar(&f.tlsNoVerify, "tls-no-verify", false,
		"(with -tls) don't verify the certificate presented by the server")
	set.StringVar(&f.tlsCACert, "tls-ca-cert", "",
		"(with -tls) file containing trusted certificates for verifying the server")
	set.StringVar(&f.tlsClientCert, "tls-client-cert", "",
		"(with -tls) client certificate for authenticating to the server (requires -tls-client-key)")
	set.StringVar(&f.tlsClientKey, "tls-client-key", "",
		"(with -tls) client private key for authenticating to the server (requires -tls-client-cert)")
	set.StringVar(&f.tlsServerName, "tls-server-name", "",
		"(with -tls) override the hostname used to verify the server certificate")
	set.BoolVar(&f.alts, "alts", false, "use ALTS (not supported)")
	set.BoolVar(&f.spiffe, "spiffe", false, "use SPIFFE (not supported)")
	set.BoolVar(&f.gzip, "gzip", false, "use gzip compression for requests and responses")
	set.BoolVar(&f.verbose, "v", false, "verbose logs")
	set.BoolVar(&f.version, "version", false, "print version and exit")
	return set
}

// errPrinted is an error that has been printed.
type errPrinted struct{ error }

func (e errPrinted) Unwrap() error { return e.error }

func (f *flags) check(rest []string) error {
	if f.version {
		return nil
	}
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case f.addr == "":
		return errors.New("-addr not specified")
	case f.connectTimeout <= 0:
		return fmt.Errorf("-connect-timeout must be greater than zero (specified: %v)", f.connectTimeout)
	case f.rpcTimeout <= 0:
		return fmt.Errorf("-rpc-timeout must be greater than zero (specified: %v)", f.rpcTimeout)
	case f.alts:
		return errors.New("-alts is not supported")
	case f.spiffe:
		return errors.New("-spiffe is not supported")
	}
	return f.checkTLS()
}

func (f *flags) checkTLS() error {
	for _, with := range []struct {
		flag string
		set  bool
	}{
		{"-tls-no-verify", f.tlsNoVerify},
		{"-tls-ca-cert", f.tlsCACert != ""},
		{"-tls-client-cert", f.tlsClientCert != ""},
		{"-tls-server-name", f.tlsServerName != ""},
	} {
		if with.set && !f.tls {
			return fmt.Errorf("specified %s without specifying -tls", with.flag)
		}
	}
	switch {
	case f.tlsClientCert != "" && f.tlsClientKey == "":
		return errors.New("specified -tls-client-cert without specifying -tls-client-key")
	case f.tlsClientCert == "" && f.tlsClientKey != "":
		return errors.New("specified -tls-client-key without specifying -tls-client-cert")
	case f.tlsNoVerify && f.tlsCACert != "":
		return errors.New("cannot specify -tls-ca-cert with -tls-no-verify (CA cert would not be used)")
	case f.tlsNoVerify && f.tlsServerName != "":
		return errors.New("cannot specify -tls-server-name with -tls-no-verify (server name would not be used)")
	}
	return nil
}
