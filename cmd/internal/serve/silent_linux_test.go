package serve_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// Clients that say nothing, or begin and then say nothing, keep no other client out: neither pages nor metrics nor probes, however
// few files the process may have open.
func TestSilentClientsKeepNobodyOut(t *testing.T) {
	for _, files := range []string{"128", "1024"} {
		t.Run(files+" files", func(t *testing.T) {
			t.Parallel()
			dir := clitest.WorkDir(t)
			grpc, pages, metrics := clitest.FreePort(t), clitest.FreePort(t), clitest.FreePort(t)
			cmd := clitest.Command(dir, "bindery", "serve", "cat", "-p", grpc, "--http-addr", "127.0.0.1:"+pages, "--metrics-addr",
				"127.0.0.1:"+metrics)
			cmd.Args = append([]string{"sh", "-c", "ulimit -n " + files + ` && exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
			var err error
			if cmd.Path, err = exec.LookPath("sh"); err != nil {
				t.Fatal(err)
			}
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ready := make(chan struct{})
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for lines := bufio.NewScanner(stderr); lines.Scan(); {
					if strings.Contains(lines.Text(), "serving registry") {
						close(ready)
					}
				}
			}()
			select {
			case <-ready:
			case <-ended:
				t.Fatal("the server has ended")
			}
			for _, attack := range []struct{ name, port, says string }{
				{"pages, nothing", pages, ""},
				{"pages, half a line", pages, "GET / HT"},
				{"pages, half the headers", pages, "GET / HTTP/1.1\r\nHost: x\r\nAccept: *"},
				{"pages, between requests", pages, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"},
				{"pages, half a body", pages, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"},
				{"metrics, half a line", metrics, "GET / HT"},
				{"gRPC, nothing", grpc, ""},
				{"gRPC, half a greeting", grpc, http2.ClientPreface[:10]},
				{"gRPC, a greeting", grpc, http2.ClientPreface},
				{"gRPC, a greeting and settings", grpc, http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"},
			} {
				var silent []net.Conn
				for range 300 {
					if c, err := net.DialTimeout("tcp", "127.0.0.1:"+attack.port, 10*time.Second); err == nil {
						silent = append(silent, c)
						_, _ = io.WriteString(c, attack.says) // it may be closed already
					}
				}
				if len(silent) < 200 {
					t.Errorf("%s: %d connections", attack.name, len(silent))
				}
				client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
				for range 3 {
					for _, url := range []string{"http://127.0.0.1:" + pages + "/", "http://127.0.0.1:" + metrics + "/metrics"} {
						resp, err := client.Get(url)
						// On a busy machine its request may come late, when the connection is closed: browsers ask again.
						if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
							resp, err = client.Get(url)
						}
						if err != nil {
							t.Errorf("%s: %v", attack.name, err)
							continue
						}
						resp.Body.Close()
					}
					if got := clitest.RunProgram(t, dir, "grpc_health_probe", "-addr", "127.0.0.1:"+grpc, "-connect-timeout", "5s",
						"-rpc-timeout", "5s"); got.Status != 0 {
						t.Errorf("%s: %+v", attack.name, got)
					}
				}
				for _, c := range silent {
					c.Close()
				}
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			<-ended
			if err := cmd.Wait(); err != nil {
				t.Error(fmt.Errorf("the server: %w", err))
			}
		})
	}
}
