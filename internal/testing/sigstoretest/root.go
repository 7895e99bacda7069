package sigstoretest

import (
	"crypto"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"time"

	trustroot "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
)

// TrustedRoot returns the trusted_root.json of this instance: the authorities and the log. There is no log of
// certificates, so that none needs proof of being in one.
func (s *Sigstore) TrustedRoot() []byte {
	from, to := s.fulcio.root.NotBefore, s.fulcio.root.NotAfter
	logs := map[string]*root.TransparencyLog{hex.EncodeToString(s.logID()): {
		BaseURL: s.RekorURL, ID: s.logID(), ValidityPeriodStart: from, ValidityPeriodEnd: to,
		HashFunc: crypto.SHA256, PublicKey: s.rekorKey.Public(), SignatureHashFunc: crypto.SHA256}}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01,
		[]root.CertificateAuthority{&root.FulcioCertificateAuthority{Root: s.fulcio.root, URI: s.FulcioURL,
			Intermediates:       []*x509.Certificate{s.fulcio.intermediate},
			ValidityPeriodStart: from, ValidityPeriodEnd: to}}, nil,
		[]root.TimestampingAuthority{&root.SigstoreTimestampingAuthority{Root: s.tsa.root, URI: s.TSAURL,
			Intermediates: []*x509.Certificate{s.tsa.intermediate}, Leaf: s.tsaLeaf,
			ValidityPeriodStart: from, ValidityPeriodEnd: to}}, logs)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.json(trusted)
}

// SigningConfig returns the signing_config.v0.2.json of this instance.
func (s *Sigstore) SigningConfig() []byte {
	service := func(url string) []root.Service {
		return []root.Service{{URL: url, MajorAPIVersion: 1, ValidityPeriodStart: time.Now().Add(-authorityLife),
			Operator: "sigstore.test"}}
	}
	anyOf := root.ServiceConfiguration{Selector: trustroot.ServiceSelector_ANY}
	config, err := root.NewSigningConfig(root.SigningConfigMediaType02, service(s.FulcioURL), nil,
		service(s.RekorURL), anyOf, service(s.TSAURL), anyOf)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.json(config)
}

// FulcioCAPEM returns the certificates of the authority, for caPath of fulcio in policy.json. As signatures need not have
// the intermediate certificate with them, it is one of these; [Sigstore.FulcioRootPEM] is without.
func (s *Sigstore) FulcioCAPEM() []byte { return PEM(s.fulcio.intermediate, s.fulcio.root) }

// FulcioRootPEM returns the root certificate of the authority alone, for which a signature must have the intermediate one.
func (s *Sigstore) FulcioRootPEM() []byte { return PEM(s.fulcio.root) }

func (s *Sigstore) json(v json.Marshaler) []byte {
	text, err := v.MarshalJSON()
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}
