package signature

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Signer makes signatures with one key. It is safe for concurrent use.
type Signer interface {
	// Public is the key that verifies the signatures.
	Public() PublicKey
	// Sign returns the signature of a message as its key verifies it: ASN.1 for ECDSA, PKCS#1 v1.5 for RSA.
	Sign(ctx context.Context, message []byte) ([]byte, error)
}

// The types of PEM blocks with private keys. The first two are encrypted, as cosign does it.
const (
	pemEncrypted = "ENCRYPTED SIGSTORE PRIVATE KEY"
	pemCosign    = "ENCRYPTED COSIGN PRIVATE KEY"
	pemPlain     = "PRIVATE KEY"
)

// IsEncrypted tells whether the text of a private key needs a passphrase.
func IsEncrypted(text []byte) bool {
	block, _ := pem.Decode(text)
	return block != nil && (block.Type == pemEncrypted || block.Type == pemCosign)
}

// key is a private key in memory. It signs as the containers library does: ECDSA and RSA (PKCS#1 v1.5) with SHA-256,
// Ed25519 without a digest.
type key struct {
	private crypto.Signer
	public  PublicKey
}

// ParseKey reads one private key in PEM (ECDSA P-256 or P-384, RSA of at least 2048 bits, or Ed25519): encrypted as cosign does it, with its passphrase, or PKCS#8 in clear if plain
// is set. It does not keep the passphrase. Parameters of the encryption that would take more memory than 128 MiB are
// refused before they are used.
func ParseKey(text, passphrase []byte, plain bool) (Signer, error) {
	block, rest := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%w: not a key in PEM", fault.ErrInvalid)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("%w: there is something after the key", fault.ErrInvalid)
	}
	der := block.Bytes
	switch block.Type {
	case pemEncrypted, pemCosign:
		var err error
		if der, err = encrypted.Decrypt(block.Bytes, passphrase); err != nil {
			return nil, fmt.Errorf("%w: %v", ErrPassphrase, err)
		}
	case pemPlain:
		if !plain {
			return nil, ErrPlainKey
		}
	default:
		return nil, fmt.Errorf("%w: a PEM block of the type %.60q, expected %q, %q or %q", fault.ErrInvalid, block.Type,
			pemEncrypted, pemCosign, pemPlain)
	}
	defer clear(der)
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("%w: not a PKCS#8 key", fault.ErrInvalid) // the error could contain parts of the key
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%w: a %T cannot sign", fault.ErrInvalid, parsed)
	}
	return newKey(signer)
}

func newKey(private crypto.Signer) (Signer, error) {
	public, err := NewPublicKey(private.Public())
	if err != nil {
		return nil, err
	}
	if ec, ok := private.(*ecdsa.PrivateKey); ok && ec.Curve != elliptic.P256() && ec.Curve != elliptic.P384() {
		return nil, fmt.Errorf("%w: signing with the curve %s", errors.ErrUnsupported, ec.Curve.Params().Name)
	}
	return &key{private, public}, nil
}

// Public implements [Signer].
func (k *key) Public() PublicKey { return k.public }

// Sign implements [Signer]. RSA and Ed25519 give the same signature each time, ECDSA another one.
func (k *key) Sign(_ context.Context, message []byte) ([]byte, error) {
	if _, pure := k.private.(ed25519.PrivateKey); pure {
		return k.private.Sign(rand.Reader, message, crypto.Hash(0))
	}
	sum := sha256.Sum256(message)
	return k.private.Sign(rand.Reader, sum[:], crypto.SHA256)
}

// Algorithm is a kind of key to generate.
type Algorithm string

// The kinds of keys that [Algorithm.GenerateKey] makes. Every verifier takes ECDSA P-256.
const (
	ECDSAP256 Algorithm = "ecdsa-p256"
	ECDSAP384 Algorithm = "ecdsa-p384"
	RSA3072   Algorithm = "rsa-3072"
	Ed25519   Algorithm = "ed25519"
)

// Algorithms are all kinds, the default first.
func Algorithms() []Algorithm { return []Algorithm{ECDSAP256, ECDSAP384, RSA3072, Ed25519} }

// GenerateKey makes a key pair, in PEM: the private key encrypted with the passphrase, which may be empty.
func (a Algorithm) GenerateKey(passphrase []byte) (private, public []byte, err error) {
	var key crypto.Signer
	switch a {
	case ECDSAP256, "":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case ECDSAP384:
		key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case RSA3072:
		key, err = rsa.GenerateKey(rand.Reader, 3072)
	case Ed25519:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		err = fmt.Errorf("%w: unknown kind of key %.40q", fault.ErrInvalid, a)
	}
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	defer clear(der)
	sealed, err := encrypted.Encrypt(der, passphrase)
	if err != nil {
		return nil, nil, err
	}
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemEncrypted, Bytes: sealed}),
		pem.EncodeToMemory(&pem.Block{Type: pemPublic, Bytes: spki}), nil
}
