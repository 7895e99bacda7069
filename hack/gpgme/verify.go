package gpgme

//lint:file-ignore SA1019 The containers image library verifies with this package too: one code for both ways to build.

import (
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/crypto/openpgp"
)

// Validity is how far a key is trusted.
type Validity int

// ValidityUnknown is that of every key: the containers image library decides which keys it trusts.
const (
	ValidityUnknown Validity = 0
	ValidityNever   Validity = 3
)

// Signature is a signature that was verified. It is good only if Status and ValidityReason are nil.
type Signature struct {
	Fingerprint    string // of the primary key
	Status         error
	Validity       Validity
	ValidityReason error
	WrongKeyUsage  bool
}

// Verify reads a signature with its text in it, writes the text to plain, and returns the signature. The error says why
// the signature is not that of a known key, or has expired. Text that is signed elsewhere is not supported.
func (c *Context) Verify(signature, signed, plain *Data) (string, []Signature, error) {
	if signed != nil {
		return "", nil, ErrUnsupported
	}
	if err := c.load(); err != nil {
		return "", nil, err
	}
	message, err := openpgp.ReadMessage(signature.r, c.keys, nil, nil)
	if err != nil {
		return "", nil, err
	}
	if !message.IsSigned {
		return "", nil, errors.New("not signed")
	}
	text, err := io.ReadAll(message.UnverifiedBody)
	switch {
	case err != nil:
		return "", nil, err
	case message.SignatureError != nil:
		return "", nil, fmt.Errorf("signature error: %w", message.SignatureError)
	case message.SignedBy == nil:
		return "", nil, fmt.Errorf("no key %X, with which it is signed", message.SignedByKeyId)
	case message.Signature == nil && message.SignatureV3 == nil:
		return "", nil, errors.New("no signature after the text")
	}
	if s := message.Signature; s != nil && s.SigLifetimeSecs != nil {
		end := s.CreationTime.Add(time.Duration(*s.SigLifetimeSecs) * time.Second)
		if time.Now().After(end) {
			return "", nil, fmt.Errorf("the signature has expired on %s", end.UTC().Format(time.DateOnly))
		}
	}
	if _, err := plain.w.Write(text); err != nil {
		return "", nil, err
	}
	return "", []Signature{{Fingerprint: hex(message.SignedBy.Entity.PrimaryKey.Fingerprint[:])}}, nil
}
