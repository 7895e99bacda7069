package images

import "github.com/operator-bindery/bindery/internal/transfer"

// Event is one step of a copy or of reading an image.
type Event = transfer.Event

// EventKind is what an [Event] is about.
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
)
