package web

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Over loopback a server answers for localhost, addresses and names that are given; elsewhere for any name.
func TestHostsThatAreAnswered(t *testing.T) {
	given, err := ParseHosts("catalog.example.com, Other.Test.")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		local, host string
		tls         bool
		want        int
	}{
		"localhost":                {"127.0.0.1", "localhost:8080", false, 200},
		"localhost without port":   {"127.0.0.1", "LOCALHOST.", false, 200},
		"a name below localhost":   {"::1", "catalog.localhost:80", false, 200},
		"an address":               {"127.0.0.1", "127.0.0.1:8080", false, 200},
		"an address of IPv6":       {"::1", "[::1]:8080", false, 200},
		"an address without port":  {"::1", "[::1]", false, 200},
		"another address":          {"127.0.0.2", "192.0.2.1", false, 200},
		"a given name":             {"127.0.0.1", "catalog.example.com:8080", false, 200},
		"a given name, spelled":    {"127.0.0.1", "OTHER.test", false, 200},
		"no name":                  {"127.0.0.1", "", false, 200},
		"a name of somebody":       {"127.0.0.1", "evil.test:8080", false, 421},
		"over IPv6":                {"::1", "evil.test", false, 421},
		"over mapped IPv4":         {"::ffff:127.0.0.1", "evil.test", false, 421},
		"a name with localhost":    {"127.0.0.1", "localhost.evil.test", false, 421},
		"a name that ends so":      {"127.0.0.1", "evillocalhost", false, 421},
		"a name like an address":   {"127.0.0.1", "127.0.0.1.evil.test", false, 421},
		"a name below a given one": {"127.0.0.1", "x.catalog.example.com", false, 421},
		"the name of a service":    {"10.1.2.3", "catalog.olm.svc:8080", false, 200},
		"by a certificate's name":  {"127.0.0.1", "catalog.olm.svc:8443", true, 200},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			if r.Host = c.host; c.tls {
				r.TLS = &tls.ConnectionState{}
			}
			local := &net.TCPAddr{IP: net.ParseIP(c.local), Port: 8080}
			w := httptest.NewRecorder()
			given.Guard(http.NotFoundHandler()).ServeHTTP(w, r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, local)))
			if got := w.Code; got != c.want && !(got == http.StatusNotFound && c.want == http.StatusOK) {
				t.Errorf("%d", got)
			}
			if w.Code == 421 && (strings.Contains(w.Body.String(), "evil") || !strings.Contains(w.Body.String(), "--http-host")) {
				t.Errorf("it says %q", w.Body)
			}
		})
	}
	for _, wrong := range []string{"", "a,", "a b", "a:80", "*", "https://a", "[::1]"} {
		if hosts, err := ParseHosts(wrong); err == nil {
			t.Errorf("%q is read as %q", wrong, hosts)
		}
	}
}
