package store

import (
	"github.com/opencontainers/go-digest"
)

// Event is one step of copying or reading an image.
type Event struct {
	Kind EventKind
	// Destination is where the step writes to, or the repository that it reads.
	Destination string
	// Blob and Size in bytes are set for blobs; Done is how many bytes have been transferred.
	Blob       digest.Digest
	Size, Done int64
	// For EventRetry, Attempt counts from 1 and Err is its failure. For EventWarning, Err is the warning.
	Attempt int
	Err     error
}

// EventKind is the kind of an [Event].
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
	// EventVerified tells that the signature policy has accepted a signature of the image Destination: Blob is the
	// index or manifest that was signed, which for an index covers every image in it.
	EventVerified EventKind = "verified"
)
