package web

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Hosts are the names, besides localhost and addresses, by which a server is asked. They are in lower case.
type Hosts []string

// ParseHosts reads names of hosts separated by commas, without ports.
func ParseHosts(text string) (Hosts, error) {
	var all Hosts
	for name := range strings.SplitSeq(text, ",") {
		name = canonicalHost(strings.TrimSpace(name))
		if wrong := wrongName(name); wrong != "" {
			return nil, fmt.Errorf("%q is no name of a host: %s", name, wrong)
		}
		all = append(all, name)
	}
	return all, nil
}

// canonicalHost returns the one form of a name: DNS ignores case, and the dot at its end.
func canonicalHost(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }

// know reports whether the value of a header Host names this server: as localhost, by an address, or by a name that was
// given. Any other name may be one that somebody else makes resolve to this machine.
func (h Hosts) know(host string) bool {
	name := host
	if before, port, err := net.SplitHostPort(host); err == nil && strings.Trim(port, "0123456789") == "" {
		name = before
	} else if inner, ok := strings.CutPrefix(host, "["); ok {
		name = strings.TrimSuffix(inner, "]")
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	name = canonicalHost(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || slices.Contains(h, name)
}

// Guard refuses requests over loopback for hosts that are not known. A browser takes the pages of a name for one site,
// wherever that name leads: a site whose name comes to resolve to this machine could read what only this machine may. Over
// TLS the name is that of the certificate. A server that others reach has names that it does not know.
func (h Hosts) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		if local != nil && local.IP.IsLoopback() && r.TLS == nil && r.Host != "" && !h.know(r.Host) {
			w.Header().Set("X-Content-Type-Options", "nosniff")
			fail(w, http.StatusMisdirectedRequest, "over loopback this server answers for localhost, for addresses, and for the names "+
				"that --http-host gives")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// errHost is returned for a request from which no absolute address can be made.
var errHost = errors.New("the header Host is neither an address nor localhost, nor a name that --http-host gives")
