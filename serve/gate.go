package serve

import (
	"container/list"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// greetingSize is the length of the fixed text with which an HTTP/2 client begins (RFC 9113 section 3.4). A TLS client
// begins with a longer message.
const greetingSize = 24

// gate is a listener in front of the gRPC server. It passes a connection on when the client has sent its first bytes,
// because from then on the connection costs many times as much memory. It limits the number of connections, so that
// file descriptors and memory are bounded.
type gate struct {
	net.Listener
	wait  time.Duration
	slots chan struct{}
	ready chan net.Conn

	accepted, evicted atomic.Uint64
	open              atomic.Int64

	mu      sync.Mutex
	waiting *list.List // of *gatedConn, the one that waits longest first
	greeted map[*gatedConn]struct{}
	closed  chan struct{}
	err     error
}

func newGate(l net.Listener, connections int, wait time.Duration) *gate {
	g := &gate{
		Listener: l,
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
		go g.greet(&gatedConn{Conn: conn, gate: g, first: make([]byte, greetingSize)})
	}
}

// slot waits for a free place for a connection; it returns false when the gate is closed.
func (g *gate) slot() bool {
	const again = 100 * time.Millisecond
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

// evict closes the connection that has waited longest for its client's first bytes, or else the one whose client has
// been silent longest, if that exceeds the time for the first bytes. Live clients reconnect when they have a question.
func (g *gate) evict() {
	if victim := g.silent(time.Now()); victim != nil {
		g.evicted.Add(1)
		victim.Close()
	}
}

func (g *gate) silent(now time.Time) (victim *gatedConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if oldest := g.waiting.Front(); oldest != nil {
		return g.waiting.Remove(oldest).(*gatedConn)
	}
	heard := now.Add(-g.wait).UnixNano()
	for c := range g.greeted {
		if at := c.heard.Load(); at <= heard {
			victim, heard = c, at
		}
	}
	return victim
}

// greet waits for the first bytes of a client.
func (g *gate) greet(c *gatedConn) {
	g.mu.Lock()
	if g.err != nil {
		g.mu.Unlock()
		c.Close()
		return
	}
	place := g.waiting.PushBack(c)
	g.mu.Unlock()
	c.SetReadDeadline(time.Now().Add(g.wait))
	_, err := io.ReadFull(c.Conn, c.first)
	c.heard.Store(time.Now().UnixNano())
	g.mu.Lock()
	g.waiting.Remove(place)
	// A connection that was evicted meanwhile must not be added: it would stay in the map and be evicted again and
	// again.
	if err == nil && !c.gone {
		g.greeted[c] = struct{}{}
	}
	g.mu.Unlock()
	if err != nil {
		c.Close()
		return
	}
	c.SetReadDeadline(time.Time{})
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
	for e := g.waiting.Front(); e != nil; e = e.Next() {
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
	gate  *gate
	first []byte
	heard atomic.Int64 // when the client last sent something, in nanoseconds since 1970
	once  sync.Once
	gone  bool // closed; guarded by the gate's lock
}

func (c *gatedConn) Read(b []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

func (c *gatedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.gate.mu.Lock()
		c.gone = true
		delete(c.gate.greeted, c)
		c.gate.mu.Unlock()
		c.gate.open.Add(-1)
		<-c.gate.slots
	})
	return err
}
