package signature

import (
	"encoding/json"
	"fmt"

	"github.com/operator-bindery/bindery/internal/fault"
)

const envelopeMedia = "application/vnd.dsse.envelope.v1+json"

// maxEnvelopeSignatures bounds the signatures of one envelope.
const maxEnvelopeSignatures = 16

// envelope is a DSSE envelope: a payload with its type and signatures.
type envelope struct {
	payload     []byte
	payloadType string
	signatures  [][]byte
	// certificate is that of the bundle that the envelope is in, in DER; nil if there is none.
	certificate []byte
	// hint is the name of the key in the bundle. It is not signed.
	hint string
}

// preAuthEncoding returns what is signed of a DSSE envelope (PAE).
func preAuthEncoding(payloadType string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}

// encodeEnvelope returns the text of an envelope with one signature.
func encodeEnvelope(statement, sig []byte) ([]byte, error) {
	type signature struct {
		Sig []byte `json:"sig"`
	}
	return json.Marshal(struct {
		Payload     []byte      `json:"payload"`
		PayloadType string      `json:"payloadType"`
		Signatures  []signature `json:"signatures"`
	}{statement, statementMedia, []signature{{sig}}})
}

// parseEnvelope reads an envelope.
func parseEnvelope(text []byte) (*envelope, error) {
	top, err := parseObject(text, "payload", "payloadType", "payload_type", "signatures")
	if err != nil {
		return nil, err
	}
	kind, err := top.either("payloadType", "payload_type")
	if err != nil {
		return nil, err
	}
	e := &envelope{}
	if e.payloadType, err = top.text(kind); err != nil {
		return nil, err
	}
	if e.payload, err = top.bytes("payload"); err != nil {
		return nil, err
	}
	entries, err := top.list("signatures", maxEnvelopeSignatures)
	if err != nil {
		return nil, err
	}
	for n, raw := range entries {
		entry, err := parseObject(raw, "sig", "keyid")
		if err != nil {
			return nil, fmt.Errorf("signatures[%d]: %w", n, err)
		}
		sig, err := entry.bytes("sig")
		if err != nil {
			return nil, fmt.Errorf("signatures[%d]: %w", n, err)
		}
		e.signatures = append(e.signatures, sig)
	}
	if len(e.signatures) == 0 {
		return nil, fmt.Errorf("%w: the envelope has no signature", fault.ErrInvalid)
	}
	return e, nil
}

// either returns the one of two names of a member that the object has; both are an error.
func (o object) either(name, other string) (string, error) {
	_, one := o[name]
	_, two := o[other]
	if one && two {
		return "", fmt.Errorf("%w: both %q and %q", fault.ErrInvalid, name, other)
	}
	if two {
		return other, nil
	}
	return name, nil
}
