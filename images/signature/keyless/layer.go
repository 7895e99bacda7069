package keyless

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/internal/fault"
)

// The annotations of a layer with a certificate, as cosign writes them, beside those of package signature.
const (
	chainAnnotation     = "dev.sigstore.cosign/chain"            // the certificates of the authorities, in PEM
	logAnnotation       = "dev.sigstore.cosign/bundle"           // an entry of a log with its signed time, in JSON
	timestampAnnotation = "dev.sigstore.cosign/rfc3161timestamp" // in JSON
)

// signedEntry is an entry of a log of version 1 in an annotation, as cosign writes it (RekorBundle).
type signedEntry struct {
	SignedEntryTimestamp []byte
	Payload              struct {
		Body           []byte `json:"body"`
		IntegratedTime int64  `json:"integratedTime"`
		LogIndex       int64  `json:"logIndex"`
		LogID          string `json:"logID"` // in hexadecimal
	}
}

// timestamp is a timestamp in an annotation (RFC3161Timestamp of cosign).
type timestamp struct {
	SignedRFC3161Timestamp []byte
}

// encodeLayer returns the annotations of a layer of a .sig tag for what is in a bundle, and for the certificates of the
// authorities in PEM.
func encodeLayer(b *protobundle.Bundle, chain []byte) (out map[string]string, err error) {
	material := b.GetVerificationMaterial()
	out = map[string]string{
		signature.SignatureAnnotation: base64.StdEncoding.EncodeToString(b.GetMessageSignature().GetSignature()),
		signature.CertificateAnnotation: string(pem.EncodeToMemory(
			&pem.Block{Type: "CERTIFICATE", Bytes: material.GetCertificate().GetRawBytes()})),
	}
	if len(chain) > 0 {
		out[chainAnnotation] = string(chain)
	}
	add := func(name string, value any) {
		text, failed := json.Marshal(value)
		out[name], err = string(text), errors.Join(err, failed)
	}
	for _, e := range material.GetTlogEntries() {
		if e.GetInclusionPromise() == nil {
			return nil, errors.New("the transparency log gave no signed time")
		}
		s := signedEntry{SignedEntryTimestamp: e.GetInclusionPromise().GetSignedEntryTimestamp()}
		s.Payload.Body, s.Payload.IntegratedTime = e.GetCanonicalizedBody(), e.GetIntegratedTime()
		s.Payload.LogIndex, s.Payload.LogID = e.GetLogIndex(), hex.EncodeToString(e.GetLogId().GetKeyId())
		add(logAnnotation, s)
	}
	for _, t := range material.GetTimestampVerificationData().GetRfc3161Timestamps() {
		add(timestampAnnotation, timestamp{t.GetSignedTimestamp()})
	}
	return out, err
}

// layerBundle returns what the layer of a .sig tag says, or of an .att tag, as a bundle of version 0.1, which has a
// promise of the log in place of a proof.
func layerBundle(content []byte, envelope bool, annotations map[string]string) (*protobundle.Bundle, error) {
	block, _ := pem.Decode([]byte(annotations[signature.CertificateAnnotation]))
	if block == nil {
		return nil, fmt.Errorf("%w: annotation %s", fault.ErrInvalid, signature.CertificateAnnotation)
	}
	material := &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_Certificate{
		Certificate: &protocommon.X509Certificate{RawBytes: block.Bytes}}}
	if text, ok := annotations[logAnnotation]; ok {
		var s signedEntry
		var body struct {
			Kind    string `json:"kind"`
			Version string `json:"apiVersion"`
		}
		err := json.Unmarshal([]byte(text), &s, json.RejectUnknownMembers(true))
		log, bad := hex.DecodeString(s.Payload.LogID)
		if err = errors.Join(err, bad); err == nil {
			err = json.Unmarshal(s.Payload.Body, &body)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: annotation %s: %v", fault.ErrInvalid, logAnnotation, err)
		}
		material.TlogEntries = []*protorekor.TransparencyLogEntry{{
			LogIndex: s.Payload.LogIndex, LogId: &protocommon.LogId{KeyId: log},
			KindVersion:       &protorekor.KindVersion{Kind: body.Kind, Version: body.Version},
			IntegratedTime:    s.Payload.IntegratedTime,
			InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: s.SignedEntryTimestamp},
			CanonicalizedBody: s.Payload.Body,
		}}
	}
	if text, ok := annotations[timestampAnnotation]; ok {
		var t timestamp
		if err := json.Unmarshal([]byte(text), &t, json.RejectUnknownMembers(true)); err != nil {
			return nil, fmt.Errorf("%w: annotation %s: %v", fault.ErrInvalid, timestampAnnotation, err)
		}
		material.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: t.SignedRFC3161Timestamp}}}
	}
	b := &protobundle.Bundle{MediaType: "application/vnd.dev.sigstore.bundle+json;version=0.1",
		VerificationMaterial: material}
	if !envelope {
		sig, err := base64.StdEncoding.DecodeString(annotations[signature.SignatureAnnotation])
		if err != nil {
			return nil, fmt.Errorf("%w: annotation %s: %v", fault.ErrInvalid, signature.SignatureAnnotation, err)
		}
		sum := sha256.Sum256(content)
		b.Content = &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]},
			Signature:     sig}}
		return b, nil
	}
	var e protodsse.Envelope
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(content, &e); err != nil {
		return nil, fmt.Errorf("%w: envelope: %v", fault.ErrInvalid, err)
	}
	if len(e.Signatures) != 1 {
		return nil, fmt.Errorf("%w: the envelope has %d signatures, exactly one is allowed beside a certificate",
			fault.ErrInvalid, len(e.Signatures))
	}
	e.Signatures[0].Keyid = "" // the certificate says which key it is
	b.Content = &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &e}
	return b, nil
}
