// Package sigstoretest is a Sigstore on the loopback: a certificate authority for identities (Fulcio), a transparency log
// (Rekor, API version 1) and a timestamp authority, which the clients of sigstore-go talk to over plain HTTP, with the
// trusted root by which its verifier accepts what is signed with them. Each instance has keys of its own.
package sigstoretest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/transparency-dev/merkle/rfc6962"
	merkle "github.com/transparency-dev/merkle/testonly"
)

// The servers, as [Request] and [Sigstore.Fail] name them.
const (
	Fulcio = "fulcio"
	Rekor  = "rekor"
	TSA    = "tsa"
)

// Sigstore is a running instance. It is safe for concurrent use; its fields are set before the first request.
type Sigstore struct {
	// FulcioURL and RekorURL are base URLs, TSAURL has the path too.
	FulcioURL, RekorURL, TSAURL string
	// Now is the time of the servers, at most a month away from the present; [time.Now] if nil.
	Now func() time.Time
	// CertificateTime is when a certificate begins to be valid, for ten minutes; Now if nil.
	CertificateTime func() time.Time

	t        testing.TB
	fulcio   authority
	tsa      authority
	tsaLeaf  *x509.Certificate
	tsaKey   *ecdsa.PrivateKey
	rekorKey *ecdsa.PrivateKey

	mu       sync.Mutex
	failing  map[string]int // the status by the name of the server
	requests []Request
	tree     *merkle.Tree
	entries  map[string][]byte // the answers by the UUID of the entry
}

// Request is a request that a server has received.
type Request struct {
	Server, Method, Path string
	Header               http.Header
	Body                 []byte
}

// maxRequest is the largest body of a request in bytes.
const maxRequest = 8 << 20

// New starts an instance and stops it when the test ends.
func New(t testing.TB) *Sigstore {
	t.Helper()
	s := &Sigstore{t: t, failing: map[string]int{}, tree: merkle.New(rfc6962.DefaultHasher),
		entries: map[string][]byte{}}
	var err error
	if s.fulcio, err = newAuthority("fulcio", x509.ExtKeyUsageCodeSigning); err != nil {
		t.Fatal(err)
	}
	if s.tsa, err = newAuthority("tsa", x509.ExtKeyUsageTimeStamping); err != nil {
		t.Fatal(err)
	}
	if s.tsaLeaf, s.tsaKey, err = s.tsa.timestamping(); err != nil {
		t.Fatal(err)
	}
	if s.rekorKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	s.FulcioURL = s.serve(t, Fulcio, map[string]handler{"POST /api/v2/signingCert": s.signingCert})
	s.RekorURL = s.serve(t, Rekor, map[string]handler{"POST /api/v1/log/entries": s.createEntry,
		"GET /api/v1/log/entries/{uuid}": s.getEntry})
	s.TSAURL = s.serve(t, TSA, map[string]handler{"POST /api/v1/timestamp": s.timestamp}) + "/api/v1/timestamp"
	return s
}

// handler answers a request, whose body it is given beside.
type handler func(w http.ResponseWriter, r *http.Request, body []byte)

// serve starts one of the servers, which records its requests and fails as Fail says.
func (s *Sigstore) serve(t testing.TB, name string, handlers map[string]handler) string {
	mux := http.NewServeMux()
	for pattern, h := range handlers {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // it is in memory
			h(w, r, body)
		})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
		if err != nil {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
		s.mu.Lock()
		s.requests = append(s.requests, Request{name, r.Method, r.URL.RequestURI(), r.Header.Clone(), body})
		status := s.failing[name]
		s.mu.Unlock()
		if status != 0 {
			fail(w, status, name+" fails as the test asks for")
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// fail answers with an error as Fulcio and Rekor have it.
func fail(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"code": status, "message": message})
}

// answer answers with JSON.
func answer(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"message":"no JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// Fail makes a server answer every request with a status, until it is called with the status 0.
func (s *Sigstore) Fail(server string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing[server] = status
}

// FailFulcio is Fail for [Fulcio].
func (s *Sigstore) FailFulcio(status int) { s.Fail(Fulcio, status) }

// FailRekor is Fail for [Rekor].
func (s *Sigstore) FailRekor(status int) { s.Fail(Rekor, status) }

// FailTSA is Fail for [TSA].
func (s *Sigstore) FailTSA(status int) { s.Fail(TSA, status) }

// Requests returns all requests in their order.
func (s *Sigstore) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Entries returns how many entries the log has.
func (s *Sigstore) Entries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}

// now returns the time of the servers.
func (s *Sigstore) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}
