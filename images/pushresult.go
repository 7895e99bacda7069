package images

import (
	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/registry"
)

// How tells how a blob got to where it is.
type How string

// The ways of blobs to a registry.
const (
	Pushed  How = "pushed"  // it was sent
	Mounted How = "mounted" // the registry took it from another repository of its own
	Reused  How = "reused"  // it was there already
)

// Transfer is what became of one blob.
type Transfer struct {
	Digest digest.Digest `json:"digest"`
	Size   int64         `json:"bytes"`
	How    How           `json:"how"`
	// From is the repository that a blob was mounted from, "HOST/REPOSITORY".
	From string `json:"from,omitempty"`
}

// Amount is a number of blobs and their bytes together.
type Amount struct {
	Count int   `json:"count"`
	Bytes int64 `json:"bytes"`
}

func (a *Amount) add(bytes int64) { a.Count++; a.Bytes += bytes }

// Traffic is what a push moved. Bytes are those of the blobs; what had to be sent twice counts once.
type Traffic struct {
	Pushed  Amount `json:"pushed"`
	Mounted Amount `json:"mounted"`
	Reused  Amount `json:"reused"`
	// Manifests are those that were sent, in as many requests as Count says.
	Manifests Amount `json:"manifests"`
}

// Add adds what another push moved.
func (t *Traffic) Add(o Traffic) {
	for _, p := range []struct{ to, from *Amount }{
		{&t.Pushed, &o.Pushed}, {&t.Mounted, &o.Mounted}, {&t.Reused, &o.Reused}, {&t.Manifests, &o.Manifests},
	} {
		p.to.Count += p.from.Count
		p.to.Bytes += p.from.Bytes
	}
}

// pushedResult is the result of a push to one destination.
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
