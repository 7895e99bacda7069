package serve

import (
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// Limits bound the resources that clients can use. The zero value of a field means its default.
type Limits struct {
	Connections   int           // open at once; default [DefaultConnections], or [Limits.FitProcess]
	Streams       int           // open at once in one connection; default [DefaultStreams]
	HTTP          int           // of each service over HTTP; default [DefaultHTTPConnections], or [Limits.FitProcess]
	RequestSize   int           // of one request in bytes; default 64 KiB
	HeaderSize    int           // of one header list in bytes; default 8 KiB
	AnswerMemory  int           // of all answers being sent, in bytes; default 16 MiB
	AnswerWait    time.Duration // for a share of AnswerMemory; default 10 s
	Handshake     time.Duration // until a new connection has sent the preface of HTTP/2; default 10 s
	Request       time.Duration // from the start of a call until its request has arrived; default 30 s
	Idle          time.Duration // of a connection without calls; default 15 min
	Age           time.Duration // of a connection, after which it accepts no more calls; default 2 h
	AgeGrace      time.Duration // for the calls of a connection of that age; default 10 min
	KeepAlive     time.Duration // of silence before a client must answer a ping; default 1 min
	KeepAliveWait time.Duration // for that answer; default 20 s
	Drain         time.Duration // for open calls when the server stops; default 15 s, so that it stops within 20 s
}

func orDefault[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

func (l Limits) withDefaults() Limits {
	orDefault(&l.Connections, DefaultConnections)
	orDefault(&l.Streams, DefaultStreams)
	orDefault(&l.HTTP, DefaultHTTPConnections)
	orDefault(&l.RequestSize, 64<<10)
	orDefault(&l.HeaderSize, 8<<10)
	orDefault(&l.AnswerMemory, defaultAnswerMemory)
	orDefault(&l.AnswerWait, 10*time.Second)
	orDefault(&l.Handshake, 10*time.Second)
	orDefault(&l.Request, 30*time.Second)
	orDefault(&l.Idle, 15*time.Minute)
	orDefault(&l.Age, 2*time.Hour)
	orDefault(&l.AgeGrace, 10*time.Minute)
	orDefault(&l.KeepAlive, time.Minute)
	orDefault(&l.KeepAliveWait, 20*time.Second)
	orDefault(&l.Drain, 15*time.Second)
	return l
}

const (
	// bufferSize of a connection's reader. Requests are small, and there may be thousands of connections.
	bufferSize = 1 << 10
	// windowSize is the flow control window of connections and streams in bytes: the minimum in HTTP/2. A fixed size
	// saves the pings that adapt it, which small requests do not need.
	windowSize = 64<<10 - 1
)

func (l Limits) serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxConcurrentStreams(uint32(min(l.Streams, math.MaxUint32))),
		grpc.MaxRecvMsgSize(l.RequestSize),
		grpc.MaxHeaderListSize(uint32(min(l.HeaderSize, math.MaxUint32))),
		grpc.ConnectionTimeout(l.Handshake),
		grpc.InTapHandle(l.awaitRequest),
		grpc.ReadBufferSize(bufferSize),
		grpc.StaticStreamWindowSize(windowSize),
		grpc.StaticConnWindowSize(windowSize),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle:     l.Idle,
			MaxConnectionAge:      l.Age,
			MaxConnectionAgeGrace: l.AgeGrace,
			Time:                  l.KeepAlive,
			Timeout:               l.KeepAliveWait,
		}),
		grpc.KeepaliveEnforcementPolicy(
			keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
	}
}
