package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/operator-bindery/bindery/serve/internal/web"
)

// Limits of HTTP services next to the catalog's gRPC service.
const (
	// httpRequests is the maximum number of concurrent requests: with HTTP/2 a connection may have several.
	httpRequests   = 256
	httpStreams    = 32 // concurrent requests of one connection
	httpHeaderSize = 16 << 10
	httpWait       = 10 * time.Second // for the headers of a request
	httpDrain      = 5 * time.Second  // at the same time as that of gRPC
	// metricsDrain comes after the [Limits.Drain] of gRPC: together they are less than the 20 seconds within which a
	// server stops.
	metricsDrain = time.Second
)

// endpoint is a separate HTTP server with limits on connections, requests, headers and the time to receive a request.
// It does not limit the duration of an answer: handlers of long answers set deadlines.
//
// A read timeout of [http.Server] would also end the context of long answers.
type endpoint struct {
	name   string
	l      net.Listener
	server *http.Server
	served chan struct{}
	log    *slog.Logger
}

// openEndpoint listens on l, or on addr if l is nil. flag is the flag that asked for it. Without config it uses plain
// HTTP. hosts are the names for which requests over loopback are answered.
func openEndpoint(ctx context.Context, flag, addr string, l net.Listener, config *tls.Config, hosts web.Hosts, h http.Handler,
	connections int, logger *slog.Logger) (*endpoint, error) {
	if l == nil {
		var err error
		if l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", addr); err != nil {
			return nil, fmt.Errorf("%w: --%s: %w", ErrListen, flag, err)
		}
	}
	g := newGate(l, connections, 0, httpWait)
	e := &endpoint{name: flag, l: g, served: make(chan struct{}), log: logger}
	e.server = &http.Server{
		Handler:           limitReadTime(limitRequests(hosts.Guard(h), httpRequests)),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: httpStreams},
		TLSConfig:         config,
		ConnState:         g.observe,
		ReadHeaderTimeout: httpWait,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    httpHeaderSize,
		// The server logs the addresses of clients whose handshake fails.
		ErrorLog: log.New(debugWriter{logger}, "", 0),
	}
	go e.serve()
	logger.Info("listening", "for", flag, "address", l.Addr().String())
	return e, nil
}

// limitReadTime limits the time to receive a request's body: handlers read it for GraphQL queries alone, but the server
// does before the next request.
func limitReadTime(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(5 * time.Second))
		}
		h.ServeHTTP(w, r)
	})
}

// limitRequests limits the number of concurrent requests. Others wait.
func limitRequests(h http.Handler, most int) http.Handler {
	places := make(chan struct{}, most)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
		case <-r.Context().Done():
			return
		}
		defer func() { <-places }()
		h.ServeHTTP(w, r)
	})
}

func (e *endpoint) serve() {
	defer close(e.served)
	var err error
	if e.server.TLSConfig != nil {
		err = e.server.ServeTLS(e.l, "", "")
	} else {
		err = e.server.Serve(e.l)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		e.log.Error("an endpoint has ended", "of", e.name, "error", err)
	}
}

// close accepts no more requests and waits for open ones for at most drain. It may be called on nil.
func (e *endpoint) close(drain time.Duration) {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	if err := e.server.Shutdown(ctx); err != nil {
		e.server.Close()
	}
	<-e.served
}

// debugWriter is the output of a log.Logger and writes each line as a record at debug level.
type debugWriter struct{ log *slog.Logger }

func (w debugWriter) Write(b []byte) (int, error) {
	w.log.Debug("http", "message", string(b))
	return len(b), nil
}

var _ io.Writer = debugWriter{}
