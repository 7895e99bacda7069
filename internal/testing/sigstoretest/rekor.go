package sigstoretest

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"

	"github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
	"github.com/go-openapi/runtime"
	"github.com/sigstore/rekor/pkg/generated/models"
	"github.com/sigstore/rekor/pkg/types"
	_ "github.com/sigstore/rekor/pkg/types/dsse/v0.0.1"         // what entries may be
	_ "github.com/sigstore/rekor/pkg/types/hashedrekord/v0.0.1" // the same
	"github.com/sigstore/rekor/pkg/util"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore/pkg/signature"
)

// The tree of the log. As logs have had other trees before, the number of an entry in the log is not that in its tree.
const (
	treeName    = "rekor.sigstore.test"
	treeID      = 0x1234567890abcdef
	firstOfTree = 1000
)

// createEntry adds an entry to the log, as Rekor's createLogEntry.
func (s *Sigstore) createEntry(w http.ResponseWriter, r *http.Request, body []byte) {
	leaf, err := canonical(r.Context(), body)
	if err != nil {
		fail(w, http.StatusBadRequest, "Error processing entry: "+err.Error())
		return
	}
	uuid, text, added, err := s.add(r.Context(), leaf)
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Location", s.RekorURL+"/api/v1/log/entries/"+uuid)
	if !added {
		fail(w, http.StatusConflict, "an equivalent entry already exists in the transparency log with UUID "+uuid)
		return
	}
	w.Header().Set("ETag", uuid)
	answer(w, http.StatusCreated, json.RawMessage(text))
}

// getEntry answers with an entry that is in the log.
func (s *Sigstore) getEntry(w http.ResponseWriter, r *http.Request, _ []byte) {
	s.mu.Lock()
	text, ok := s.entries[r.PathValue("uuid")]
	s.mu.Unlock()
	if !ok {
		fail(w, http.StatusNotFound, "the log has no such entry")
		return
	}
	answer(w, http.StatusOK, json.RawMessage(text))
}

// canonical checks a proposed entry, with its signature, and returns what the log has of it.
func canonical(ctx context.Context, body []byte) ([]byte, error) {
	proposed, err := models.UnmarshalProposedEntry(bytes.NewReader(body), runtime.JSONConsumer())
	if err != nil {
		return nil, err
	}
	entry, err := types.CreateVersionedEntry(proposed)
	if err != nil {
		return nil, err
	}
	return types.CanonicalizeEntry(ctx, entry)
}

// add appends a leaf to the tree, if it is not there, and returns the UUID of the entry and the answer with it.
func (s *Sigstore) add(ctx context.Context, leaf []byte) (uuid string, text []byte, added bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hash := sha256.Sum256(append([]byte{0}, leaf...))
	uuid = fmt.Sprintf("%016x%x", treeID, hash)
	if text, ok := s.entries[uuid]; ok {
		return uuid, text, false, nil
	}
	signer, err := signature.LoadECDSASignerVerifier(s.rekorKey, crypto.SHA256)
	if err != nil {
		return "", nil, false, err
	}
	s.tree.AppendData(leaf)
	proof, err := s.prove(ctx, signer)
	if err != nil {
		return "", nil, false, err
	}
	payload := tlog.RekorPayload{Body: base64.StdEncoding.EncodeToString(leaf), IntegratedTime: s.now().Unix(),
		LogIndex: firstOfTree + *proof.LogIndex, LogID: hex.EncodeToString(s.logID())}
	promise, err := promise(signer, payload)
	if err != nil {
		return "", nil, false, err
	}
	text, err = json.Marshal(models.LogEntry{uuid: models.LogEntryAnon{Body: payload.Body,
		IntegratedTime: &payload.IntegratedTime, LogIndex: &payload.LogIndex, LogID: &payload.LogID,
		Verification: &models.LogEntryAnonVerification{InclusionProof: proof, SignedEntryTimestamp: promise}}})
	if err != nil {
		return "", nil, false, err
	}
	s.entries[uuid] = text
	return uuid, text, true, nil
}

// prove proves that the newest entry is in the tree.
func (s *Sigstore) prove(ctx context.Context, signer signature.Signer) (*models.InclusionProof, error) {
	size := s.tree.Size()
	path, err := s.tree.InclusionProof(size-1, size)
	if err != nil {
		return nil, err
	}
	hashes := []string{}
	for _, hash := range path {
		hashes = append(hashes, hex.EncodeToString(hash))
	}
	checkpoint, err := util.CreateAndSignCheckpoint(ctx, treeName, treeID, size, s.tree.Hash(), signer)
	if err != nil {
		return nil, err
	}
	return &models.InclusionProof{TreeSize: new(int64(size)), LogIndex: new(int64(size - 1)), Hashes: hashes,
		RootHash: new(hex.EncodeToString(s.tree.Hash())), Checkpoint: new(string(checkpoint))}, nil
}

// promise signs that the log has an entry and since when, the signed entry timestamp.
func promise(signer signature.Signer, payload tlog.RekorPayload) ([]byte, error) {
	text, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	if text, err = jsoncanonicalizer.Transform(text); err != nil {
		return nil, err
	}
	return signer.SignMessage(bytes.NewReader(text))
}

// rekorPublic returns the public key of the log in DER.
func (s *Sigstore) rekorPublic() []byte {
	der, err := x509.MarshalPKIXPublicKey(s.rekorKey.Public())
	if err != nil {
		panic(err) // it is a key that crypto/ecdsa has made
	}
	return der
}

// logID returns the identity of the log.
func (s *Sigstore) logID() []byte {
	sum := sha256.Sum256(s.rekorPublic())
	return sum[:]
}

// RekorKeyPEM returns the public key of the log, for rekorPublicKeyPath in policy.json.
func (s *Sigstore) RekorKeyPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: s.rekorPublic()})
}
