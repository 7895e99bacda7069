package mirror

import (
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/mirror/internal/freespace"
)

// blobOverhead is what an archive has in addition to each blob: its header, its name in the description.
const blobOverhead = 2 << 10

// checkSpace warns if the disk of the archive has less space than is needed, and returns how much it has; zero if that
// cannot be found out.
func (r *run) checkSpace(needed int64) int64 {
	free, err := freespace.Of(r.o.Archive)
	if err != nil {
		r.log.debug(fmt.Sprintf("space of %s: %v", r.o.Archive, err))
		return 0
	}
	if needed > free {
		r.problem(Warning, r.o.Archive, "make room, or name a directory on another disk",
			"the archive needs %d bytes, and its disk has %d", needed, free)
	}
	return free
}

// dropLeftOut removes the blobs that a medium leaves out, since the other side has them.
func (r *run) dropLeftOut(blobs map[digest.Digest]int64) {
	if r.have == nil {
		return
	}
	for d := range blobs {
		if r.have(d) {
			delete(blobs, d)
		}
	}
}
