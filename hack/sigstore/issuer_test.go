package sigstore

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

const (
	person     = "release@example.com"
	workflow   = "acme/catalogs/.github/workflows/release.yml@refs/heads/main"
	job        = "https://github.com/" + workflow
	jobSecret  = "secret-of-the-job"
	deviceCode = "secret-of-the-device"
	userCode   = "ABCD-EFGH"
)

// issuer is an OpenID issuer. It gives tokens to people at its own URL, and to jobs as GitHub Actions does at jobs().
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey

	lock    sync.Mutex
	minted  []string
	devices map[string]string // the PKCE challenge by device
	polls   int
}

func newIssuer() (*issuer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	i := &issuer{key: key, devices: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /keys", i.keys)
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery(""))
	mux.HandleFunc("GET /job/.well-known/openid-configuration", i.discovery("/job"))
	mux.HandleFunc("GET /job/token", i.jobToken)
	mux.HandleFunc("POST /device/code", i.device)
	mux.HandleFunc("POST /token", i.deviceToken)
	i.Server = httptest.NewServer(mux)
	return i, nil
}

// jobs is the issuer of tokens of jobs.
func (i *issuer) jobs() string { return i.URL + "/job" }

func (i *issuer) discovery(path string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{
			"issuer": i.URL + path, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/auth",
			"token_endpoint": i.URL + "/token", "device_authorization_endpoint": i.URL + "/device/code",
			"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
			"id_token_signing_alg_values_supported": []string{"RS256"}, "code_challenge_methods_supported": []string{"S256"},
			"grant_types_supported": []string{"urn:ietf:params:oauth:grant-type:device_code"}, "scopes_supported": []string{"openid", "email"},
		})
	}
}

func (i *issuer) keys(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1",
		"n": encode(i.key.N.Bytes()), "e": encode(big.NewInt(int64(i.key.E)).Bytes())}}})
}

// mint returns a token of ten minutes, for Sigstore unless the claims say otherwise.
func (i *issuer) mint(claims map[string]any) string {
	now := time.Now()
	all := map[string]any{"iss": i.URL, "aud": "sigstore", "iat": now.Unix(), "nbf": now.Add(-time.Minute).Unix(),
		"exp": now.Add(10 * time.Minute).Unix(), "jti": rand.Text()}
	maps.Copy(all, claims)
	signed := encode([]byte(`{"alg":"RS256","kid":"1","typ":"JWT"}`)) + "." + encode(must(json.Marshal(all)))
	digest := sha256.Sum256([]byte(signed))
	token := signed + "." + encode(must(rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, digest[:])))
	i.lock.Lock()
	defer i.lock.Unlock()
	i.minted = append(i.minted, token)
	return token
}

// person returns a token of a person.
func (i *issuer) person(email string) string {
	return i.mint(map[string]any{"sub": "subject of " + email, "email": email, "email_verified": true})
}

// job returns a token with the claims that GitHub gives to jobs.
func (i *issuer) job() string {
	return i.mint(map[string]any{"iss": i.jobs(), "sub": "repo:acme/catalogs:ref:refs/heads/main",
		"job_workflow_ref": workflow, "workflow_ref": workflow, "workflow": "release", "ref": "refs/heads/main",
		"sha": strings.Repeat("a1", 20), "job_workflow_sha": strings.Repeat("a1", 20), "workflow_sha": strings.Repeat("a1", 20),
		"event_name": "push", "repository": "acme/catalogs", "repository_id": "1", "repository_owner": "acme",
		"repository_owner_id": "2", "repository_visibility": "public", "runner_environment": "github-hosted",
		"run_id": "3", "run_attempt": "1"})
}

// jobToken is what $ACTIONS_ID_TOKEN_REQUEST_URL names in a job.
func (i *issuer) jobToken(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get("Authorization") != "Bearer "+jobSecret && r.Header.Get("Authorization") != "bearer "+jobSecret:
		answer(w, http.StatusUnauthorized, map[string]any{"message": "this is not the token of the job"})
	case r.FormValue("audience") != "sigstore" || r.FormValue("api-version") != "2.0":
		answer(w, http.StatusBadRequest, map[string]any{"message": "not for Sigstore: " + r.URL.RawQuery})
	default:
		answer(w, http.StatusOK, map[string]any{"count": 1, "value": i.job()})
	}
}

// jobEnvironment is what a job with "id-token: write" has.
func (i *issuer) jobEnvironment() []string {
	return []string{"GITHUB_ACTIONS=true", "ACTIONS_ID_TOKEN_REQUEST_URL=" + i.jobs() + "/token?api-version=2.0",
		"ACTIONS_ID_TOKEN_REQUEST_TOKEN=" + jobSecret}
}

func (i *issuer) device(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("client_id") != "sigstore" || !strings.Contains(r.FormValue("scope"), "openid") {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_request"})
		return
	}
	code := deviceCode + "-" + rand.Text()
	i.lock.Lock()
	defer i.lock.Unlock()
	i.devices[code] = r.FormValue("code_challenge")
	answer(w, http.StatusOK, map[string]any{"device_code": code, "user_code": userCode, "verification_uri": i.URL + "/device",
		"verification_uri_complete": i.URL + "/device?code=" + userCode, "interval": 1, "expires_in": 300})
}

// deviceToken answers that the person has not typed the code the first time a device asks, then with the token.
func (i *issuer) deviceToken(w http.ResponseWriter, r *http.Request) {
	i.lock.Lock()
	challenge, known := i.devices[r.FormValue("device_code")]
	i.polls++
	first := i.polls%2 == 1
	i.lock.Unlock()
	digest := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	switch {
	case !known || r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:device_code" || r.FormValue("client_id") != "sigstore":
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_request"})
	case challenge != "" && challenge != encode(digest[:]):
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
	case first:
		answer(w, http.StatusBadRequest, map[string]any{"error": "authorization_pending"})
	default:
		token := i.person(person)
		answer(w, http.StatusOK, map[string]any{"id_token": token, "access_token": deviceCode, "token_type": "Bearer", "expires_in": 300})
	}
}

// secrets are pieces of what must not be seen by anyone but Fulcio and the issuer.
func (i *issuer) secrets() []string {
	i.lock.Lock()
	defer i.lock.Unlock()
	out := []string{jobSecret, deviceCode}
	for _, token := range i.minted {
		out = append(out, strings.Split(token, ".")[1:]...)
	}
	return out
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(must(json.Marshal(v)))
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// must is for what cannot fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
