package serve

import (
	"container/list"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// greetingSize is the length of the fixed text with which an HTTP/2 client begins (RFC 9113 section 3.4). A TLS client
// begins with a longer message.
const greetingSize = 24

// gate is a listener in front of a server. It limits the number of connections, so that file descriptors and memory are
// bounded, and takes from clients that say nothing what others need. In front of gRPC it passes a connection on when
// the client has sent its first bytes, because from then on the connection costs many times as much memory. In front of
// HTTP it passes connections on at once, and the server reports their states to [gate.observe].
type gate struct {
	net.Listener
	greeting int // bytes that a client sends before its connection is passed on; 0: none
	wait     time.Duration
	slots    chan struct{}
	ready    chan net.Conn

	accepted, evicted atomic.Uint64
	open              atomic.Int64

	mu      sync.Mutex
	waiting *list.List // of *gatedConn: those without a request, the one that waits longest first
	greeted map[*gatedConn]struct{}
	closed  chan struct{}
	err     error
}

// A quarter of the connections, or half of a few, are a reserve. When all others are taken, a connection of the reserve
// is closed after reserveQuiet without a byte in either direction, if there is a new client: so probes find a place
// within their timeout, of a second by default, however many clients began properly and then fell silent.
const reserveQuiet = 100 * time.Millisecond

func reserve(connections int) int {
	if connections < 8 {
		return 0
	}
	return max(connections/4, min(connections/2, 8))
}

func newGate(l net.Listener, connections, greeting int, wait time.Duration) *gate {
	g := &gate{
		Listener: l,
		greeting: greeting,
		wait:     wait,
		slots:    make(chan struct{}, connections),
		ready:    make(chan net.Conn),
		waiting:  list.New(),
		greeted:  map[*gatedConn]struct{}{},
		closed:   make(chan struct{}),
	}
	go g.run()
	return g
}

// run accepts connections. Beyond the limit it closes the connection of the client that has been silent longest; if
// none is silent, new connections wait in the kernel's queue.
func (g *gate) run() {
	delay := 5 * time.Millisecond
	for {
		if !g.slot() {
			return
		}
		conn, err := g.Listener.Accept()
		if err != nil {
			<-g.slots
			var netErr net.Error
			//lint:ignore SA1019 nothing else distinguishes a full file table from a closed listener
			if errors.As(err, &netErr) && netErr.Temporary() {
				if g.evict() {
					delay = 5 * time.Millisecond
				}
				select {
				case <-time.After(delay):
					delay = min(2*delay, time.Second)
					continue
				case <-g.closed:
					return
				}
			}
			g.fail(err)
			return
		}
		delay = 5 * time.Millisecond
		g.accepted.Add(1)
		g.open.Add(1)
		c := &gatedConn{Conn: conn, gate: g, reserve: len(g.slots) > cap(g.slots)-reserve(cap(g.slots))}
		if g.greeting > 0 {
			go g.awaitGreeting(c)
		} else {
			g.handOver(c)
		}
	}
}

// slot waits for a free place for a connection; it returns false when the gate is closed.
func (g *gate) slot() bool {
	const again = 20 * time.Millisecond
	for {
		select {
		case g.slots <- struct{}{}:
			return true
		default:
			g.evict()
		}
		select {
		case g.slots <- struct{}{}:
			return true
		case <-g.closed:
			return false
		case <-time.After(again):
		}
	}
}

// evict closes the connection that has waited longest for its client's request, or else the one on which nothing was
// sent for longest, if that exceeds the time for the first bytes or, in the reserve, reserveQuiet. Live clients
// reconnect when they have a question.
func (g *gate) evict() bool {
	victim := g.silent(time.Now())
	if victim == nil {
		return false
	}
	g.evicted.Add(1)
	victim.Close()
	return true
}

func (g *gate) silent(now time.Time) (victim *gatedConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if oldest := g.waiting.Front(); oldest != nil {
		return g.waiting.Remove(oldest).(*gatedConn)
	}
	longest := time.Duration(0)
	for c := range g.greeted {
		least := g.wait
		if c.reserve {
			least = min(least, reserveQuiet)
		}
		if quiet := time.Duration(now.UnixNano() - c.active.Load()); quiet >= max(least, longest) {
			victim, longest = c, quiet
		}
	}
	return victim
}

// awaitGreeting waits for the first bytes of a client.
func (g *gate) awaitGreeting(c *gatedConn) {
	g.mu.Lock()
	if g.err != nil {
		g.mu.Unlock()
		c.Close()
		return
	}
	c.place = g.waiting.PushBack(c)
	g.mu.Unlock()
	first := make([]byte, g.greeting)
	c.Conn.SetReadDeadline(time.Now().Add(g.wait))
	if _, err := io.ReadFull(c.Conn, first); err != nil {
		c.Close()
		return
	}
	c.Conn.SetReadDeadline(time.Time{})
	c.first = first
	g.set(c, false)
	g.handOver(c)
}

// set records whether a connection waits for a request. One that was evicted meanwhile is not recorded: it would be
// evicted again and again.
func (g *gate) set(c *gatedConn, waits bool) {
	c.active.Store(time.Now().UnixNano())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(c)
	switch {
	case c.gone:
	case waits:
		c.place = g.waiting.PushBack(c)
	default:
		g.greeted[c] = struct{}{}
	}
}

// forget removes a connection from those that can be evicted. The lock must be held.
func (g *gate) forget(c *gatedConn) {
	if c.place != nil {
		g.waiting.Remove(c.place)
		c.place = nil
	}
	delete(g.greeted, c)
}

// observe is the [http.Server.ConnState] of the server behind the gate. A connection waits until a request has arrived
// completely, and between requests.
func (g *gate) observe(conn net.Conn, state http.ConnState) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if c, ok := conn.(*gatedConn); ok && state <= http.StateIdle {
		g.set(c, state != http.StateActive)
	}
}

// handOver hands a connection to the server.
func (g *gate) handOver(c *gatedConn) {
	select {
	case g.ready <- c:
	case <-g.closed:
		c.Close()
	}
}

func (g *gate) Accept() (net.Conn, error) {
	select {
	case c := <-g.ready:
		return c, nil
	case <-g.closed:
		return nil, g.err
	}
}

// Close closes the listener and the connections that have not been passed on.
func (g *gate) Close() error {
	g.fail(net.ErrClosed)
	return g.Listener.Close()
}

func (g *gate) fail(err error) {
	g.mu.Lock()
	if g.err != nil {
		g.mu.Unlock()
		return
	}
	g.err = err
	close(g.closed)
	var waiting []*gatedConn
	for e := g.waiting.Front(); e != nil && g.greeting > 0; e = e.Next() { // an HTTP server closes its own
		waiting = append(waiting, e.Value.(*gatedConn))
	}
	g.mu.Unlock()
	for _, c := range waiting {
		c.Close()
	}
}

// gatedConn returns the first bytes to its reader and frees its place when it is closed.
type gatedConn struct {
	net.Conn
	gate    *gate
	reserve bool // see [reserveQuiet]
	first   []byte
	active  atomic.Int64 // when something was last read or written, in nanoseconds since 1970
	once    sync.Once

	// The following fields are guarded by the gate's lock.
	place *list.Element // its place among the waiting connections; nil if it does not wait
	gone  bool          // closed
}

func (c *gatedConn) Read(b []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.active.Store(time.Now().UnixNano())
	}
	return n, err
}

func (c *gatedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.active.Store(time.Now().UnixNano())
	}
	return n, err
}

func (c *gatedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.gate.mu.Lock()
		c.gone = true
		c.gate.forget(c)
		c.gate.mu.Unlock()
		c.gate.open.Add(-1)
		<-c.gate.slots
	})
	return err
}
