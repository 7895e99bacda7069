package keyless

import (
	"encoding/base64"
	"errors"
	"fmt"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/rekor/pkg/generated/client/entries"
	"github.com/sigstore/rekor/pkg/generated/models"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/sign"

	"github.com/operator-bindery/bindery/internal/fault"
)

// The limits of what proves when a signature was made: of an entry of a log or a timestamp in bytes, and of their number
// in a signature. Genuine ones have a few kilobytes. The library verifies signatures in them with the keys that are in
// them, of any size, before it knows whose they are: with a key of a megabyte, that takes hours.
const (
	maxProof  = 16 << 10
	maxProofs = 8
)

// newBundle checks what is in a bundle before the library looks into it.
func newBundle(message *protobundle.Bundle) (*bundle.Bundle, error) {
	material := message.GetVerificationMaterial()
	var proofs [][]byte
	for _, e := range material.GetTlogEntries() {
		proofs = append(proofs, e.GetCanonicalizedBody())
	}
	for _, t := range material.GetTimestampVerificationData().GetRfc3161Timestamps() {
		proofs = append(proofs, t.GetSignedTimestamp())
	}
	if len(proofs) > maxProofs {
		return nil, fmt.Errorf("%w: %d log entries and timestamps (limit %d)", fault.ErrLimit, len(proofs), maxProofs)
	}
	for _, p := range proofs {
		if len(p) > maxProof {
			return nil, fmt.Errorf("%w: a log entry or a timestamp of %d bytes (limit %d)", fault.ErrLimit, len(p), maxProof)
		}
	}
	b, err := bundle.NewBundle(message)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", fault.ErrInvalid, err)
	}
	return b, nil
}

// checkedLog is a log whose answers have what the library takes for granted.
type checkedLog struct{ sign.RekorClient }

func (l checkedLog) CreateLogEntry(p *entries.CreateLogEntryParams, o ...entries.ClientOption) (*entries.CreateLogEntryCreated, error) {
	answer, err := l.RekorClient.CreateLogEntry(p, o...)
	if err != nil {
		return nil, err
	}
	e, ok := answer.Payload[answer.ETag]
	if !ok {
		return nil, fmt.Errorf("%w: the answer of the log has no entry of the name in its ETag", fault.ErrInvalid)
	}
	return answer, checkEntry(e)
}

func (l checkedLog) GetLogEntryByUUID(p *entries.GetLogEntryByUUIDParams, o ...entries.ClientOption) (*entries.GetLogEntryByUUIDOK, error) {
	answer, err := l.RekorClient.GetLogEntryByUUID(p, o...)
	if err != nil {
		return nil, err
	}
	if len(answer.Payload) != 1 {
		return nil, fmt.Errorf("%w: the answer of the log has not one entry", fault.ErrInvalid)
	}
	for _, e := range answer.Payload {
		err = checkEntry(e)
	}
	return answer, err
}

func checkEntry(e models.LogEntryAnon) error {
	in := e.Verification
	if e.LogID == nil || e.LogIndex == nil || e.IntegratedTime == nil || in == nil || in.InclusionProof == nil {
		return fmt.Errorf("%w: the log's entry has no proof", fault.ErrInvalid)
	}
	if p := in.InclusionProof; p.RootHash == nil || p.LogIndex == nil || p.TreeSize == nil || p.Checkpoint == nil {
		return fmt.Errorf("%w: the log's entry has no whole proof", fault.ErrInvalid)
	}
	if body, ok := e.Body.(string); ok && base64.StdEncoding.DecodedLen(len(body)) <= maxProof {
		return nil
	}
	return errors.New("the body of the log's entry is no text, or too long")
}
