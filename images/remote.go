package images

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/blobcache"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/transfer"
	"github.com/operator-bindery/bindery/internal/verify"
)

// remote speaks to registries, in the distribution protocol: where credentials go, what
// a redirect may do and how often something is tried again are decided here. What is configured on the machine -
// registries.conf, certificates - is read by the containers library.
type remote struct {
	o     remoteOptions
	sys   *types.SystemContext
	event func(transfer.Event)
	creds *credentialStore
	conf  string // the registries.conf that counts, if it is in an old format

	mu           sync.Mutex
	hosts        map[hostKey]*registryHost
	repositories map[repositoryKey]*repository
	warned       map[string]bool
}

// remoteOptions say how registries are asked.
type remoteOptions struct {
	Registry Registry
	// Retries is how many more times a request is made when the registry is busy or failing or the connection breaks.
	Retries int
	// Backoff is the first pause between two attempts; it doubles, up to 30 seconds. Zero means one second.
	Backoff time.Duration
	// Stall ends an attempt in which less than 16 KiB arrive for so long; one minute by default.
	Stall time.Duration
	// Cache keeps what registries gave; nil keeps nothing.
	Cache *blobcache.Cache
}

// newRemote returns a client of registries. What is configured on the machine is in sys; event receives retries and
// warnings.
func newRemote(o remoteOptions, sys *types.SystemContext, event func(transfer.Event)) *remote {
	r := &remote{
		o: o, sys: sys, event: event,
		hosts: map[hostKey]*registryHost{}, repositories: map[repositoryKey]*repository{}, warned: map[string]bool{},
	}
	if old, err := o.Registry.oldConf(); err == nil && old != nil { // an error has been reported by System
		r.conf = old.path
		r.warn(r.conf, transfer.Event{Kind: transfer.EventWarning, Err: fmt.Errorf(
			"%s is in version 1 of its format: its lists of blocked and insecure registries count; "+
				"containers-registries.conf(5) has version 2", old.path)})
	}
	r.creds = newCredentialStore(o.Registry, sys, func(err error) { r.warn(err.Error(), transfer.Event{Kind: transfer.EventWarning, Err: err}) })
	return r
}

func (r *remote) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.hosts {
		h.client.CloseIdleConnections()
	}
}

// warn tells of something once.
func (r *remote) warn(text string, e transfer.Event) {
	r.mu.Lock()
	tell := !r.warned[text] && len(r.warned) < maxWarnings
	if tell {
		r.warned[text] = true
	}
	r.mu.Unlock()
	if tell {
		r.event(e)
	}
}

// maxWarnings is how many different warnings are passed on: registries send them as they like.
const maxWarnings = 100

// open gets the manifest that a name stands for, from the first mirror that has it or from the registry itself.
func (r *remote) open(ctx context.Context, ref types.ImageReference, named reference.Named) (*registrySource, error) {
	sources, err := r.endpoints(named)
	if err != nil {
		return nil, registryError{err}
	}
	var failed []string
	for i, from := range sources {
		last := i == len(sources)-1
		s, err := r.openAt(ctx, ref, from, last)
		if err == nil {
			return s, nil
		}
		if last || ctx.Err() != nil {
			if len(failed) > 0 {
				err = fmt.Errorf("%w (mirrors failed too: %s)", err, strings.Join(failed, "; "))
			}
			return nil, remoteError(err)
		}
		failed = append(failed, fmt.Sprintf("%s: %.300s", from.Reference, redact.Text(err.Error())))
	}
	return nil, registryError{fmt.Errorf("no place to get %s from", named)}
}

// endpoints are the places an image can be had from, mirrors first (containers-registries.conf(5)).
func (r *remote) endpoints(named reference.Named) ([]sysregistriesv2.PullSource, error) {
	found, err := r.configured(named)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return []sysregistriesv2.PullSource{{Reference: named}}, nil
	}
	return found.PullSourcesFromReference(named)
}

// configured is what registries.conf says of a repository; nil if it says nothing. A registry that it blocks is an error.
func (r *remote) configured(named reference.Named) (*sysregistriesv2.Registry, error) {
	found, err := sysregistriesv2.FindRegistry(r.sys, named.Name())
	if err != nil {
		var file *fs.PathError
		switch {
		case homeless(err):
			return nil, nil
		case errors.As(err, &file):
			return nil, fmt.Errorf("registries.conf: %w", err)
		default:
			return nil, fmt.Errorf("registries.conf: %w: %w", fault.ErrInvalid, err)
		}
	}
	if found != nil && found.Blocked {
		where := cmp.Or(r.o.Registry.RegistriesConf, r.conf)
		if where == "" {
			where = sysregistriesv2.ConfigurationSourceDescription(r.sys)
		}
		return nil, fmt.Errorf("registry %s is blocked in %s", found.Prefix, where)
	}
	return found, nil
}

func (r *remote) openAt(ctx context.Context, ref types.ImageReference, from sysregistriesv2.PullSource, last bool) (*registrySource, error) {
	repo, err := r.repository(from)
	if err != nil {
		return nil, err
	}
	s := &registrySource{ref: ref, repo: repo, cache: r.o.Cache, source: from.Reference.String()}
	retries := r.o.Retries
	if !last {
		retries = 0 // the next place is as good as another attempt
	}
	switch name := from.Reference.(type) {
	case reference.Canonical:
		s.text, s.kind, err = s.manifest(ctx, name.Digest().String(), retries)
	case reference.Tagged:
		s.text, s.kind, err = s.manifest(ctx, name.Tag(), retries)
	default:
		err = fmt.Errorf("%w: %s has neither a tag nor a digest", fault.ErrInvalid, name)
	}
	return s, err
}

// remoteError gives an error the class [ErrRegistry] unless it is about content.
func remoteError(err error) error {
	for _, class := range []error{fault.ErrInvalid, fault.ErrLimit, fault.ErrIntegrity, fault.ErrRegistry} {
		if errors.Is(err, class) {
			return err
		}
	}
	return registryError{err}
}

// registrySource is an image in a registry. What its tag names has been read; everything else is read by digest.
type registrySource struct {
	ref    types.ImageReference
	repo   *repository
	cache  *blobcache.Cache
	source string
	text   []byte
	kind   string
}

var _ types.ImageSource = (*registrySource)(nil)

func (s *registrySource) GetManifest(ctx context.Context, instance *digest.Digest) ([]byte, string, error) {
	if instance == nil {
		return bytes.Clone(s.text), s.kind, nil
	}
	if err := verify.Digest(*instance); err != nil {
		return nil, "", err
	}
	text, kind, err := s.manifest(ctx, instance.String(), s.repo.host.r.o.Retries)
	if err != nil {
		return nil, "", remoteError(err)
	}
	return text, kind, nil
}

// manifest gets a manifest by its tag or digest, from the cache if that has it.
func (s *registrySource) manifest(ctx context.Context, name string, retries int) (text []byte, kind string, err error) {
	want := digest.Digest(name)
	if verify.Digest(want) != nil {
		want = ""
	} else if r, ok := s.cache.Open(want, -1); ok {
		defer r.Close()
		text, err := io.ReadAll(io.LimitReader(r, limit.MaxManifest+1))
		if err == nil && digest.FromBytes(text) == want {
			return text, manifest.GuessMIMEType(text), nil
		}
	}
	if text, kind, err = s.repo.manifest(ctx, name, retries); err != nil {
		return nil, "", err
	}
	got := digest.FromBytes(text)
	if want != "" && got != want {
		return nil, "", fmt.Errorf("%w: digest mismatch: %s instead of %s", fault.ErrIntegrity, got, want)
	}
	keep := s.cache.Tee(got, int64(len(text)), io.NopCloser(bytes.NewReader(text)))
	_, err = io.Copy(io.Discard, keep)
	return text, kind, errors.Join(err, keep.Close())
}

func (s *registrySource) GetBlob(ctx context.Context, info types.BlobInfo, _ types.BlobInfoCache) (io.ReadCloser, int64, error) {
	if err := verify.Digest(info.Digest); err != nil {
		return nil, 0, err
	}
	r, err := s.repo.blob(ctx, v1.Descriptor{Digest: info.Digest, Size: info.Size})
	if err != nil {
		return nil, 0, remoteError(err)
	}
	return r, info.Size, nil
}

func (s *registrySource) Reference() types.ImageReference { return s.ref }
func (s *registrySource) Close() error                    { return nil }
func (s *registrySource) HasThreadSafeGetBlob() bool      { return true }

// GetSignatures finds none: signatures are read by the library, see [Client.allowed].
func (s *registrySource) GetSignatures(context.Context, *digest.Digest) ([][]byte, error) {
	return nil, nil
}

// LayerInfosForCopy says that the layers are as the manifest has them.
func (s *registrySource) LayerInfosForCopy(context.Context, *digest.Digest) ([]types.BlobInfo, error) {
	return nil, nil
}
