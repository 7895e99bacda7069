package registries

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/registry"
)

// Repository is a repository of a [Client]: a [store.Writer] that also tells whether it has a blob (HasBlob), and
// deletes a manifest with all its tags (Delete: fs.ErrNotExist, ErrNoDelete).
//
// A blob that another repository of the same registry has, as far as this process or its source knows, is mounted
// and not sent; one that is just being sent to another repository is waited for. It is safe for concurrent use.
type Repository struct {
	*registry.Repository
	known *knownBlobs
}

var _ store.Writer = (*Repository)(nil)

// WriteBlob writes a blob unless it is there, as [store.Writer] says.
func (r *Repository) WriteBlob(ctx context.Context, d v1.Descriptor, c store.Content) (from string, err error) {
	done, err := r.known.begin(ctx, r.Name(), d.Digest)
	if err != nil {
		return "", err
	}
	if r.known.mounts() {
		c.Repositories = append(r.known.of(d.Digest), c.Repositories...)
	} else {
		c.Repositories = nil
	}
	var sent atomic.Bool
	open := c.Open
	c.Open = func(ctx context.Context, at int64) (io.ReadCloser, error) {
		sent.Store(true)
		return open(ctx, at)
	}
	from, err = r.Repository.WriteBlob(ctx, d, c)
	done(err == nil, len(c.Repositories) > 0 && (sent.Load() || from != ""), from != "")
	return from, err
}

// knownBlobs knows which repository of one registry has a blob, and which blobs are being written.
type knownBlobs struct {
	mu      sync.Mutex
	at      map[digest.Digest]string // HOST/PATH
	busy    map[string]chan struct{}
	mounted int
	refused int
}

func newKnownBlobs() *knownBlobs {
	return &knownBlobs{at: map[digest.Digest]string{}, busy: map[string]chan struct{}{}}
}

const (
	// maxKnownBlobs bounds the memory: about 200 bytes for each.
	maxKnownBlobs = 200_000
	// mountRefusals is after how many refusals a registry counts as one that does not mount.
	mountRefusals = 8
)

// mounts tells whether the registry mounts blobs, as far as it has answered.
func (k *knownBlobs) mounts() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mounted > 0 || k.refused < mountRefusals
}

func (k *knownBlobs) of(d digest.Digest) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if name, ok := k.at[d]; ok {
		return []string{name}
	}
	return nil
}

func (k *knownBlobs) note(name string, d digest.Digest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.at[d]; !ok && len(k.at) < maxKnownBlobs {
		k.at[d] = name
	}
}

// begin waits until nothing else writes the blob: to the repository, or to the registry if that mounts blobs. The
// caller calls done with what has happened: whether the repository has the blob, whether a mount was tried, and whether
// it was granted.
func (k *knownBlobs) begin(ctx context.Context, name string,
	d digest.Digest) (done func(there, tried, mounted bool), err error) {
	key := d.String()
	if !k.mounts() {
		key = name + "@" + key
	}
	for {
		k.mu.Lock()
		other := k.busy[key]
		if other == nil {
			k.busy[key] = make(chan struct{})
		}
		k.mu.Unlock()
		if other == nil {
			break
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return func(there, tried, mounted bool) {
		if there {
			k.note(name, d)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		switch {
		case mounted:
			k.mounted++
		case tried:
			k.refused++
		}
		close(k.busy[key])
		delete(k.busy, key)
	}, nil
}
