package sigstoretest

import (
	"crypto"
	"encoding/asn1"
	"net/http"

	"github.com/digitorus/timestamp"
)

// timestamp answers a request for a timestamp (RFC 3161).
func (s *Sigstore) timestamp(w http.ResponseWriter, _ *http.Request, body []byte) {
	asked, err := timestamp.ParseRequest(body)
	if err != nil {
		http.Error(w, "Error generating timestamp response: "+err.Error(), http.StatusBadRequest)
		return
	}
	stamp := timestamp.Timestamp{HashAlgorithm: asked.HashAlgorithm, HashedMessage: asked.HashedMessage,
		Time: s.now().UTC(), Nonce: asked.Nonce, Policy: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 2},
		AddTSACertificate: asked.Certificates, ExtraExtensions: asked.Extensions}
	text, err := stamp.CreateResponseWithOpts(s.tsaLeaf, s.tsaKey, crypto.SHA256)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/timestamp-reply")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(text)
}
