package signature

import (
	"encoding/json"
	"fmt"
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

// signed returns what the signatures of the envelope are of.
func (e *envelope) signed() signed {
	return signed{preAuthEncoding(e.payloadType, e.payload), e.payload, e.signatures, e.certificate}
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

// parseEnvelope reads an envelope. With an error it has what could be read.
func parseEnvelope(text []byte) (*envelope, error) {
	top := parseObject(text, "payload", "payloadType|payload_type", "signatures")
	e := &envelope{payloadType: top.text("payloadType"), payload: top.bytes("payload")}
	for n, raw := range top.list("signatures", maxEnvelopeSignatures) {
		entry := top.parse(fmt.Sprintf("signatures[%d]: ", n), raw, "sig", "keyid")
		e.signatures = append(e.signatures, entry.bytes("sig"))
	}
	if len(e.signatures) == 0 {
		top.invalid("the envelope has no signature")
	}
	return e, *top.err
}
