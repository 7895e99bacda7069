package serve

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener of in-process connections.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// connect is a client of the listener.
func (p pipes) connect(t *testing.T, says []byte) net.Conn {
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close() })
	p <- server
	go client.Write(says)
	synctest.Wait()
	return client
}

// Connections evicted before their clients sent anything are removed: they are not evicted again instead of open ones.
func TestClosedConnectionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 3
		l := make(pipes)
		g := newGate(l, limit, greetingSize, 10*time.Second)
		go func() {
			for {
				if _, err := g.Accept(); err != nil {
					return
				}
			}
		}()
		greeting := bytes.Repeat([]byte("x"), greetingSize)
		for range 5 * limit {
			l.connect(t, nil)
		}
		if n := len(g.greeted); n != 0 {
			t.Errorf("%d connections that said nothing are among those that did", n)
		}
		var old []net.Conn
		for range limit {
			old = append(old, l.connect(t, greeting))
			time.Sleep(time.Millisecond) // advances the clock
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		before := g.evicted.Load()
		l.connect(t, greeting)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := g.evicted.Load() - before; n == 0 || n > limit {
			t.Errorf("%d connections had to go for a new one", n)
		}
		if n := int64(len(g.greeted)); n != g.open.Load() {
			t.Errorf("%d connections are known, of %d that are open", n, g.open.Load())
		}
		old[0].SetReadDeadline(time.Now().Add(time.Second))
		if _, err := old[0].Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the client that was silent for longest is still there: %v", err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}
