package images

import "github.com/operator-bindery/bindery/internal/transfer"

// Event is one step of a copy or of reading an image. Its fields are:
//
//	Kind        EventKind
//	Destination string        // where is written to, or the repository that is read
//	Blob        digest.Digest // of a blob
//	Size, Done  int64         // its size, and how much of it is transferred, in bytes
//	Attempt     int           // for EventRetry, from 1
//	Err         error         // why an attempt failed, for EventRetry; the warning, for EventWarning
type Event = transfer.Event

// EventKind is the kind of an [Event].
type EventKind = transfer.EventKind

// The kinds of events.
const (
	EventBlobStart    = transfer.EventBlobStart
	EventBlobProgress = transfer.EventBlobProgress
	EventBlobDone     = transfer.EventBlobDone
	EventBlobReused   = transfer.EventBlobReused
	EventBlobMounted  = transfer.EventBlobMounted
	EventRetry        = transfer.EventRetry
	EventWarning      = transfer.EventWarning
	// EventVerified tells that the signature policy has accepted a signature of the image Destination: Blob is the
	// index or manifest that was signed, which for an index covers every image in it.
	EventVerified = transfer.EventVerified
)
