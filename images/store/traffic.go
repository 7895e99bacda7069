package store

import "github.com/opencontainers/go-digest"

// How is the way in which a blob got to a place.
type How string

// The ways in which blobs get to places.
const (
	Pushed  How = "pushed"  // the blob was sent
	Mounted How = "mounted" // the place took the blob from another place of its own
	Reused  How = "reused"  // the place had the blob already
)

// Move is a blob, and how it got to a place.
type Move struct {
	Digest digest.Digest `json:"digest"`
	Size   int64         `json:"bytes"`
	How    How           `json:"how"`
	// From is the repository that the blob was mounted from, "HOST/REPOSITORY".
	From string `json:"from,omitempty"`
}

// Amount is a number of blobs and their total size in bytes.
type Amount struct {
	Count int   `json:"count"`
	Bytes int64 `json:"bytes"`
}

// Add adds another amount.
func (a *Amount) Add(o Amount) { a.Count += o.Count; a.Bytes += o.Bytes }

// Traffic is what was transferred. Bytes are the sizes of blobs: a blob that was sent twice counts once.
type Traffic struct {
	Pushed  Amount `json:"pushed"`
	Mounted Amount `json:"mounted"`
	Reused  Amount `json:"reused"`
	// Manifests are the manifests that were sent; Count is the number of requests.
	Manifests Amount `json:"manifests"`
}

// Add adds other traffic.
func (t *Traffic) Add(o Traffic) {
	t.Pushed.Add(o.Pushed)
	t.Mounted.Add(o.Mounted)
	t.Reused.Add(o.Reused)
	t.Manifests.Add(o.Manifests)
}
