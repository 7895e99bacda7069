package clitest

import (
	"bytes"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// ports counts the ports of [FreePort]. Tests of other packages begin elsewhere.
var ports atomic.Int32

// FreePort returns an unused TCP port, a different one each time. It is below those that the kernel gives to connections and
// to listeners that ask for none, which would take it before the program listens.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(10_000 + (os.Getpid()*97+int(ports.Add(1)))%20_000)
		if l, err := net.Listen("tcp", ":"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// ExampleImageSet is the configuration of the examples that mirror.
const ExampleImageSet = `kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: registry.example.com/acme/catalog:v1
    packages:
    - name: etcd
`

// ServeUntilStopped starts the program as a server on a port, waits until it is healthy, and returns a function that
// stops it and checks its exit.
func ServeUntilStopped(t *testing.T, dir, port string, args ...string) (stop func()) {
	t.Helper()
	return ServeAs(t, "bindery", dir, port, args...)
}

// ServeAs is serveUntilStopped for another name of the program.
func ServeAs(t *testing.T, name, dir, port string, args ...string) (stop func()) {
	t.Helper()
	return ServeProbed(t, name, dir, []string{"-addr", "127.0.0.1:" + port}, args...)
}

// ServeProbed is serveAs for a server that needs other flags of the probe.
func ServeProbed(t *testing.T, name, dir string, probeArgs []string, args ...string) (stop func()) {
	t.Helper()
	cmd := Command(dir, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	deadline := time.After(time.Minute)
	for {
		probe := RunProgram(t, dir, "grpc_health_probe", append([]string{"-connect-timeout", "200ms"}, probeArgs...)...)
		if probe.Status == 0 {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the server ended: %v\n%s", err, stderr.String())
		case <-deadline:
			_ = cmd.Process.Kill()
			t.Fatalf("the server is not healthy: %+v\n%s", probe, stderr.String())
		default:
		}
	}
	return func() {
		t.Helper()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the server ended with %v\n%s", err, stderr.String())
			}
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
			t.Error("the server does not end")
		}
	}
}
