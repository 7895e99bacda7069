package images

import (
	"github.com/opencontainers/go-digest"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
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

// kinds are the ways of the steps of a copy.
var kinds = map[store.EventKind]How{store.EventBlobDone: Pushed, store.EventBlobMounted: Mounted,
	store.EventBlobReused: Reused}

// repositoryResult is the result of a destination in a repository. Of several names the first has the transfers.
func repositoryResult(d transport.Destination, repository string, a store.Account, first bool) Result {
	r := Result{Destination: d.String(), Reference: repository + "@" + a.Digest.String(), Digest: a.Digest,
		MediaType: a.MediaType, Traffic: &Traffic{}}
	if first {
		r.Traffic.Manifests = Amount{a.Written, a.WrittenBytes}
	}
	r.Blobs = r.note(a.Moves, first, r.Traffic)
	return r
}

// layoutResult is the result of a destination in a layout.
func layoutResult(d transport.Destination, a store.Account, first bool) Result {
	r := Result{Destination: d.String(), Reference: d.String(), Digest: a.Digest, MediaType: a.MediaType}
	r.note(a.Moves, first, &Traffic{})
	return r
}

// note adds blobs and their traffic, and returns them as transfers: those of the first name of a destination.
func (r *Result) note(moves []store.Move, first bool, traffic *Traffic) []Transfer {
	transfers := make([]Transfer, 0, len(moves))
	for _, m := range moves {
		t := Transfer{Digest: m.Digest, Size: m.Size, How: Reused}
		if first {
			t.How, t.From = kinds[m.Kind], m.From
		}
		list, sum := &r.Reused, &traffic.Reused
		switch t.How {
		case Pushed:
			list, sum = &r.Written, &traffic.Pushed
		case Mounted:
			list, sum = &r.Mounted, &traffic.Mounted
		}
		*list = append(*list, t.Digest)
		sum.add(t.Size)
		transfers = append(transfers, t)
	}
	return transfers
}
