package images

import (
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
)

// newResult is the result of a destination. Of several names of one place the first has the transfers. repository is
// the name of the place if it is in a registry, else empty.
func newResult(d transport.Destination, repository string, a store.Account, first bool) Result {
	r := Result{Destination: d.String(), Reference: d.String(), Digest: a.Digest, MediaType: a.MediaType}
	var traffic store.Traffic
	if first {
		traffic.Manifests = store.Amount{Count: a.Written, Bytes: a.WrittenBytes}
	}
	blobs := make([]store.Move, 0, len(a.Moves))
	for _, m := range a.Moves {
		if !first {
			m.How, m.From = store.Reused, ""
		}
		list, sum := &r.Reused, &traffic.Reused
		switch m.How {
		case store.Pushed:
			list, sum = &r.Written, &traffic.Pushed
		case store.Mounted:
			list, sum = &r.Mounted, &traffic.Mounted
		}
		*list = append(*list, m.Digest)
		sum.Add(store.Amount{Count: 1, Bytes: m.Size})
		blobs = append(blobs, m)
	}
	if repository != "" {
		r.Reference, r.Blobs, r.Traffic = repository+"@"+a.Digest.String(), blobs, &traffic
	}
	return r
}
