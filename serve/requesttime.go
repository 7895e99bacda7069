package serve

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"
)

// A client that begins a call and does not send its request would keep a goroutine and a place among the streams for as long as
// its connection lives: the transport has no limit of time for it. So every call begins with a timer, which the request
// stops.

// requestTimer is the key of a call's timer in its context.
type requestTimer struct{}

// awaitRequest gives a call that begins its timer.
func (l Limits) awaitRequest(ctx context.Context, _ *tap.Info) (context.Context, error) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(l.Request, cancel)
	// The timer of a call that ends before must not hold it in memory: clients can make many of these.
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
