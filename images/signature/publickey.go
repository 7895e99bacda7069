package signature

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/operator-bindery/bindery/internal/fault"
)

const pemPublic = "PUBLIC KEY"

// minRSA is the least length of RSA keys in bits.
const minRSA = 2048

// PublicKey verifies signatures. The key's type alone decides on the algorithm, never what a signature says. It is safe
// for concurrent use.
type PublicKey struct {
	key  crypto.PublicKey
	spki [sha256.Size]byte
}

// NewPublicKey takes a key of the types that can verify: ECDSA (P-256, P-384, P-521), RSA of at least 2048 bits,
// Ed25519.
func NewPublicKey(key crypto.PublicKey) (PublicKey, error) {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() && k.Curve != elliptic.P384() && k.Curve != elliptic.P521() {
			return PublicKey{}, fmt.Errorf("%w: keys of the curve %s", errors.ErrUnsupported, k.Curve.Params().Name)
		}
	case *rsa.PublicKey:
		if k.N.BitLen() < minRSA {
			return PublicKey{}, fmt.Errorf("%w: an RSA key of %d bits, of at least %d needed", fault.ErrInvalid,
				k.N.BitLen(), minRSA)
		}
	case ed25519.PublicKey:
	default:
		return PublicKey{}, fmt.Errorf("%w: keys of the type %T", errors.ErrUnsupported, key)
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return PublicKey{}, fmt.Errorf("%w: public key: %v", fault.ErrInvalid, err)
	}
	return PublicKey{key, sha256.Sum256(der)}, nil
}

// ParsePublicKeys reads the public keys of a PEM text, of which there is at least one.
func ParsePublicKeys(text []byte) ([]PublicKey, error) {
	var keys []PublicKey
	for rest := bytes.TrimSpace(text); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, fmt.Errorf("%w: not a public key in PEM", fault.ErrInvalid)
		}
		if block.Type != pemPublic {
			return nil, fmt.Errorf("%w: a PEM block of the type %.60q, expected %q", fault.ErrInvalid, block.Type,
				pemPublic)
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%w: public key: %v", fault.ErrInvalid, err)
		}
		key, err := NewPublicKey(parsed)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: no public key", fault.ErrInvalid)
	}
	return keys, nil
}

// Fingerprint is "sha256:" and the digest of the key's encoding (SPKI), in hexadecimal digits.
func (k PublicKey) Fingerprint() string { return "sha256:" + hex.EncodeToString(k.spki[:]) }

// Hint is the name of the key in a Sigstore bundle, as cosign makes it.
func (k PublicKey) Hint() string { return base64.StdEncoding.EncodeToString(k.spki[:]) }

// Describe returns the key's type, such as "ECDSA P-256".
func (k PublicKey) Describe() string {
	switch key := k.key.(type) {
	case *ecdsa.PublicKey:
		return "ECDSA " + key.Curve.Params().Name
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA %d", key.N.BitLen())
	}
	return "Ed25519"
}

// TakenByAll tells whether every known verifier takes signatures of this type of key.
func (k PublicKey) TakenByAll() bool {
	key, ok := k.key.(*ecdsa.PublicKey)
	return ok && key.Curve == elliptic.P256()
}

// form is where a signature was found. It decides on the digest for ECDSA keys of large curves.
type form string

const (
	formSig    form = "sig"
	formBundle form = "bundle"
	formAtt    form = "att"
)

// verifies tells whether the key made a signature of a message. P-384 and P-521 use SHA-256 in .sig, as the containers
// library does, and in bundles either that or the digest of their size, as cosign does.
func (k PublicKey) verifies(message, sig []byte, in form) bool {
	sum := sha256.Sum256(message)
	switch key := k.key.(type) {
	case *ecdsa.PublicKey:
		if ecdsa.VerifyASN1(key, sum[:], sig) {
			return true
		}
		switch {
		case in == formSig:
			return false
		case key.Curve == elliptic.P384():
			long := sha512.Sum384(message)
			return ecdsa.VerifyASN1(key, long[:], sig)
		case key.Curve == elliptic.P521():
			long := sha512.Sum512(message)
			return ecdsa.VerifyASN1(key, long[:], sig)
		}
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], sig) == nil
	case ed25519.PublicKey:
		return ed25519.Verify(key, message, sig)
	}
	return false
}
