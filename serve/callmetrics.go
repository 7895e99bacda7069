package serve

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// latencyBuckets are the upper bounds of the histogram of durations, in seconds.
var latencyBuckets = [...]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10,
	30}

// numCodes is one more than the largest code of gRPC.
const numCodes = int(codes.Unauthenticated) + 1

// callMetrics are the metrics of one method. They are safe for concurrent use.
type callMetrics struct {
	service, method, kind string

	started  atomic.Uint64
	handled  [numCodes]atomic.Uint64
	messages atomic.Uint64 // sent
	bytes    atomic.Uint64 // of these, before compression and framing
	buckets  [len(latencyBuckets) + 1]atomic.Uint64
	nanos    atomic.Int64
}

// newCallMetrics returns metrics for all methods of a server by full name. Other names have none, so that a request
// never creates a label.
func newCallMetrics(s *grpc.Server) map[string]*callMetrics {
	all := map[string]*callMetrics{}
	for service, info := range s.GetServiceInfo() {
		for _, m := range info.Methods {
			kind := "unary"
			switch {
			case m.IsClientStream && m.IsServerStream:
				kind = "bidi_stream"
			case m.IsClientStream:
				kind = "client_stream"
			case m.IsServerStream:
				kind = "server_stream"
			}
			all["/"+service+"/"+m.Name] = &callMetrics{service: service, method: m.Name, kind: kind}
		}
	}
	return all
}

// codeOf returns the status code that a client receives.
func codeOf(err error) codes.Code {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Code()
	}
	return status.Code(err)
}

func (m *callMetrics) done(took time.Duration, code codes.Code, messages, bytes uint64) {
	if m == nil {
		return
	}
	if int(code) >= numCodes {
		code = codes.Unknown
	}
	m.messages.Add(messages)
	m.bytes.Add(bytes)
	m.nanos.Add(int64(took))
	at, _ := slices.BinarySearch(latencyBuckets[:], took.Seconds())
	m.buckets[at].Add(1)
	m.handled[code].Add(1)
}

// observe counts a call that ends when the returned function is called. At debug level it logs the method and the
// result, but nothing of the request.
func (s *server) observe(ctx context.Context, fullMethod string) func(err error, messages, bytes uint64) {
	m := s.calls[fullMethod]
	if m != nil {
		m.started.Add(1)
	}
	start := time.Now()
	return func(err error, messages, bytes uint64) {
		took, code := time.Since(start), codeOf(err)
		m.done(took, code, messages, bytes)
		if s.log.Enabled(ctx, slog.LevelDebug) {
			s.log.LogAttrs(ctx, slog.LevelDebug, "call", slog.String("method", path.Base(fullMethod)),
				slog.String("code", code.String()),
				slog.Duration("duration", took), slog.Uint64("messages", messages), slog.Uint64("bytes", bytes))
		}
	}
}

// messageSize returns the size of a message in wire form. It must be called before the message is sent.
func messageSize(m any) uint64 {
	switch m := m.(type) {
	case answer:
		return uint64(m.data.Len())
	case proto.Message:
		return uint64(proto.Size(m))
	}
	return 0
}

func (s *server) observeUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	handler grpc.UnaryHandler) (_ any, err error) {
	requestCame(ctx)
	done := s.observe(ctx, info.FullMethod)
	var sent, size uint64
	defer func() { done(err, sent, size) }()
	defer s.recover(info.FullMethod, &err)
	reply, err := handler(ctx, req)
	if err == nil {
		sent, size = 1, messageSize(reply)
	}
	return reply, err
}

func (s *server) observeStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
	handler grpc.StreamHandler) (err error) {
	counted := &countedStream{ServerStream: timedStream{stream}}
	done := s.observe(stream.Context(), info.FullMethod)
	defer func() { done(err, counted.messages, counted.bytes) }()
	defer s.recover(info.FullMethod, &err)
	return handler(srv, counted)
}

// countedStream counts sent messages. Like any stream it has one sender at a time.
type countedStream struct {
	grpc.ServerStream
	messages, bytes uint64
}

func (s *countedStream) SendMsg(m any) error {
	size := messageSize(m)
	if err := s.ServerStream.SendMsg(m); err != nil {
		return err
	}
	s.messages++
	s.bytes += size
	return nil
}

// writeCallMetrics adds the metrics of all methods under the usual names for gRPC servers.
func writeCallMetrics(t *promText, all map[string]*callMetrics) {
	sorted := slices.SortedFunc(maps.Values(all), func(a, b *callMetrics) int {
		return cmp.Or(strings.Compare(a.service, b.service), strings.Compare(a.method, b.method))
	})
	labels := func(m *callMetrics, more ...string) []string {
		return append([]string{"grpc_type", m.kind, "grpc_service", m.service, "grpc_method", m.method}, more...)
	}
	counter := func(name, help string, value func(*callMetrics) uint64) {
		t.family(name, "counter", help)
		for _, m := range sorted {
			t.sample(name, float64(value(m)), labels(m)...)
		}
	}
	// Read before the number of started calls: otherwise more calls could have ended than started.
	handled := make([][numCodes]uint64, len(sorted))
	for i, m := range sorted {
		for code := range m.handled {
			handled[i][code] = m.handled[code].Load()
		}
	}
	counter("grpc_server_started_total", "Calls that were begun.",
		func(m *callMetrics) uint64 { return m.started.Load() })
	const name = "grpc_server_handled_total"
	t.family(name, "counter", "Calls that have ended, by the code that the client was told.")
	for i, m := range sorted {
		for code, n := range handled[i] {
			if n > 0 || code == int(codes.OK) {
				t.sample(name, float64(n), labels(m, "grpc_code", codes.Code(code).String())...)
			}
		}
	}
	counter("grpc_server_msg_sent_total", "Messages that were sent.",
		func(m *callMetrics) uint64 { return m.messages.Load() })
	counter("bindery_server_sent_bytes_total", "Bytes of the messages that were sent.",
		func(m *callMetrics) uint64 { return m.bytes.Load() })
	writeLatency(t, sorted, labels)
}

func writeLatency(t *promText, sorted []*callMetrics, labels func(*callMetrics, ...string) []string) {
	const name = "grpc_server_handling_seconds"
	t.family(name, "histogram", "Time from the request to the end of the answer.")
	for _, m := range sorted {
		var sum uint64
		nanos := m.nanos.Load()
		for i := range m.buckets {
			sum += m.buckets[i].Load()
			bound := "+Inf"
			if i < len(latencyBuckets) {
				bound = string(appendValue(nil, latencyBuckets[i]))
			}
			t.sample(name+"_bucket", float64(sum), labels(m, "le", bound)...)
		}
		t.sample(name+"_sum", time.Duration(nanos).Seconds(), labels(m)...)
		t.sample(name+"_count", float64(sum), labels(m)...)
	}
}
