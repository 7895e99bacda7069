// Package transfer has the events that happen while images are copied or read.
package transfer

import (
	"errors"

	"github.com/opencontainers/go-digest"
)

// Event is one step of a copy or of reading an image.
type Event struct {
	Kind EventKind
	// Destination is the place that the step concerns, as text: where is written to, or the repository that is read.
	Destination string
	// Blob and Size in bytes are set for blobs, Done is how much of one has been written.
	Blob       digest.Digest
	Size, Done int64
	// Attempt counts from 1 and Err is why it failed, for EventRetry. For EventWarning Err is the warning.
	Attempt int
	Err     error
}

// EventKind is what an [Event] is about.
type EventKind string

// The kinds of events.
const (
	EventBlobStart    EventKind = "start"
	EventBlobProgress EventKind = "progress"
	EventBlobDone     EventKind = "done"
	EventBlobReused   EventKind = "reused"
	EventBlobMounted  EventKind = "mounted"
	EventRetry        EventKind = "retry"
	EventWarning      EventKind = "warning"
)

// ErrStalled is the end of an attempt in which nothing moved.
var ErrStalled = errors.New("nothing has moved")
