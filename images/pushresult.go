package images

import (
	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/registry"
)

// How is the way in which a blob got into a repository.
type How string

// The ways in which blobs get into a repository.
const (
	Pushed  How = "pushed"  // the blob was sent
	Mounted How = "mounted" // the registry took the blob from another of its repositories
	Reused  How = "reused"  // the repository had the blob already
)

// Transfer is a blob, and how it got into a repository.
type Transfer struct {
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

func (a *Amount) add(bytes int64) { a.Count++; a.Bytes += bytes }

// Traffic is what a push transferred. Bytes are the sizes of blobs: a blob that was sent twice counts once.
type Traffic struct {
	Pushed  Amount `json:"pushed"`
	Mounted Amount `json:"mounted"`
	Reused  Amount `json:"reused"`
	// Manifests are the manifests that were sent; Count is the number of requests.
	Manifests Amount `json:"manifests"`
}

// Add adds the traffic of another push.
func (t *Traffic) Add(o Traffic) {
	for _, p := range []struct{ to, from *Amount }{
		{&t.Pushed, &o.Pushed}, {&t.Mounted, &o.Mounted}, {&t.Reused, &o.Reused}, {&t.Manifests, &o.Manifests},
	} {
		p.to.Count += p.from.Count
		p.to.Bytes += p.from.Bytes
	}
}

// pushedResult converts the result of a push.
func pushedResult(p registry.PushResult) Result {
	r := Result{
		Destination: p.Target.Text, Reference: p.Reference, Digest: p.Digest, MediaType: p.MediaType,
		Traffic: &Traffic{Manifests: Amount{p.Manifests, p.ManifestBytes}}, Blobs: make([]Transfer, 0, len(p.Blobs)),
	}
	for _, b := range p.Blobs {
		r.Blobs = append(r.Blobs, Transfer{Digest: b.Digest, Size: b.Size, How: How(b.How), From: b.From})
		switch How(b.How) {
		case Pushed:
			r.Written = append(r.Written, b.Digest)
			r.Traffic.Pushed.add(b.Size)
		case Mounted:
			r.Mounted = append(r.Mounted, b.Digest)
			r.Traffic.Mounted.add(b.Size)
		case Reused:
			r.Reused = append(r.Reused, b.Digest)
			r.Traffic.Reused.add(b.Size)
		}
	}
	return r
}
