package images

import (
	"github.com/operator-bindery/bindery/internal/registry"
)

// Throttle limits the requests and bytes of all clients and remotes that have it. It is safe for concurrent use; nil
// limits nothing.
type Throttle = registry.Throttle

// NewThrottle returns a throttle of that many requests at once to each host, and of that many bytes per second in all,
// received and sent: an image that goes from one registry to another counts twice. Zero is no limit. A request counts
// until its answer has been read, so that one blob at a time comes from a host with one request.
func NewThrottle(perHost int, bandwidth int64) *Throttle {
	return registry.NewThrottle(perHost, bandwidth)
}
