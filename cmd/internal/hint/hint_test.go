package hint_test

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/hint"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

// Servers answer the first bytes of TLS with HTTP, or with text that has no header.
func TestHintOfServersWithoutTLS(t *testing.T) {
	for _, answer := range []string{"HTTP/1.0 400 Bad Request\r\n\r\n", "<!DOCTYPE HTML>\n<p>bad request"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		go func() {
			if c, err := listener.Accept(); err == nil {
				_, _ = bufio.NewReader(c).ReadByte()
				_, _ = c.Write([]byte(answer))
				c.Close()
			}
		}()
		_, err = http.Get("https://" + listener.Addr().String() + "/v2/")
		var advised *cmdline.Error
		if !errors.As(hint.Add(&program.Program{}, err), &advised) || !strings.Contains(advised.Hint, "--use-http") {
			t.Errorf("%q: %v has no hint", answer, err)
		}
	}
}
