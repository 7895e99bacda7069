package clitest

import (
	"net"
	"testing"
)

// Listen accepts connections and never answers; accepted receives a value for each.
func Listen(t *testing.T) (addr string, accepted <-chan struct{}) {
	t.Helper()
	ch := make(chan struct{}, 100)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			ch <- struct{}{}
			defer c.Close()
		}
	}()
	return l.Addr().String(), ch
}
