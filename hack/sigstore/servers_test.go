package sigstore

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

const startTime = time.Minute

var (
	openid *issuer
	// public is the instance that the tests sign with.
	public *instance
	// The registries: one has the referrers API, the other has not.
	store, mirror *recorder
	// outside gets what is meant for any other host, and refuses it.
	outside *recorder
	// authority is the timestamp authority of all instances: its program has one port that no flag moves.
	authority *timestamps
)

func TestMain(m *testing.M) {
	status, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// run starts the servers, runs the tests and stops the servers.
func run(m *testing.M) (_ int, err error) {
	for _, name := range []string{"BINDERY", "FULCIO", "REKOR", "TIMESTAMP_SERVER", "COSIGN"} {
		if _, err := exec.LookPath(os.Getenv(name)); err != nil {
			return 1, fmt.Errorf("$%s names no program; run \"make sigstore\": %w", name, err)
		}
	}
	dir, err := os.MkdirTemp("", "bindery-sigstore-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if openid, err = newIssuer(); err != nil {
		return 1, err
	}
	defer openid.Close()
	quiet := registry.Logger(log.New(io.Discard, "", 0))
	store = newRecorder("registry", registry.New(registry.WithReferrersSupport(true), quiet))
	defer store.Close()
	mirror = newRecorder("mirror", registry.New(quiet))
	defer mirror.Close()
	outside = newRecorder("outside", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "nothing is outside", http.StatusForbidden)
	}))
	defer outside.Close()
	if authority, err = startTimestamps(dir); err != nil {
		return 1, err
	}
	defer authority.stop()
	public, err = startInstance(dir)
	if err != nil {
		return 1, err
	}
	defer public.stop()
	return m.Run(), nil
}

// process is a server that runs, with its log in a file.
type process struct {
	command *exec.Cmd
	log     string
	ended   chan struct{}
}

// start starts a program in dir, and waits until it answers a GET of url with anything.
func start(dir, url, program string, args ...string) (*process, error) {
	p := &process{command: exec.Command(program, args...), log: filepath.Join(dir, filepath.Base(program)+".log"), ended: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p.command.Dir, p.command.Stdout, p.command.Stderr = dir, out, out
	p.command.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.command.Wait()
		close(p.ended)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		if answer, err := http.Get(url); err == nil {
			answer.Body.Close()
			return p, nil
		}
		select {
		case <-p.ended:
			text, _ := os.ReadFile(p.log)
			return nil, fmt.Errorf("%s has ended: %s", program, text)
		case <-ctx.Done():
			p.stop()
			text, _ := os.ReadFile(p.log)
			return nil, fmt.Errorf("%s does not answer: %s", program, text)
		case <-again.C:
		}
	}
}

func (p *process) stop() {
	p.command.Process.Kill()
	<-p.ended
}

// timestamps is a timestamp authority.
type timestamps struct {
	*process
	*recorder
	chain string // a file
}

// path is where the authority is asked.
func (a *timestamps) path() string { return a.URL + "/api/v1/timestamp" }

func startTimestamps(dir string) (*timestamps, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(ports[0])
	url := "http://" + ports[0]
	p, err := start(dir, url+"/ping", os.Getenv("TIMESTAMP_SERVER"), "serve", "--host", "127.0.0.1", "--port", port,
		"--timestamp-signer", "memory", "--disable-ntp-monitoring")
	if err != nil {
		return nil, err
	}
	a := &timestamps{p, before("timestamp authority", url), filepath.Join(dir, "timestamps.pem")}
	return a, errors.Join(download(url+"/api/v1/timestamp/certchain", a.chain))
}

func (a *timestamps) stop() {
	a.Close()
	a.process.stop()
}

// instance is Fulcio and Rekor, and what is given to those who sign and verify with them.
type instance struct {
	fulcio, rekor *recorder
	running       []*process
	ca, log       string // files: certificates of Fulcio, public key of Rekor
	root          string // trusted_root.json
	config        string // signing_config.v0.2.json
}

// startInstance starts the servers with new keys; their files are below dir.
func startInstance(dir string) (_ *instance, err error) {
	if dir, err = os.MkdirTemp(dir, "instance-"); err != nil {
		return nil, err
	}
	i := &instance{ca: filepath.Join(dir, "fulcio.pem"), log: filepath.Join(dir, "rekor.pem"), root: filepath.Join(dir, "trusted_root.json"),
		config: filepath.Join(dir, "signing_config.json")}
	defer func() {
		if err != nil {
			i.stop()
		}
	}()
	if err := i.startFulcio(dir); err != nil {
		return nil, err
	}
	if err := i.startRekor(dir); err != nil {
		return nil, err
	}
	return i, errors.Join(
		makeRoot(i.root, i.ofFulcio(), i.ofRekor(), ofAuthority()),
		cosignOffline("signing-config", "create", "--fulcio", service(i.fulcio.URL, 1), "--rekor", service(i.rekor.URL, 2), "--rekor-config", "ANY",
			"--tsa", service(authority.path(), 1), "--tsa-config", "ANY", "--oidc-provider", service(openid.URL, 1), "--out", i.config))
}

func service(url string, version int) string {
	return fmt.Sprintf("url=%s,api-version=%d,start-time=2024-01-01T00:00:00Z,operator=example.com", url, version)
}

// makeRoot writes a trusted root of the given flags of "cosign trusted-root create".
func makeRoot(file string, of ...string) error {
	return cosignOffline(append([]string{"trusted-root", "create", "--out", file}, of...)...)
}

func (i *instance) ofFulcio() string {
	return "--fulcio=url=" + i.fulcio.URL + ",certificate-chain=" + i.ca
}

func (i *instance) ofRekor() string {
	return "--rekor=url=" + i.rekor.URL + ",public-key=" + i.log + ",start-time=2024-01-01T00:00:00Z,origin=127.0.0.1"
}

func ofAuthority() string {
	return "--tsa=url=" + authority.path() + ",certificate-chain=" + authority.chain
}

func (i *instance) startFulcio(dir string) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(ports[0])
	_, grpc, _ := net.SplitHostPort(ports[1])
	_, metrics, _ := net.SplitHostPort(ports[2])
	config := fmt.Sprintf(`oidc-issuers:
  %[1]s: {issuer-url: %[1]s, client-id: sigstore, type: email}
  %[2]s: {issuer-url: %[2]s, client-id: sigstore, type: github-workflow}
`, openid.URL, openid.jobs())
	file := filepath.Join(dir, "fulcio.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	url := "http://" + ports[0]
	p, err := start(dir, url+"/api/v1/rootCert", os.Getenv("FULCIO"), "serve", "--ca", "ephemeralca", "--config-path", file, "--ct-log-url", "",
		"--host", "127.0.0.1", "--port", port, "--grpc-host", "127.0.0.1", "--grpc-port", grpc, "--metrics-port", metrics,
		"--legacy-unix-domain-socket", filepath.Join(dir, "fulcio.sock"))
	if err != nil {
		return err
	}
	i.running, i.fulcio = append(i.running, p), before("fulcio", url)
	return download(url+"/api/v1/rootCert", i.ca)
}

func (i *instance) startRekor(dir string) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(ports[0])
	_, grpc, _ := net.SplitHostPort(ports[1])
	_, metrics, _ := net.SplitHostPort(ports[2])
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private := filepath.Join(dir, "rekor.key")
	if err := errors.Join(writePEM(private, "PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key))),
		writePEM(i.log, "PUBLIC KEY", must(x509.MarshalPKIXPublicKey(key.Public())))); err != nil {
		return err
	}
	url := "http://" + ports[0]
	// Verifiers take the host of the log's URL for its name.
	p, err := start(dir, url+"/healthz", os.Getenv("REKOR"), "serve", "--hostname", "127.0.0.1", "--storage-dir", filepath.Join(dir, "log"),
		"--signer-filepath", private, "--http-address", "127.0.0.1", "--http-port", port, "--grpc-address", "127.0.0.1", "--grpc-port", grpc,
		"--http-metrics-port", metrics, "--checkpoint-interval", "100ms", "--batch-max-age", "10ms")
	if err != nil {
		return err
	}
	i.running, i.rekor = append(i.running, p), before("rekor", url)
	return nil
}

func (i *instance) stop() {
	for _, r := range []*recorder{i.fulcio, i.rekor} {
		if r != nil {
			r.Close()
		}
	}
	for _, p := range i.running {
		p.stop()
	}
}

func writePEM(file, kind string, der []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func download(url, file string) error {
	answer, err := http.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, answer.Status, text)
	}
	return errors.Join(err, os.WriteFile(file, text, 0o600))
}

// freePorts returns addresses on loopback that are free at the moment. They are below those that the kernel gives to
// connections and to listeners that ask for none.
func freePorts(n int) (out []string, _ error) {
	for range 100 * n {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+mathrand.IntN(20_000)))
		if err != nil {
			continue
		}
		defer l.Close()
		if out = append(out, l.Addr().String()); len(out) == n {
			return out, nil
		}
	}
	return nil, errors.New("no port is free")
}

// cosignOffline runs cosign for what needs no server.
func cosignOffline(args ...string) error {
	c := exec.Command(os.Getenv("COSIGN"), args...)
	c.Env = environment(os.TempDir())
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("cosign %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return nil
}
