// Package webclient has the one set of rules of all HTTP clients of the program: where a redirect may lead, how long a
// server may let a client wait, and how little it may send meanwhile. [Client] gets documents that need no credentials,
// [Service] sends requests with tokens, and the client of registries is built on the same parts.
package webclient

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/operator-bindery/bindery/internal/fault"
)

const (
	// maxRedirects is how many redirects are followed.
	maxRedirects = 10
	// maxHeader is how many bytes the header of an answer has at most.
	maxHeader = 256 << 10
	// connectTime is how long a server may take to accept a connection.
	connectTime = 30 * time.Second
)

// NewTransport returns a transport with the proxies of the environment. It makes no connection to a link-local address,
// where clouds keep their credentials, for a name of another network.
func NewTransport(config *tls.Config) *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dial, TLSClientConfig: config,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConns: 100,
		MaxResponseHeaderBytes: maxHeader}
}

// New returns a client that follows redirects by the rules of this package.
func New(transport *http.Transport) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: checkRedirect}
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: connectTime, KeepAlive: 30 * time.Second}
	host, _, err := net.SplitHostPort(address)
	if _, ok := parseAddress(host); err == nil && !ok && !isLocalName(host) {
		d.Control = checkResolved
	}
	return d.DialContext(ctx, network, address)
}

// checkResolved refuses the link-local address of a name.
func checkResolved(_, address string, _ syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err == nil && isLinkLocal(at.Addr().Unmap().WithZone("")) {
		return fmt.Errorf("refusing the link-local address %s, which the name resolves to", at.Addr())
	}
	return nil
}

// checkRedirect decides which redirects are followed, and removes the credentials from those to other servers.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first, last := via[0].URL, via[len(via)-1].URL
	if len(via) > maxRedirects {
		return networkError{fmt.Errorf("more than %d redirects", maxRedirects)}
	}
	if req.URL.Scheme != "https" && (req.URL.Scheme != "http" || last.Scheme == "https") {
		return networkError{fmt.Errorf("refusing %.10s after https: redirect to %.100q", req.URL.Scheme, req.URL.Host)}
	}
	if err := CheckAddress(first.Hostname(), req.URL.Hostname()); err != nil {
		return networkError{fmt.Errorf("redirect: %w", err)}
	}
	req.Header.Del("Referer")
	if req.URL.Scheme != first.Scheme || HostPort(req.URL) != HostPort(first) {
		req.Header.Del("Authorization")
		req.Header.Del("Cookie")
	}
	return nil
}

// networkError is an error of the class [fault.Network].
type networkError struct{ error }

func (e networkError) Unwrap() []error { return []error{fault.ErrRegistry, e.error} }

// HostPort returns HOST:PORT of a URL.
func HostPort(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// CheckAddress returns an error if a server outside sends clients to an address of this machine or its network, whose
// services trust requests from inside, or any server to a link-local address. Names are not resolved, except localhost
// and those of the metadata of clouds.
func CheckAddress(from, to string) error {
	at, ok := parseAddress(to)
	if !ok {
		return nil
	}
	if own, ok := parseAddress(from); ok && (own == at || isInside(own) && !isLinkLocal(at)) {
		return nil
	}
	if isLinkLocal(at) || isInside(at) && !isLocalName(from) {
		return fmt.Errorf("refusing the private address %s, named by %s", fault.Clip(to, 100), fault.Clip(from, 100))
	}
	return nil
}

// nat64 are the addresses of IPv6 that a gateway translates to IPv4 (RFC 6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// parseAddress reads an address, or a name that stands for one.
func parseAddress(host string) (netip.Addr, bool) {
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	switch {
	case host == "localhost" || strings.HasSuffix(host, ".localhost"):
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	case host == "metadata.google.internal":
		return netip.AddrFrom4([4]byte{169, 254, 169, 254}), true
	}
	a, err := netip.ParseAddr(host)
	if a = a.Unmap().WithZone(""); err == nil && nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	return a, err == nil
}

// metadata are the addresses of the metadata of clouds that are not link-local.
var metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("168.63.129.16")}

func isLinkLocal(a netip.Addr) bool {
	return a.IsLinkLocalUnicast() || a.IsMulticast() || slices.Contains(metadata, a)
}

func isInside(a netip.Addr) bool {
	return a.IsPrivate() || a.IsLoopback() || a.IsUnspecified() || isLinkLocal(a)
}

// isLocalName tells whether a name belongs to a local network. Such a server may refer to addresses there.
func isLocalName(host string) bool {
	host = strings.ToLower(strings.Trim(host, "[]"))
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	if !strings.Contains(host, ".") {
		return true
	}
	return slices.ContainsFunc([]string{".local", ".localhost", ".internal", ".lan", ".svc", ".test", ".home.arpa"},
		func(end string) bool { return strings.HasSuffix(host, end) })
}
