package images

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Skipping the verification of certificates does not permit plain HTTP.
func TestSkippedVerificationIsNotPlainHTTP(t *testing.T) {
	var plain atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { plain.Add(1) }))
	defer server.Close()
	yes := true
	host := strings.TrimPrefix(server.URL, "http://")
	_, err := copyOf(t.Context(), of(t, simple(t, "x")), dests(t, "docker://"+host+"/a/b:v1"),
		CopyOptions{Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &yes}}})
	if !errors.Is(err, registries.ErrPlainHTTP) || !errors.Is(err, fault.ErrRegistry) {
		t.Errorf("got %v", err)
	}
	if n := plain.Load(); n > 0 {
		t.Errorf("the registry saw %d plain requests", n)
	}
}

func TestSkippedVerificationAcceptsAnyCertificate(t *testing.T) {
	host := testregistry.NewTLS(t).Host()
	dest := dests(t, "docker://"+host+"/a/b:v1")
	if _, err := copyOf(t.Context(), of(t, simple(t, "x")), dest, CopyOptions{}); err == nil {
		t.Error("an unknown certificate was accepted")
	}
	yes := true
	if _, err := copyOf(t.Context(), of(t, simple(t, "x")), dest,
		CopyOptions{Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &yes}}}); err != nil {
		t.Error(err)
	}
}
