package cluster

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

const (
	token     = "administrator"
	startTime = 2 * time.Minute
)

var (
	bindery   string  // the program
	apiserver *server // what the tests ask
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

// run starts the server, runs the tests and stops the server.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bindery-cluster-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if bindery, err = filepath.Abs(os.Getenv("BINDERY")); err == nil {
		_, err = exec.LookPath(bindery)
	}
	if err == nil {
		apiserver, err = start(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer apiserver.stop()
	if err := apiserver.define(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// server is an API server that runs, with its store.
type server struct {
	config     *rest.Config
	kubeconfig string // a file
	client     *dynamic.DynamicClient
	mapper     *restmapper.DeferredDiscoveryRESTMapper
	running    []*exec.Cmd
}

// start starts etcd and kube-apiserver, which keep their files in dir, and waits until the server answers.
func start(dir string) (_ *server, err error) {
	s := &server{kubeconfig: filepath.Join(dir, "kubeconfig")}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	store, peer := "http://"+ports[0], "http://"+ports[1]
	if err := s.command(dir, "etcd", "--data-dir", filepath.Join(dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", store, "--advertise-client-urls", store, "--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer); err != nil {
		return nil, err
	}
	key, tokens := filepath.Join(dir, "key.pem"), filepath.Join(dir, "tokens.csv")
	if err := errors.Join(writeKey(key), os.WriteFile(tokens, []byte(token+",admin,admin,system:masters\n"), 0o600)); err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(ports[2])
	if err != nil {
		return nil, err
	}
	program := os.Getenv("KUBE_APISERVER")
	if program == "" {
		return nil, errors.New("$KUBE_APISERVER does not name the server; run \"make cluster\"")
	}
	// Pods of a dry run need no service account that a controller would make.
	if err := s.command(dir, program, "--etcd-servers", store, "--bind-address", "127.0.0.1", "--secure-port", port,
		"--cert-dir", filepath.Join(dir, "certificates"), "--token-auth-file", tokens, "--authorization-mode", "RBAC",
		"--service-account-key-file", key, "--service-account-signing-key-file", key, "--service-account-issuer",
		"https://kubernetes.default.svc", "--service-cluster-ip-range", "10.0.0.0/24", "--disable-admission-plugins",
		"ServiceAccount"); err != nil {
		return nil, err
	}
	s.config = &rest.Config{Host: "https://" + ports[2], BearerToken: token, QPS: 1000, Burst: 1000,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	if err := os.WriteFile(s.kubeconfig, []byte(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "`+s.config.Host+`", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: `+token+`}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`), 0o600); err != nil {
		return nil, err
	}
	asked, err := discovery.NewDiscoveryClientForConfig(s.config)
	if err != nil {
		return nil, err
	}
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(asked))
	if s.client, err = dynamic.NewForConfig(s.config); err != nil {
		return nil, err
	}
	return s, within(startTime, func(ctx context.Context) error {
		return asked.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// command starts a program whose log goes to a file in dir.
func (s *server) command(dir, program string, args ...string) error {
	log, err := os.Create(filepath.Join(dir, filepath.Base(program)+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	c := exec.Command(program, args...)
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		return err
	}
	s.running = append(s.running, c)
	return nil
}

// stop ends the programs, the last one first.
func (s *server) stop() {
	for i := len(s.running) - 1; i >= 0; i-- {
		s.running[i].Process.Kill()
		s.running[i].Wait()
	}
}

// within repeats what may fail at first until it succeeds.
func within(limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		err := do(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %w", limit, err)
		case <-again.C:
		}
	}
}

// freePorts returns addresses on loopback that are free at the moment. They are below those that the kernel gives to
// connections and to listeners that ask for none.
func freePorts(n int) ([]string, error) {
	var out []string
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

// writeKey writes the key with which the server signs tokens of service accounts.
func writeKey(path string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600)
}

// resource returns the client for the kind of an object; objects with namespaces are in the given one unless they name one.
func (s *server) resource(o *unstructured.Unstructured, namespace string) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	m, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if m.Scope.Name() == "root" {
		return s.client.Resource(m.Resource), nil
	}
	if o.GetNamespace() != "" {
		namespace = o.GetNamespace()
	}
	return s.client.Resource(m.Resource).Namespace(namespace), nil
}

// create creates an object, or tries to as a dry run, in which the object may be there; an unknown field is an error.
func (s *server) create(ctx context.Context, o *unstructured.Unstructured, namespace string, dry bool) (*unstructured.Unstructured, error) {
	r, err := s.resource(o, namespace)
	if err != nil {
		return nil, err
	}
	options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return r.Create(ctx, o, options)
}
