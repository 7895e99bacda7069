package serve

import (
	"context"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// server answers over gRPC. It may be started without a catalog: until it has one it is unhealthy and its answers have
// the code Unavailable. It is safe for concurrent use.
type server struct {
	limits  Limits
	log     *slog.Logger
	health  *health
	grpc    *grpc.Server
	current atomic.Pointer[catalog]
	stop    sync.Once
	budget  *budget
	calls   map[string]*callMetrics // by full name of the method
	gate    atomic.Pointer[gate]    // set while it serves

	mu    sync.Mutex
	ended bool // no more catalogs are accepted
}

// newServer returns a server without a catalog. log receives an error for each panic and, at debug level, a record of
// each call; nil drops them. Further options, such as credentials, must not set interceptors or codecs.
func newServer(limits Limits, log *slog.Logger, more ...grpc.ServerOption) *server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &server{limits: limits.withDefaults(), log: log, health: newHealth()}
	options := append(s.limits.serverOptions(),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.UnaryInterceptor(s.observeUnary),
		grpc.StreamInterceptor(s.observeStream),
	)
	s.grpc = grpc.NewServer(append(options, more...)...)
	s.budget = &budget{limit: s.limits.AnswerMemory, wait: s.limits.AnswerWait}
	r := &registry{
		current: s.catalog,
		reader:  reader{budget: s.budget},
	}
	r.register(s.grpc)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	s.calls = newCallMetrics(s.grpc)
	return s
}

// SetStore gives the server a catalog, which it closes after use, and makes it healthy. Calls in progress keep the
// catalog that they began with. A server that has ended closes the store immediately.
func (s *server) SetStore(store Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := newCatalog(store, s.limits.AnswerMemory/2)
	if s.ended {
		next.retire()
		return
	}
	if old := s.current.Swap(next); old != nil {
		old.retire()
	}
	s.health.set(true)
}

// end closes the catalog after its last call.
func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if c := s.current.Load(); c != nil {
		c.retire()
	}
}

// catalog returns the catalog, acquired for one call.
func (s *server) catalog() (*catalog, error) {
	for {
		c := s.current.Load()
		if c == nil {
			return nil, status.Error(codes.Unavailable, "the catalog is being loaded")
		}
		if c.acquire() {
			return c, nil
		}
		if s.current.Load() == c {
			return nil, status.Error(codes.Unavailable, "the server is stopping")
		}
	}
}

// Serve answers on a listener, which it closes, until ctx ends. Then it accepts no more calls, waits for open ones
// within [Limits.Drain], aborts the remaining ones and closes the catalog. It returns nil after that, or the listener's
// error. It must be called once.
func (s *server) Serve(ctx context.Context, l net.Listener) error {
	done := make(chan struct{})
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		select {
		case <-ctx.Done():
			s.drain()
		case <-done:
			s.grpc.Stop()
		}
	}()
	g := newGate(l, s.limits.Connections, greetingSize, s.limits.Handshake)
	s.gate.Store(g)
	err := s.grpc.Serve(g)
	close(done)
	<-drained
	s.stop.Do(s.health.stop)
	s.end()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// drain stops the server properly, but in bounded time whatever its clients do.
func (s *server) drain() {
	s.stop.Do(s.health.stop)
	timer := time.AfterFunc(s.limits.Drain, s.grpc.Stop)
	defer timer.Stop()
	s.grpc.GracefulStop()
}

// recover turns a panic into an error of one call. The log gets the method and the stack, nothing of the request.
func (s *server) recover(method string, err *error) {
	if p := recover(); p != nil {
		s.log.Error("panic in a call", "method", method, "panic", p, "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "internal error")
	}
}

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
