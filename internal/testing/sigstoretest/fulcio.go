package sigstoretest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
)

// claims are those of a token.
type claims struct {
	Issuer        string `json:"iss"`
	Subject       string `json:"sub"`
	Audience      string `json:"aud"`
	Expires       int64  `json:"exp"`
	Issued        int64  `json:"iat"`
	Email         string `json:"email,omitempty"`
	EmailVerified bool   `json:"email_verified,omitempty"`
}

// Token returns a token for an identity, a mail address or a URI, that expires in an hour. Fulcio here takes it whatever
// the issuer is, as its signature is not checked.
func (s *Sigstore) Token(identity, issuer string) string {
	return s.TokenUntil(identity, issuer, s.now().Add(time.Hour))
}

// TokenUntil is Token with the time when the token expires.
func (s *Sigstore) TokenUntil(identity, issuer string, expires time.Time) string {
	c := claims{Issuer: issuer, Subject: identity, Audience: "sigstore", Expires: expires.Unix(),
		Issued: expires.Add(-time.Hour).Unix()}
	if isMail(identity) {
		c.Email, c.EmailVerified = identity, true
	}
	body, err := json.Marshal(c)
	if err != nil {
		s.t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(body)
	mac := hmac.New(sha256.New, []byte("a key that nobody checks"))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// isMail tells addresses from URIs, which may have an @ too: that of a workflow ends in @refs/heads/main.
func isMail(identity string) bool {
	return strings.Contains(identity, "@") && !strings.Contains(identity, "://")
}

// parseToken returns the claims of a token that Fulcio takes.
func (s *Sigstore) parseToken(header string) (claims, error) {
	token, ok := strings.CutPrefix(header, "Bearer ")
	parts := strings.Split(token, ".")
	if !ok || len(parts) != 3 {
		return claims{}, errors.New("the bearer token is no JWT")
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return claims{}, errors.New("the claims of the token are no base64")
	}
	var c claims
	switch err := json.Unmarshal(body, &c); {
	case err != nil:
		return claims{}, errors.New("the claims of the token are no JSON")
	case c.Issuer == "" || c.Subject == "":
		return claims{}, errors.New("the token has no issuer or no subject")
	case c.Audience != "sigstore":
		return claims{}, fmt.Errorf("the token is for the audience %q", c.Audience)
	case c.Email != "" && !c.EmailVerified:
		return claims{}, errors.New("the mail address of the token is not verified")
	case !s.now().Before(time.Unix(c.Expires, 0)):
		return claims{}, errors.New("the token has expired")
	}
	return c, nil
}

// signingCert answers a request for a certificate.
func (s *Sigstore) signingCert(w http.ResponseWriter, r *http.Request, body []byte) {
	c, err := s.parseToken(r.Header.Get("Authorization"))
	if err != nil {
		fail(w, http.StatusBadRequest, "There was an error processing the identity token: "+err.Error())
		return
	}
	certificate, err := s.certificate(c, body)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	var texts []string
	for _, cert := range []*x509.Certificate{certificate, s.fulcio.intermediate, s.fulcio.root} {
		texts = append(texts, string(PEM(cert)))
	}
	answer(w, http.StatusOK, map[string]any{"signedCertificateEmbeddedSct": map[string]any{
		"chain": map[string]any{"certificates": texts}}})
}

// certificate makes the certificate that a request asks for, if it proves to have the key.
func (s *Sigstore) certificate(c claims, body []byte) (*x509.Certificate, error) {
	var asked struct {
		PublicKeyRequest struct {
			PublicKey         struct{ Algorithm, Content string }
			ProofOfPossession []byte
		}
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, fmt.Errorf("parsing the request: %w", err)
	}
	block, _ := pem.Decode([]byte(asked.PublicKeyRequest.PublicKey.Content))
	if block == nil {
		return nil, errors.New("the public key is no PEM")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parsing the public key: %w", err)
	}
	verifier, err := signature.LoadDefaultVerifier(key)
	if err != nil {
		return nil, fmt.Errorf("reading the public key: %w", err)
	}
	identity := c.Subject
	if c.Email != "" {
		identity = c.Email
	}
	if err := verifier.VerifySignature(bytes.NewReader(asked.PublicKeyRequest.ProofOfPossession),
		strings.NewReader(identity)); err != nil {
		return nil, fmt.Errorf("the proof that the key is the client's: %w", err)
	}
	begin := s.now
	if s.CertificateTime != nil {
		begin = s.CertificateTime
	}
	utf8, err := asn1.MarshalWithParams(c.Issuer, "utf8")
	if err != nil {
		return nil, err
	}
	issuer := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1}
	template := &x509.Certificate{
		NotBefore: begin(), NotAfter: begin().Add(10 * time.Minute), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{{Id: append(slices.Clone(issuer), 1), Value: []byte(c.Issuer)},
			{Id: append(slices.Clone(issuer), 8), Value: utf8}},
	}
	if c.Email != "" {
		template.EmailAddresses = []string{c.Email}
	} else {
		u, err := url.Parse(c.Subject)
		if err != nil || u.Scheme == "" {
			return nil, fmt.Errorf("the subject %q is neither a mail address nor a URI", c.Subject)
		}
		template.URIs = []*url.URL{u}
	}
	return certify(template, s.fulcio.intermediate, key, s.fulcio.key)
}

// PEM returns certificates as text.
func PEM(certificates ...*x509.Certificate) []byte {
	var text []byte
	for _, c := range certificates {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return text
}
