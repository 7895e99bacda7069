package keyless

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	rfc3161 "github.com/digitorus/timestamp"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Verifier implements [signature.Certified]: what was signed is verified as others will, by the trusted root that the
// signer has. Without one it is compared with itself: its key made it, and its certificate was valid at every time at
// which the services say that it was made.
func (s *Signer) Verifier() signature.Identities {
	if s.root == nil {
		return consistent{}
	}
	who := s.Identity()
	v, err := NewVerifier(s.root, Identity{Name: who.Name, Issuer: who.Issuer})
	if err != nil {
		return refusing{err}
	}
	return v
}

// refusing verifies nothing.
type refusing struct{ err error }

// Bundle implements [signature.Identities].
func (r refusing) Bundle([]byte) (by signature.CertifiedBy, class signature.Class, err error) {
	return by, signature.Certificate, r.err
}

// Layer implements [signature.Identities].
func (r refusing) Layer([]byte, bool, map[string]string) (by signature.CertifiedBy, class signature.Class, err error) {
	return by, signature.Certificate, r.err
}

// consistent verifies what can be known of a signature without a trusted root.
type consistent struct{}

// Bundle implements [signature.Identities].
func (c consistent) Bundle(text []byte) (by signature.CertifiedBy, class signature.Class, err error) {
	message := &protobundle.Bundle{}
	if err := protojson.Unmarshal(text, message); err != nil {
		return by, signature.Malformed, fmt.Errorf("%w: %v", fault.ErrInvalid, err)
	}
	return c.verify(message, message.GetDsseEnvelope().GetPayload())
}

// Layer implements [signature.Identities].
func (c consistent) Layer(content []byte, envelope bool, annotations map[string]string) (by signature.CertifiedBy,
	class signature.Class, err error) {
	message, err := layerBundle(content, envelope, annotations)
	if err != nil {
		return by, signature.Malformed, err
	}
	if envelope {
		content = message.GetDsseEnvelope().GetPayload()
	}
	return c.verify(message, content)
}

func (consistent) verify(message *protobundle.Bundle, payload []byte) (by signature.CertifiedBy, class signature.Class,
	err error) {
	b, err := newBundle(message)
	if err != nil {
		return by, classOf(err), err
	}
	content, err := b.VerificationContent()
	if err != nil || content.Certificate() == nil {
		return by, signature.Malformed, fmt.Errorf("%w: it has no certificate", fault.ErrInvalid)
	}
	leaf := content.Certificate()
	times, err := timesOf(b)
	if err != nil {
		return by, signature.Untimed, err
	}
	for _, t := range times {
		if err := validAt(leaf, t); err != nil {
			return by, signature.Certificate, err
		}
	}
	if by.CertificateIdentity, err = identityOf(leaf); err != nil {
		return by, signature.Certificate, err
	}
	if by.Key, err = signature.NewPublicKey(leaf.PublicKey); err != nil {
		return by, signature.Certificate, fmt.Errorf("certificate: %w", err)
	}
	signed, err := b.SignatureContent()
	if err != nil {
		return by, signature.Malformed, fmt.Errorf("%w: %v", fault.ErrInvalid, err)
	}
	if signed.EnvelopeContent() != nil {
		err = verify.VerifySignature(signed, content, &root.BaseTrustedMaterial{})
	} else {
		err = verify.VerifySignatureWithArtifacts(signed, content, &root.BaseTrustedMaterial{},
			[]io.Reader{bytes.NewReader(payload)})
	}
	if err != nil {
		return by, signature.OtherKey, errors.New("the key of its certificate did not make the signature")
	}
	by.Time, by.Payload = times[0], payload
	return by, "", nil
}

// timesOf returns the times at which services say that a signature was made; one at least.
func timesOf(b *bundle.Bundle) (times []time.Time, err error) {
	entries, err := b.TlogEntries()
	if err != nil {
		return nil, fmt.Errorf("%w: %v", fault.ErrInvalid, err)
	}
	for _, e := range entries {
		if at := e.IntegratedTime(); !at.IsZero() && at.Unix() != 0 { // logs of version 2 have none
			times = append(times, at)
		}
	}
	stamps, err := b.Timestamps()
	if err != nil {
		return nil, fmt.Errorf("%w: %v", fault.ErrInvalid, err)
	}
	for _, text := range stamps {
		stamp, err := rfc3161.ParseResponse(text)
		if err != nil {
			return nil, fmt.Errorf("%w: timestamp: %v", fault.ErrInvalid, err)
		}
		times = append(times, stamp.Time)
	}
	if len(times) == 0 {
		return nil, errors.New("nothing proves when it was made")
	}
	return times, nil
}
