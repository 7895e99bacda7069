package sigstore

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"math/big"
	"path/filepath"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/sign"
	"google.golang.org/protobuf/encoding/protojson"
)

// ca is a certificate authority whose key the tests have: it gives certificates that Fulcio would not.
type ca struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	file        string
}

func newCA(t *testing.T) *ca {
	t.Helper()
	c := &ca{key: must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), file: filepath.Join(t.TempDir(), "ca.pem")}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"test"}}, IsCA: true,
		NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: time.Now().AddDate(1, 0, 0), BasicConstraintsValid: true, MaxPathLen: 1,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
	der := must(x509.CreateCertificate(rand.Reader, template, template, c.key.Public(), c.key))
	c.certificate = must(x509.ParseCertificate(der))
	if err := writePEM(c.file, "CERTIFICATE", der); err != nil {
		t.Fatal(err)
	}
	return c
}

// root writes a trusted root that has this authority beside the public instance.
func (c *ca) root(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trusted_root.json")
	if err := makeRoot(file, public.ofFulcio(), "--fulcio=url=https://ca.example.com,certificate-chain="+c.file, public.ofRekor(), ofAuthority()); err != nil {
		t.Fatal(err)
	}
	return file
}

// sign signs a statement as the person, with a certificate that is valid for some minutes from a time on; the log and the
// timestamp authority are asked now.
func (c *ca) sign(t *testing.T, statement []byte, from time.Time) (out bundle) {
	t.Helper()
	keys := must(sign.NewEphemeralKeypair(nil))
	signed, err := sign.Bundle(&sign.DSSEData{Data: statement, PayloadType: "application/vnd.in-toto+json"}, keys, sign.BundleOptions{
		Context: t.Context(), CertificateProvider: certificate{c, from}, CertificateProviderOptions: &sign.CertificateProviderOptions{},
		TimestampAuthorities: []*sign.TimestampAuthority{sign.NewTimestampAuthority(&sign.TimestampAuthorityOptions{URL: authority.path()})},
		TransparencyLogs:     []sign.Transparency{sign.NewRekor(&sign.RekorOptions{BaseURL: public.rekor.URL, Version: 2})}})
	if err != nil {
		t.Fatal(err)
	}
	must(0, json.Unmarshal(must(protojson.Marshal(signed)), &out))
	return out
}

// certificate gives a certificate.
type certificate struct {
	*ca
	from time.Time
}

func (c certificate) GetCertificate(_ context.Context, keys sign.Keypair, _ *sign.CertificateProviderOptions) ([]byte, error) {
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: c.from, NotAfter: c.from.Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}, EmailAddresses: []string{person},
		ExtraExtensions: []pkix.Extension{
			{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(openid.URL)},
			{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}, Value: must(asn1.MarshalWithParams(openid.URL, "utf8"))},
		}}
	return x509.CreateCertificate(rand.Reader, template, c.certificate, keys.GetPublicKey(), crypto.Signer(c.key))
}
