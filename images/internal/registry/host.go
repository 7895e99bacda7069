package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/pkg/tlsclientconfig"

	"github.com/operator-bindery/bindery/internal/keyed"
	"github.com/operator-bindery/bindery/internal/webclient"
)

// hostKey identifies a way to reach a registry.
type hostKey struct {
	name        string // as in references
	skip, plain bool
}

// host is one registry, with its connections and the authentication that it requires.
type host struct {
	hostKey
	r       *Client
	address string // HOST:PORT of its connections
	client  *http.Client

	scheme     keyed.Memo[struct{}, string] // if it may be http
	challenges atomic.Pointer[[]challenge]

	known        *knownBlobs
	referrersAPI hostAPI
	noPatch      atomic.Bool // the registry refuses PATCH
	// onePost tells whether the registry takes a blob in the request that opens its upload: onePostUnknown, onePostAsked,
	// onePostTaken or onePostRefused.
	onePost atomic.Int32
	// noSparse is the answer by which it has refused an index of which manifests are missing; nil if it has not.
	noSparse atomic.Pointer[error]
}

func (r *Client) host(name string, insecure bool) (*host, error) {
	key := hostKey{name: name, skip: insecure, plain: insecure}
	if skip := r.o.Registry.SkipTLSVerify; skip != nil {
		key.skip, key.plain = *skip, *skip && insecure
	}
	key.plain = key.plain || r.o.Registry.PlainHTTP
	r.mu.Lock()
	defer r.mu.Unlock()
	if h, ok := r.hosts[key]; ok {
		return h, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: key.skip} //nolint:gosec // an option of the user
	if err := r.setupCertificates(name, config); err != nil {
		return nil, err
	}
	h := &host{hostKey: key, r: r, address: name, known: newKnownBlobs()}
	if name == "docker.io" {
		h.address = "registry-1.docker.io"
	}
	transport := webclient.NewTransport(config)
	transport.DisableCompression = true // digests are those of the bytes on the wire
	transport.MaxIdleConnsPerHost = 64
	h.client = webclient.New(transport)
	r.hosts[key] = h
	return h, nil
}

// setupCertificates adds the certificates for a registry.
func (r *Client) setupCertificates(host string, to *tls.Config) error {
	dir, err := r.certificates(host)
	if err != nil {
		return err
	}
	if dir != "" {
		if err := tlsclientconfig.SetupCertificates(dir, to); err != nil {
			return fmt.Errorf("certificates in %s: %w", dir, err)
		}
	}
	authorities, err := r.o.Registry.authorities(context.Background())
	if err != nil || authorities == nil {
		return err
	}
	if to.RootCAs == nil {
		if to.RootCAs, err = x509.SystemCertPool(); err != nil {
			return err
		}
	}
	to.RootCAs.AppendCertsFromPEM(authorities)
	return nil
}

// certificates returns the directory with the certificates for a registry (containers-certs.d(5)); empty if there is
// none. Those that the user names take the place of the system's.
func (r *Client) certificates(host string) (string, error) {
	if r.o.Registry.CertDir != "" || r.o.Registry.CAFile != "" {
		return r.o.Registry.CertDir, nil
	}
	for _, base := range slices.Concat(r.o.Registry.CertDirs,
		[]string{"/etc/containers/certs.d", "/etc/docker/certs.d"}) {
		dir := filepath.Join(base, host)
		switch _, err := os.Stat(dir); {
		case err == nil:
			return dir, nil
		case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission):
			return "", err
		}
	}
	return "", nil
}

// repositoryKey identifies a repository of a registry.
type repositoryKey struct {
	host hostKey
	path string
}

// maxRepositories is how many repositories are remembered with their tokens.
const maxRepositories = 4096

// repository is a repository in a registry, with the credentials for it.
type repository struct {
	host *host
	path string
	name reference.Named
	// scopes are the scopes of tokens; by default, pulling from the repository, and none without a path.
	scopes []string

	mu       sync.Mutex
	known    bool
	creds    credentials
	token    string
	tokenEnd time.Time
}

// repository returns the repository that is read at an endpoint. The error is that of [Client.allowed].
func (r *Client) repository(from sysregistriesv2.PullSource) (*repository, error) {
	name := reference.TrimNamed(from.Reference)
	if _, err := r.allowed(name); err != nil {
		return nil, err
	}
	host, err := r.host(reference.Domain(name), from.Endpoint.Insecure)
	if err != nil {
		return nil, err
	}
	key := repositoryKey{host.hostKey, reference.Path(name)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if repo, ok := r.repositories[key]; ok {
		return repo, nil
	}
	repo := &repository{host: host, path: key.path, name: name}
	if len(r.repositories) >= maxRepositories {
		clear(r.repositories) // of a list of very many images each is mostly in one of its own, which is asked once
	}
	r.repositories[key] = repo
	return repo, nil
}

// pushTo returns the repository for pushes. Mirrors are only for reading (containers-registries.conf(5)). The error is
// that of [Client.allowed].
func (r *Client) pushTo(named reference.Named) (*repository, error) {
	found, err := r.allowed(named)
	if err != nil {
		return nil, err
	}
	host, err := r.host(reference.Domain(named), found != nil && found.Insecure)
	if err != nil {
		return nil, err
	}
	path := reference.Path(named)
	return &repository{host: host, path: path, name: reference.TrimNamed(named),
		scopes: []string{"repository:" + path + ":pull,push"}}, nil
}

// withScopes returns the same repository with other tokens.
func (p *repository) withScopes(scopes ...string) *repository {
	return &repository{host: p.host, path: p.path, name: p.name, scopes: scopes}
}

// base returns the URL of the registry. If plain HTTP is allowed, its scheme is found out by one request, which
// concurrent requests share.
func (h *host) base(ctx context.Context) (_ *url.URL, err error) {
	defer func() { err = h.r.withEnd(err) }()
	scheme := "https"
	if h.plain {
		if scheme, err = h.scheme.Get(ctx, struct{}{}, h.findScheme); err != nil {
			return nil, err
		}
	}
	return &url.URL{Scheme: scheme, Host: h.address, Path: "/v2/"}, nil
}

// findScheme sends a request with TLS, and then one without, unless the registry speaks TLS and cannot be trusted.
func (h *host) findScheme(ctx context.Context) (string, error) {
	var first error
	for _, scheme := range []string{"https", "http"} {
		resp, err := h.send(ctx, &request{url: &url.URL{Scheme: scheme, Host: h.address, Path: "/v2/"}})
		if err == nil {
			h.learn(resp.Header)
			passOver(resp)
			return scheme, nil
		}
		if first == nil || errors.Is(first, http.ErrSchemeMismatch) {
			first = err
		}
		if ctx.Err() != nil || !h.skip && speaksTLS(err) {
			return "", first
		}
	}
	return "", fmt.Errorf("%w (https and http were tried)", first)
}

// speaksTLS tells whether an error is of a server with TLS, such as one with an unknown certificate.
func speaksTLS(err error) bool {
	var other tls.RecordHeaderError
	return strings.Contains(err.Error(), "tls: ") && !errors.As(err, &other) && !errors.Is(err, http.ErrSchemeMismatch)
}

// passOver closes an answer whose body is not needed. A short body is read first, so that the connection can be reused.
func passOver(resp *http.Response) {
	if n := resp.ContentLength; n >= 0 && n <= 4<<10 {
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	resp.Body.Close()
}

// learn keeps the challenges of an answer.
func (h *host) learn(header http.Header) {
	if found := parseChallenges(header.Values("WWW-Authenticate")); len(found) > 0 {
		h.challenges.Store(&found)
	}
}

func (h *host) wanted() []challenge {
	if known := h.challenges.Load(); known != nil {
		return *known
	}
	return nil
}
