package keyless

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net/url"
	"strings"
	"testing"

	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// A certificate is for one name that one issuer vouches for.
func TestIdentityOf(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	uri := &url.URL{Scheme: "https", Host: "example.com", Path: "/release.yml"}
	value, err := asn1.Marshal("https://issuer.example.com")
	if err != nil {
		t.Fatal(err)
	}
	issuer := []pkix.Extension{{Id: certificate.OIDIssuerV2, Value: value}}
	other, err := cryptoutils.MarshalOtherNameSAN("jane", true)
	if err != nil {
		t.Fatal(err)
	}
	trailing := []pkix.Extension{{Id: certificate.OIDIssuerV2, Value: append(value, 0)}}
	for _, c := range []struct {
		what       string
		of         x509.Certificate
		name, says string
	}{
		{"a URI", x509.Certificate{URIs: []*url.URL{uri}, ExtraExtensions: issuer}, uri.String(), ""},
		{"an address", x509.Certificate{EmailAddresses: []string{"jane@example.com"}, ExtraExtensions: issuer}, "jane@example.com", ""},
		{"another kind", x509.Certificate{ExtraExtensions: append(issuer, *other)}, "jane", ""},
		{"two URIs", x509.Certificate{URIs: []*url.URL{uri, uri}, ExtraExtensions: issuer}, "", "several names"},
		{"a URI and an address", x509.Certificate{URIs: []*url.URL{uri}, EmailAddresses: []string{"jane@example.com"},
			ExtraExtensions: issuer}, "", "several names"},
		{"an address and a host", x509.Certificate{EmailAddresses: []string{"jane@example.com"}, DNSNames: []string{"example.com"},
			ExtraExtensions: issuer}, "", "several names"},
		{"a host", x509.Certificate{DNSNames: []string{"example.com"}, ExtraExtensions: issuer}, "", "No Subject Alternative Name"},
		{"no issuer", x509.Certificate{URIs: []*url.URL{uri}}, "", "no issuer"},
		{"something after the issuer", x509.Certificate{URIs: []*url.URL{uri}, ExtraExtensions: trailing}, "", "trailing"},
	} {
		c.of.SerialNumber = big.NewInt(1)
		der, err := x509.CreateCertificate(rand.Reader, &c.of, &c.of, key.Public(), key)
		if err != nil {
			t.Fatal(c.what, err)
		}
		leaf, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(c.what, err)
		}
		got, err := identityOf(leaf)
		if c.says == "" && (err != nil || got.Name != c.name || got.Issuer == "") ||
			c.says != "" && (err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.says))) {
			t.Errorf("%s: %+v, %v", c.what, got, err)
		}
	}
}
