package identity

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

// issuer is a server with the device flow.
type issuer struct {
	*httptest.Server
	configuration map[string]any // in place of what it would answer
	code          map[string]any
	answers       []any // to those who ask for the token: an error's name, a status or members; the last one again

	mu        sync.Mutex
	challenge string
	asked     int
	faults    []string
}

func newIssuer(t *testing.T) *issuer {
	s := &issuer{configuration: map[string]any{}, code: map[string]any{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /auth/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		s.answer(w, 200, map[string]any{"issuer": s.URL + "/auth", "token_endpoint": s.URL + "/token",
			"device_authorization_endpoint": s.URL + "/device"}, s.configuration)
	})
	mux.HandleFunc("POST /device", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.challenge = r.FormValue("code_challenge")
		s.check(r.FormValue("client_id") == "client" && r.FormValue("scope") == "openid email" &&
			r.FormValue("code_challenge_method") == "S256", "the request for a code")
		s.answer(w, 200, map[string]any{"device_code": "device-secret", "user_code": "ABCD-EFGH",
			"verification_uri": "https://login.example.com/device", "expires_in": 300, "interval": 1}, s.code)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.check(r.FormValue("device_code") == "device-secret" && r.FormValue("client_id") == "client" &&
			oauth2.S256ChallengeFromVerifier(r.FormValue("code_verifier")) == s.challenge, "the request for the token")
		a := s.answers[min(s.asked, len(s.answers)-1)]
		s.asked++
		switch a := a.(type) {
		case string:
			s.answer(w, 400, map[string]any{"error": a, "error_description": "of device-secret"}, nil)
		case int:
			w.Header().Set("Location", "https://elsewhere.example.com")
			s.answer(w, a, map[string]any{"echo": "device-secret"}, nil)
		case map[string]any:
			s.answer(w, 200, map[string]any{"access_token": "access-secret", "token_type": "bearer"}, a)
		}
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *issuer) check(ok bool, what string) {
	if !ok {
		s.faults = append(s.faults, what)
	}
}

func (s *issuer) answer(w http.ResponseWriter, status int, members, others map[string]any) {
	for name, value := range others {
		members[name] = value
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(members)
}

// options are those of a user at a terminal; the lines that they see are kept.
func (s *issuer) options(told *[]string) Options {
	return Options{Issuer: s.URL + "/auth", ClientID: "client", Terminal: true, pause: time.Nanosecond,
		Tell: func(text string) { *told = append(*told, text) }}
}

// Somebody logs in while the program waits, and the token is used for as long as it is valid.
func TestDevice(t *testing.T) {
	t.Parallel()
	token := newTokens(t).of("jane", time.Hour)
	s := newIssuer(t)
	s.answers = []any{"authorization_pending", map[string]any{"id_token": token}}
	var told []string
	found, err := s.options(&told).device()
	if err != nil {
		t.Fatal(err)
	}
	if len(told) != 0 {
		t.Error("a login is asked for before a token is")
	}
	for range 2 {
		if got, err := found.Token(t.Context()); err != nil || got != token {
			t.Error(got, err)
		}
	}
	if len(told) != 1 || told[0] != "to sign, log in at https://login.example.com/device with the code ABCD-EFGH" {
		t.Errorf("%q", told)
	}
	if s.asked != 2 || len(s.faults) != 0 {
		t.Error(s.asked, s.faults)
	}
}

// What an issuer answers is not trusted, and not shown.
func TestDeviceRefused(t *testing.T) {
	t.Parallel()
	token := newTokens(t).of("jane", -time.Hour)
	for _, c := range []struct {
		rule                string
		configuration, code map[string]any
		answer              any
		message             string
	}{
		{rule: "denied", answer: "access_denied", message: "it refuses: access_denied"},
		{rule: "failing", answer: 502, message: "it answers 502 Bad Gateway"},
		{rule: "sent elsewhere", answer: 307, message: "redirects to another place"},
		{rule: "refused without a reason", answer: 401, message: "it answers 401 Unauthorized"},
		{rule: "no identity", answer: map[string]any{}, message: "its answer has no identity token"},
		{rule: "expired", answer: map[string]any{"id_token": token}, message: "expired at"},
		{rule: "nobody logs in", code: map[string]any{"expires_in": 1, "interval": 2}, answer: "authorization_pending",
			message: "nobody has logged in"},
		{rule: "no code", code: map[string]any{"user_code": ""}, message: "its answer has no code"},
		{rule: "a bad interval", code: map[string]any{"interval": -1}, message: "or an interval beyond a minute"},
		{rule: "another issuer", configuration: map[string]any{"issuer": "https://other.example.com"},
			message: `it is the issuer "https://other.example.com"`},
		{rule: "no device flow", configuration: map[string]any{"device_authorization_endpoint": nil},
			message: "it offers no login by a code"},
		{rule: "in the clear", configuration: map[string]any{"device_authorization_endpoint": "http://other.example.com/"},
			message: "is not encrypted"},
		{rule: "too long", configuration: map[string]any{"more": strings.Repeat("a", 64<<10)}, message: "answers with more than"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := newIssuer(t)
			s.configuration, s.code, s.answers = c.configuration, c.code, []any{c.answer}
			var told []string
			found, err := s.options(&told).device()
			if err != nil {
				t.Fatal(err)
			}
			_, err = found.Token(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.message) {
				t.Fatal(err)
			}
			noSecret(t, err, token, "device-secret", "access-secret")
		})
	}
	for _, bad := range []string{"http://issuer.example.com", "issuer.example.com", "https://issuer example.com"} {
		if _, err := (Options{Issuer: bad}).device(); err == nil || !strings.Contains(err.Error(), "--oidc-issuer") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// A user who has begun to log in can cancel.
func TestDeviceCanceled(t *testing.T) {
	t.Parallel()
	s := newIssuer(t)
	s.code = map[string]any{"interval": 60}
	ctx, cancel := context.WithCancel(t.Context())
	o := s.options(new([]string))
	o.Tell = func(string) { cancel() }
	found, err := o.device()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := found.Token(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
