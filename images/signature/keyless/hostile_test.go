package keyless_test

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/signature/keyless"
	"github.com/operator-bindery/bindery/internal/testing/sigstoretest"
)

// hugeEntry is the body of a log entry with a key of so many bits, by which it would be verified.
func hugeEntry(t *testing.T, bits uint) []byte {
	t.Helper()
	n := new(big.Int).Lsh(big.NewInt(1), bits)
	der, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: n.Sub(n, big.NewInt(189)), E: 1<<31 - 1})
	if err != nil {
		t.Fatal(err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return fmt.Appendf(nil, `{"apiVersion":"0.0.1","kind":"hashedrekord","spec":{"data":{"hash":{"algorithm":"sha256","value":"%064d"}},`+
		`"signature":{"content":%q,"publicKey":{"content":%q}}}}`, 0, base64.StdEncoding.EncodeToString(make([]byte, bits/8)),
		base64.StdEncoding.EncodeToString(key))
}

// What comes with a signature is not verified with keys of any size before it is known whose they are.
func TestHugeProofs(t *testing.T) {
	s := sigstoretest.New(t)
	signer := signerOf(t, s, services(s, true, true))
	good, err := signer.Bundle(t.Context(), []byte(statement))
	if err != nil {
		t.Fatal(err)
	}
	annotations, err := signer.Annotations(t.Context(), []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	v := verifierOf(t, s.TrustedRoot())
	body := base64.StdEncoding.EncodeToString(hugeEntry(t, 1<<20)) // it would take minutes
	material := func(m map[string]any) map[string]any { return m["verificationMaterial"].(map[string]any) }
	for what, text := range map[string][]byte{
		"an entry": edited(t, good, func(m map[string]any) {
			material(m)["tlogEntries"].([]any)[0].(map[string]any)["canonicalizedBody"] = body
		}),
		"a timestamp": edited(t, good, func(m map[string]any) {
			stamps := material(m)["timestampVerificationData"].(map[string]any)["rfc3161Timestamps"].([]any)
			stamps[0].(map[string]any)["signedTimestamp"] = body
		}),
		"many entries": edited(t, good, func(m map[string]any) {
			entries := material(m)["tlogEntries"].([]any)
			for len(entries) < 9 {
				entries = append(entries, entries[0])
			}
			material(m)["tlogEntries"] = entries
		}),
	} {
		start := time.Now()
		if _, class, err := v.Bundle(text); class != signature.TooLarge || time.Since(start) > 5*time.Second {
			t.Errorf("%s: %s: %v, after %v", what, class, err, time.Since(start))
		}
	}
	annotations["dev.sigstore.cosign/bundle"] = `{"SignedEntryTimestamp":"AAAA","Payload":{"body":"` + body +
		`","integratedTime":1,"logIndex":1,"logID":"00"}}`
	start := time.Now()
	if _, class, err := v.Layer([]byte(`{}`), false, annotations); class != signature.TooLarge || time.Since(start) > 5*time.Second {
		t.Errorf("a layer: %s: %v, after %v", class, err, time.Since(start))
	}
}

// serverOf is a server that answers everything in one way.
func serverOf(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notes that the client has gone
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// No answer of a log makes the program end, and what no verifier can read is not taken for a signature.
func TestAnswersOfHostileLogs(t *testing.T) {
	s := sigstoretest.New(t)
	entry := func(etag, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", etag)
			w.Header().Set("Content-Type", "application/json")
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusCreated)
			}
			_, _ = io.WriteString(w, text)
		}
	}
	body, err := json.Marshal(base64.StdEncoding.EncodeToString(hugeEntry(t, 1<<18)))
	if err != nil {
		t.Fatal(err)
	}
	const proof = `"verification":{"signedEntryTimestamp":"AAAA","inclusionProof":{"checkpoint":"x","hashes":[],"logIndex":1,` +
		`"rootHash":"00","treeSize":1}}`
	for what, answer := range map[string]http.HandlerFunc{
		"nothing":           entry("a", ``),
		"null":              entry("a", `null`),
		"no entry":          entry("a", `{}`),
		"no name":           entry("", `{"a":{}}`),
		"an empty entry":    entry("a", `{"a":{}}`),
		"a null entry":      entry("a", `{"a":null}`),
		"no proof":          entry("a", `{"a":{"logID":"00","logIndex":1,"integratedTime":1,"body":"e30="}}`),
		"an empty proof":    entry("a", `{"a":{"logID":"00","logIndex":1,"integratedTime":1,"body":"e30=","verification":{"inclusionProof":{}}}}`),
		"a body of nothing": entry("a", `{"a":{"logID":"00","logIndex":1,"integratedTime":1,"body":"e30=",`+proof+`}}`),
		"a huge key":        entry("a", `{"a":{"logID":"00","logIndex":1,"integratedTime":1,"body":`+string(body)+`,`+proof+`}}`),
		"garbage":           entry("a", "\x00\xff"),
		"a conflict with nothing": func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.Header().Set("Location", "/api/v1/log/entries/a")
				w.WriteHeader(http.StatusConflict)
			}
			_, _ = io.WriteString(w, `{}`)
		},
	} {
		t.Run(what, func(t *testing.T) {
			url := serverOf(t, answer)
			with := keyless.Services{Authority: s.FulcioURL, Logs: []keyless.Log{{URL: url, Version: 1}}, SignedTimeLog: url}
			signer := signerOf(t, s, with)
			if text, err := signer.Bundle(t.Context(), []byte(statement)); err == nil {
				t.Errorf("signed: %s", text)
			}
			if text, err := signer.Annotations(t.Context(), []byte(`{}`)); err == nil {
				t.Errorf("signed: %s", text)
			}
			with.Logs[0].Version, with.SignedTimeLog, with.Timestamps = 2, "", []string{s.TSAURL}
			if text, err := signerOf(t, s, with).Bundle(t.Context(), []byte(statement)); err == nil {
				t.Errorf("signed: %s", text)
			}
		})
	}
}

// A token is in no message, even if the authority answers with it, and messages are short.
func TestAuthorityThatRepeatsTheToken(t *testing.T) {
	s := sigstoretest.New(t)
	with := services(s, true, true)
	with.Authority = serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, r.Header, strings.Repeat("x", 1<<19))
	})
	token := s.Token(name, issuer)
	signer, err := keyless.NewSigner(with, func(context.Context) (string, error) { return token, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = signer.Bundle(t.Context(), []byte(statement))
	if err == nil || strings.Contains(err.Error(), token[len(token)-20:]) || len(err.Error()) > 4<<10 {
		t.Errorf("%.5000v", err)
	}
}

// The message about a log that answers at length is short.
func TestLongRefusals(t *testing.T) {
	s := sigstoretest.New(t)
	url := serverOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<19))
	})
	for version := range uint32(2) {
		with := keyless.Services{Authority: s.FulcioURL, Logs: []keyless.Log{{URL: url, Version: version + 1}}, Timestamps: []string{s.TSAURL}}
		if _, err := signerOf(t, s, with).Bundle(t.Context(), []byte(statement)); err == nil || len(err.Error()) > 8<<10 {
			t.Errorf("version %d: %.9000v", version+1, err)
		}
	}
}

// The same statement has one signature, even if it is signed several times at once.
func TestSignedAtOnce(t *testing.T) {
	s := sigstoretest.New(t)
	signer := signerOf(t, s, services(s, true, true))
	texts := make([]string, 8)
	var all sync.WaitGroup
	for n := range texts {
		all.Go(func() {
			text, err := signer.Bundle(t.Context(), []byte(statement))
			if err != nil {
				t.Error(err)
			}
			texts[n] = string(text)
		})
	}
	all.Wait()
	if one := slices.Compact(texts); len(one) != 1 {
		t.Errorf("%d signatures", len(one))
	}
}

// A certificate for another key is none for this one, and a token follows no redirection.
func TestCertificateOfAnotherKey(t *testing.T) {
	s, other := sigstoretest.New(t), sigstoretest.New(t)
	signer := signerOf(t, other, services(other, true, true))
	if _, err := signer.Bundle(t.Context(), []byte(statement)); err != nil {
		t.Fatal(err)
	}
	annotations, err := signer.Annotations(t.Context(), []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	before := len(other.Requests())
	for says, answer := range map[string]http.HandlerFunc{
		"another key": func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]any{"signedCertificateEmbeddedSct": map[string]any{
				"chain": map[string]any{"certificates": []string{annotations[signature.CertificateAnnotation]}}}})
		},
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.FulcioURL, http.StatusTemporaryRedirect)
		},
	} {
		with := services(s, true, true)
		with.Authority = serverOf(t, answer)
		if _, err := signerOf(t, s, with).Bundle(t.Context(), []byte(statement)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, expected %q", err, says)
		}
	}
	if len(other.Requests()) > before {
		t.Error("the token was sent to another server")
	}
}

// What a certificate authority answers shows no part of the token that it got.
func TestTokenInAnswers(t *testing.T) {
	s := sigstoretest.New(t)
	var token string
	for what, part := range map[string]func([]string) string{
		"all": func(p []string) string { return strings.Join(p, ".") }, "header": func(p []string) string { return p[0] },
		"payload": func(p []string) string { return p[1] }, "signature": func(p []string) string { return p[2] },
		"a piece": func(p []string) string { return p[1][5:25] },
		"claims": func(p []string) string {
			claims, _ := base64.RawURLEncoding.DecodeString(p[1])
			return string(claims)
		},
	} {
		for how, answer := range map[string]func(w http.ResponseWriter, text string){
			"refused": func(w http.ResponseWriter, text string) { http.Error(w, "no: "+text, http.StatusForbidden) },
			"JSON":    func(w http.ResponseWriter, text string) { _, _ = io.WriteString(w, text) },
			"certificate": func(w http.ResponseWriter, text string) {
				_ = json.NewEncoder(w).Encode(map[string]any{"signedCertificateEmbeddedSct": map[string]any{
					"chain": map[string]any{"certificates": []string{text}}}})
			},
		} {
			with := services(s, true, true)
			with.Authority = serverOf(t, func(w http.ResponseWriter, r *http.Request) {
				token = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
				answer(w, part(strings.Split(token, ".")))
			})
			_, err := signerOf(t, s, with).Bundle(t.Context(), []byte(statement))
			parts := strings.Split(token, ".")
			if err == nil || len(parts) != 3 {
				t.Fatalf("%s, %s: %v, token %q", what, how, err, token)
			}
			for _, secret := range append(parts, part(parts), name) {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%s, %s: %v has %q", what, how, err, secret)
				}
			}
		}
	}
}

// A server that asks for patience without an end does not get it, and one that is slow can be interrupted.
func TestSlowServers(t *testing.T) {
	for what, answer := range map[string]http.HandlerFunc{
		"a Retry-After of years": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "999999999")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"a slow body": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, " "); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		},
		"no answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			url := serverOf(t, answer)
			s := sigstoretest.New(t)
			for service, with := range map[string]keyless.Services{
				"authority": {Authority: url, Timestamps: []string{s.TSAURL}},
				"log":       {Authority: s.FulcioURL, Logs: []keyless.Log{{URL: url, Version: 1}}},
				"tiles":     {Authority: s.FulcioURL, Logs: []keyless.Log{{URL: url, Version: 2}}, Timestamps: []string{s.TSAURL}},
				"timestamp": {Authority: s.FulcioURL, Timestamps: []string{url}},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				start := time.Now()
				_, err := signerOf(t, s, with).Bundle(ctx, []byte(statement))
				if err == nil || time.Since(start) > 5*time.Second {
					t.Errorf("%s: %v after %v", service, err, time.Since(start))
				}
				cancel()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err := keyless.Public{Cache: t.TempDir()}.At(url, []byte(`{}`)).TrustedRoot(ctx)
			if err == nil || time.Since(start) > 5*time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	}
}
