package keyless

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-openapi/runtime"
	httptransport "github.com/go-openapi/runtime/client"
	"github.com/go-openapi/strfmt"
	"github.com/opencontainers/go-digest"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	rekor "github.com/sigstore/rekor/pkg/generated/client"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/webclient"
)

// Signer signs with keys that live in memory, each for as long as its certificate is valid. It is safe for concurrent
// use. It implements [signature.Certified]: the same payload has the same signature as long as the Signer lives.
type Signer struct {
	services Services
	root     *Root
	token    func(context.Context) (string, error)

	mu      sync.Mutex
	current *certified
	made    map[digest.Digest]made // by what was signed
}

var _ signature.Certified = (*Signer)(nil)

// NewSigner returns a signer. It asks no service before the first signature. token returns a token that is valid now,
// which is sent to the certificate authority alone. root, unless nil, is what those trust who will verify. Services whose
// signatures no one could verify are an error.
func NewSigner(s Services, token func(context.Context) (string, error), root *Root) (*Signer, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	key, err := sign.NewEphemeralKeypair(nil)
	return &Signer{services: s, root: root, token: token, current: &certified{Keypair: key}, made: map[digest.Digest]made{}}, err
}

// certified is a key with its certificate, which it does not have before it is needed.
type certified struct {
	sign.Keypair
	leaf  *x509.Certificate
	who   signature.CertificateIdentity
	chain []byte // the certificates of its authorities in PEM
}

// made is a signature with what proves when it was made.
type made struct {
	*protobundle.Bundle
	by *certified
}

// GetCertificate implements [sign.CertificateProvider].
func (c *certified) GetCertificate(context.Context, sign.Keypair, *sign.CertificateProviderOptions) ([]byte, error) {
	return c.leaf.Raw, nil
}

// Public implements [signature.Signer], for the present certificate.
func (s *Signer) Public() signature.PublicKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, _ := signature.NewPublicKey(s.current.GetPublicKey()) // the library makes a key of a type that is taken
	return key
}

// Sign implements [signature.Signer]. The signature is without a certificate: Bundle and Annotations make those that
// can be verified later.
func (s *Signer) Sign(ctx context.Context, message []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sig, _, err := s.current.SignData(ctx, message)
	return sig, err
}

// Identity implements [signature.Certified].
func (s *Signer) Identity() signature.CertificateIdentity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.who
}

// identityOf reads the identity in a certificate of Fulcio.
func identityOf(leaf *x509.Certificate) (signature.CertificateIdentity, error) {
	s, err := certificate.SummarizeCertificate(leaf)
	if err != nil {
		return signature.CertificateIdentity{}, fmt.Errorf("%w: certificate: %v", fault.ErrInvalid, err)
	}
	switch {
	case len(leaf.URIs)+len(leaf.EmailAddresses)+len(leaf.DNSNames)+len(leaf.IPAddresses) > 1:
		// Of which the library takes one, and others another one.
		return signature.CertificateIdentity{}, fmt.Errorf("%w: certificate: it has several names", fault.ErrInvalid)
	case s.Issuer == "":
		return signature.CertificateIdentity{}, fmt.Errorf("%w: certificate: it names no issuer that vouches for the name", fault.ErrInvalid)
	}
	return signature.CertificateIdentity{Name: s.SubjectAlternativeName, Issuer: s.Issuer}, nil
}

// margin is how long a certificate must be valid to begin a signature with it.
const margin = time.Minute

// certify returns the present key and its certificate, or new ones if that ends soon.
func (s *Signer) certify(ctx context.Context) (*certified, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if leaf := s.current.leaf; leaf != nil {
		if time.Until(leaf.NotAfter) > margin {
			return s.current, nil
		}
		key, err := sign.NewEphemeralKeypair(nil)
		if err != nil {
			return nil, err
		}
		s.current = &certified{Keypair: key}
	}
	token, err := s.token(ctx)
	if err != nil {
		return nil, err
	}
	var answer []byte
	to := newTransport(ctx)
	to.Answer = func(body []byte) { answer = body }
	der, err := sign.NewFulcio(&sign.FulcioOptions{BaseURL: s.services.Authority, Transport: to}).GetCertificate(ctx, s.current,
		&sign.CertificateProviderOptions{IDToken: token})
	secret := redact.NewToken(token)
	if err != nil {
		return nil, &ServiceError{"fulcio-url", s.services.Authority, secret.Error(err)}
	}
	by := certified{Keypair: s.current.Keypair, chain: chainOf(answer)}
	if by.leaf, err = x509.ParseCertificate(der); err == nil {
		by.who, err = identityOf(by.leaf)
	}
	if key, ok := by.GetPublicKey().(*ecdsa.PublicKey); err == nil && (!ok || !key.Equal(by.leaf.PublicKey)) {
		err = errors.New("it has another key than the one that was sent")
	}
	if err == nil && secret.In(by.who.Name+" "+by.who.Issuer) {
		err = errors.New("the identity in it has a part of the token")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: a certificate of %s: %s", fault.ErrInvalid, s.services.Authority, secret.Text(err.Error()))
	}
	s.current = &by
	return s.current, nil
}

// chainOf returns the certificates of the authorities in an answer of Fulcio, which the library leaves out; none if they
// cannot be read, as they only help verifiers that do not have them.
func chainOf(answer []byte) []byte {
	var a struct {
		SignedCertificateEmbeddedSct, SignedCertificateDetachedSct struct {
			Chain struct{ Certificates []string }
		}
	}
	_ = json.Unmarshal(answer, &a) // the library has read it
	texts := append(a.SignedCertificateEmbeddedSct.Chain.Certificates, a.SignedCertificateDetachedSct.Chain.Certificates...)
	authorities := strings.Join(texts[min(1, len(texts)):], "\n")
	chain, err := cryptoutils.UnmarshalCertificatesFromPEM([]byte(authorities))
	if err != nil {
		return nil
	}
	text, _ := cryptoutils.MarshalCertificatesToPEM(chain) // they were in PEM
	return text
}

// newTransport sends requests to the services, whose answers have at most 1 MiB.
func newTransport(ctx context.Context) *webclient.Service {
	return &webclient.Service{Context: ctx, Most: 1 << 20}
}

// sign signs some content, has it recorded in the logs and timestamped; once for each content.
func (s *Signer) sign(ctx context.Context, content sign.Content, logs []Log) (made, error) {
	sum := digest.FromBytes(content.PreAuthEncoding())
	s.mu.Lock()
	done, ok := s.made[sum]
	s.mu.Unlock()
	if ok {
		return done, nil
	}
	by, err := s.certify(ctx)
	if err != nil {
		return made{}, err
	}
	o := sign.BundleOptions{CertificateProvider: by, Context: ctx}
	for _, l := range logs {
		client, err := logClient(ctx, l)
		if err != nil {
			return made{}, err
		}
		o.TransparencyLogs = append(o.TransparencyLogs, client)
	}
	for _, url := range s.services.Timestamps {
		to := newTransport(ctx)
		to.Most = maxProof
		o.TimestampAuthorities = append(o.TimestampAuthorities, sign.NewTimestampAuthority(
			&sign.TimestampAuthorityOptions{URL: url, Transport: to}))
	}
	b, err := sign.Bundle(content, by, o)
	if err == nil {
		_, err = newBundle(b) // so that what no verifier reads is not taken for signed
	}
	switch {
	case ctx.Err() != nil:
		return made{}, context.Cause(ctx)
	case err != nil && len(err.Error()) > 2*webclient.MaxRefusal: // clients of logs of version 2 repeat the whole answer
		return made{}, fmt.Errorf("signing: %s…", err.Error()[:2*webclient.MaxRefusal])
	case err != nil && !errors.As(err, new(*ServiceError)) && len(s.services.Timestamps) > 0:
		return made{}, &ServiceError{"tsa-url", strings.Join(s.services.Timestamps, ", "), err}
	case err != nil:
		return made{}, fmt.Errorf("signing: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if done, ok := s.made[sum]; ok {
		return done, nil // it was signed twice at once, and one of both is given to all
	}
	s.made[sum] = made{b, by}
	return s.made[sum], nil
}

// logClient returns a client of a log. One of version 2 takes no transport of ours; it gets no token.
func logClient(ctx context.Context, l Log) (sign.Transparency, error) {
	o := &sign.RekorOptions{BaseURL: l.URL, Version: l.Version}
	if l.Version == 1 {
		u, err := url.Parse(l.URL)
		if err != nil {
			return nil, err
		}
		to := httptransport.NewWithClient(u.Host, u.Path, []string{u.Scheme}, newTransport(ctx).Client())
		to.Debug = false // which $DEBUG sets
		to.Consumers[runtime.JSONMime], to.Producers[runtime.JSONMime] = runtime.JSONConsumer(), runtime.JSONProducer()
		o.Client = checkedLog{rekor.New(to, strfmt.Default).Entries}
	}
	return namedLog{sign.NewRekor(o), l.URL}, nil
}

// namedLog names a log in its errors.
type namedLog struct {
	sign.Transparency
	url string
}

// GetTransparencyLogEntry implements [sign.Transparency].
func (l namedLog) GetTransparencyLogEntry(ctx context.Context, keyOrCertificate []byte, b *protobundle.Bundle) error {
	if err := l.Transparency.GetTransparencyLogEntry(ctx, keyOrCertificate, b); err != nil {
		return &ServiceError{"rekor-url", l.url, err}
	}
	return nil
}

// Bundle implements [signature.Certified].
func (s *Signer) Bundle(ctx context.Context, statement []byte) ([]byte, error) {
	b, err := s.sign(ctx, &sign.DSSEData{Data: statement, PayloadType: bundle.IntotoMediaType}, s.services.Logs)
	if err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(b.Bundle)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer // the library puts blanks at random
	err = json.Compact(&compact, text)
	return compact.Bytes(), err
}

// Annotations implements [signature.Certified].
func (s *Signer) Annotations(ctx context.Context, payload []byte) (map[string]string, error) {
	if s.services.SignedTimeLog == "" {
		return nil, ErrNoSignedTime
	}
	b, err := s.sign(ctx, &sign.PlainData{Data: payload}, []Log{{s.services.SignedTimeLog, 1}})
	if err != nil {
		return nil, err
	}
	return encodeLayer(b.Bundle, b.by.chain)
}
