package sigstoretest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"time"
)

// authority is a certificate authority: a root and the intermediate certificate that signs.
type authority struct {
	root, intermediate *x509.Certificate
	key                *ecdsa.PrivateKey // of the intermediate certificate
}

// authorityLife is how long an authority is valid before the present and after it, so that signatures of other days can
// be made.
const authorityLife = 60 * 24 * time.Hour

// newAuthority makes an authority that certifies keys for one use.
func newAuthority(name string, usage x509.ExtKeyUsage) (authority, error) {
	template := func(common string) *x509.Certificate {
		return &x509.Certificate{
			Subject:   pkix.Name{CommonName: common, Organization: []string{"sigstore.test"}},
			NotBefore: time.Now().Add(-authorityLife), NotAfter: time.Now().Add(authorityLife),
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true,
		}
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	rootTemplate := template(name)
	root, err := certify(rootTemplate, rootTemplate, rootKey.Public(), rootKey)
	if err != nil {
		return authority{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	below := template(name + "-intermediate")
	below.ExtKeyUsage, below.MaxPathLenZero = []x509.ExtKeyUsage{usage}, true
	intermediate, err := certify(below, root, key.Public(), rootKey)
	return authority{root, intermediate, key}, err
}

// timestamping certifies a key for timestamps, as RFC 3161 wants it: for nothing else, and critical.
func (a authority) timestamping() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	usage, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}})
	if err != nil {
		return nil, nil, err
	}
	leaf, err := certify(&x509.Certificate{
		Subject:   pkix.Name{CommonName: "tsa-timestamping", Organization: []string{"sigstore.test"}},
		NotBefore: a.intermediate.NotBefore, NotAfter: a.intermediate.NotAfter,
		KeyUsage:        x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}},
	}, a.intermediate, key.Public(), a.key)
	return leaf, key, err
}

// certify makes a certificate with a number of its own.
func certify(template, parent *x509.Certificate, key crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = number
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
