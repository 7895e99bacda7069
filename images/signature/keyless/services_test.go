package keyless_test

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/operator-bindery/bindery/images/signature/keyless"
	"github.com/operator-bindery/bindery/internal/testing/sigstoretest"
)

// tufRepository serves some targets, all signed with one key, until a time. It returns its URL, its first root, and how
// many requests there were.
func tufRepository(t *testing.T, until time.Time, targets map[string][]byte) (string, []byte, *atomic.Int64) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	public, private, err := ed25519.GenerateKey(nil)
	check(err)
	signer, err := signature.LoadSigner(private, crypto.Hash(0))
	check(err)
	key, err := metadata.KeyFromPublicKey(public)
	check(err)
	files := map[string][]byte{}
	root, target := metadata.Root(until), metadata.Targets(until)
	for _, role := range []string{metadata.ROOT, metadata.TARGETS, metadata.SNAPSHOT, metadata.TIMESTAMP} {
		check(root.Signed.AddKey(key, role))
	}
	for name, text := range targets {
		info, err := metadata.TargetFile().FromBytes(name, text, "sha256")
		check(err)
		target.Signed.Targets[name] = info
		files["/targets/"+digest.FromBytes(text).Encoded()+"."+name] = text
	}
	snapshot, timestamp := metadata.Snapshot(until), metadata.Timestamp(until)
	for name, sign := range map[string]func() ([]byte, error){
		"/1.root.json":     func() ([]byte, error) { _, err := root.Sign(signer); check(err); return root.ToBytes(false) },
		"/1.targets.json":  func() ([]byte, error) { _, err := target.Sign(signer); check(err); return target.ToBytes(false) },
		"/1.snapshot.json": func() ([]byte, error) { _, err := snapshot.Sign(signer); check(err); return snapshot.ToBytes(false) },
		"/timestamp.json":  func() ([]byte, error) { _, err := timestamp.Sign(signer); check(err); return timestamp.ToBytes(false) },
	} {
		text, err := sign()
		check(err)
		files[name] = text
	}
	requests := &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		text, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(text) // a client that goes away is no matter
	}))
	t.Cleanup(server.Close)
	return server.URL, files["/1.root.json"], requests
}

// The trusted root and the services of an instance are fetched once a day, and offline they come from the cache alone.
func TestPublicInstance(t *testing.T) {
	s := sigstoretest.New(t)
	url, root, requests := tufRepository(t, time.Now().Add(time.Hour), map[string][]byte{
		"trusted_root.json": s.TrustedRoot(), "signing_config.v0.2.json": s.SigningConfig()})
	in := keyless.Public{Cache: t.TempDir()}.At(url, root)
	offline := in
	offline.Offline = true
	if _, err := offline.TrustedRoot(t.Context()); !errors.Is(err, keyless.ErrNotCached) {
		t.Errorf("offline, with an empty cache: %v", err)
	}
	if requests.Load() != 0 {
		t.Errorf("%d requests offline", requests.Load())
	}
	text, err := in.TrustedRoot(t.Context())
	if err != nil || string(text) != string(s.TrustedRoot()) {
		t.Fatalf("%s, %v", text, err)
	}
	services, err := in.Services(t.Context())
	if err != nil || services.Authority != s.FulcioURL || services.SignedTimeLog != s.RekorURL {
		t.Fatalf("%+v, %v", services, err)
	}
	before := requests.Load()
	for _, again := range []keyless.Public{in, offline} {
		if text, err := again.TrustedRoot(t.Context()); err != nil || string(text) != string(s.TrustedRoot()) {
			t.Errorf("offline %v: %v", again.Offline, err)
		}
	}
	if requests.Load() != before {
		t.Errorf("%d requests for what is cached", requests.Load()-before)
	}
	none := keyless.Public{}.At(url, root)
	if text, err := none.TrustedRoot(t.Context()); err != nil || string(text) != string(s.TrustedRoot()) {
		t.Errorf("without a cache: %v", err)
	}
}

// What cannot be trusted is an error.
func TestPublicInstanceRefused(t *testing.T) {
	targets := map[string][]byte{"trusted_root.json": []byte("{}")}
	old, oldRoot, _ := tufRepository(t, time.Now().Add(-time.Hour), targets)
	url, _, _ := tufRepository(t, time.Now().Add(time.Hour), targets)
	_, other, _ := tufRepository(t, time.Now().Add(time.Hour), targets)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		what string
		ctx  context.Context
		in   keyless.Public
		says string
	}{
		{"expired", t.Context(), keyless.Public{}.At(old, oldRoot), "expired"},
		{"another root of trust", t.Context(), keyless.Public{}.At(url, other), "not enough signatures"},
		{"cancelled", ended, keyless.Public{}.At(url, other), "cancel"},
	} {
		t.Run(c.what, func(t *testing.T) {
			c.in.Cache = t.TempDir()
			text, err := c.in.TrustedRoot(c.ctx)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
}

// Services are refused if nobody could verify what they sign, or if they would get a token in clear.
func TestServices(t *testing.T) {
	s := sigstoretest.New(t)
	config := s.SigningConfig()
	with := func(edit func(map[string]any)) []byte { return edited(t, config, edit) }
	for _, c := range []struct {
		what string
		text []byte
		says string
	}{
		{"good", config, ""},
		{"no object", []byte("[]"), "not a signing configuration"},
		{"another version", with(func(m map[string]any) { m["mediaType"] = "application/x" }), "media type"},
		{"no authority", with(func(m map[string]any) { delete(m, "caUrls") }), "caUrls"},
		{"no choice of logs", with(func(m map[string]any) { delete(m, "rekorTlogConfig") }), "rekorTlogConfig is missing"},
		{"no choice of timestamps", with(func(m map[string]any) { delete(m, "tsaConfig") }), "tsaConfig is missing"},
		{"no log and no timestamp", with(func(m map[string]any) {
			delete(m, "rekorTlogUrls")
			delete(m, "tsaUrls")
		}), "nothing would prove"},
		{"a log of version 2 alone", with(func(m map[string]any) {
			m["rekorTlogUrls"].([]any)[0].(map[string]any)["majorApiVersion"] = 2
			delete(m, "tsaUrls")
		}), "does not prove when"},
		{"in clear", with(func(m map[string]any) {
			m["caUrls"].([]any)[0].(map[string]any)["url"] = "http://fulcio.example.com"
		}), "not encrypted"},
		{"a password", with(func(m map[string]any) {
			m["caUrls"].([]any)[0].(map[string]any)["url"] = "https://user:secret@fulcio.example.com"
		}), "expected https://HOST"},
	} {
		t.Run(c.what, func(t *testing.T) {
			got, err := keyless.ParseServices(c.text)
			if c.says == "" {
				if err != nil || got.Authority != s.FulcioURL || fmt.Sprint(got.Timestamps) != fmt.Sprint([]string{s.TSAURL}) {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v, expected %q", err, c.says)
			}
		})
	}
}

// A service that fails is named, a cancelled signature ends, and no token is in a message.
func TestServicesFail(t *testing.T) {
	for _, server := range []string{sigstoretest.Fulcio, sigstoretest.Rekor, sigstoretest.TSA} {
		t.Run(server, func(t *testing.T) {
			s := sigstoretest.New(t)
			s.Fail(server, http.StatusForbidden)
			_, err := signerOf(t, s, services(s, true, true)).Bundle(t.Context(), []byte(statement))
			if err == nil || !strings.Contains(err.Error(), "403") || strings.Contains(err.Error(), "eyJ") {
				t.Errorf("%v", err)
			}
			s.Fail(server, http.StatusServiceUnavailable)
			ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("it is over"))
			defer cancel()
			start := time.Now()
			_, err = signerOf(t, s, services(s, true, true)).Bundle(ctx, []byte(statement))
			if err == nil || !strings.Contains(err.Error(), "it is over") || time.Since(start) > 10*time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	}
	s := sigstoretest.New(t)
	elsewhere := httptest.NewServer(http.RedirectHandler(s.FulcioURL+"/api/v2/signingCert", http.StatusTemporaryRedirect))
	defer elsewhere.Close()
	with := services(s, true, true)
	with.Authority = elsewhere.URL
	if _, err := signerOf(t, s, with).Bundle(t.Context(), []byte(statement)); err == nil ||
		!strings.Contains(err.Error(), "redirects") || len(s.Requests()) != 0 {
		t.Errorf("%v, %d requests", err, len(s.Requests()))
	}
}
