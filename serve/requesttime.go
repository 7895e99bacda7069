package serve

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"
)

// A client that starts a call without sending its request would occupy a goroutine and a stream for the lifetime of its
// connection: the transport has no time limit for it. So every call starts with a timer, which the request stops.

// requestTimer is the key of a call's timer in its context.
type requestTimer struct{}

// awaitRequest starts the timer of a new call.
func (l Limits) awaitRequest(ctx context.Context, _ *tap.Info) (context.Context, error) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(l.Request, cancel)
	// The timer of a call that ends earlier must not keep it in memory: clients can start many.
	forget := context.AfterFunc(ctx, func() { timer.Stop() })
	return context.WithValue(ctx, requestTimer{}, func() {
		forget()
		timer.Stop()
	}), nil
}

// requestCame stops a call's timer. It may be called again.
func requestCame(ctx context.Context) {
	if stop, ok := ctx.Value(requestTimer{}).(func()); ok {
		stop()
	}
}

// timedStream is a stream whose first message stops its timer.
type timedStream struct{ grpc.ServerStream }

func (s timedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	requestCame(s.Context())
	return err
}
