package registry

import (
	"context"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/keyed"
)

// knownBlobs knows which repository of one registry has a blob, and which blobs are being written.
type knownBlobs struct {
	writing keyed.Locks[string]

	mu      sync.Mutex
	at      map[digest.Digest]string // HOST/PATH
	mounted int
	refused int
}

func newKnownBlobs() *knownBlobs { return &knownBlobs{at: map[digest.Digest]string{}} }

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

func (k *knownBlobs) repositoriesOf(d digest.Digest) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if name, ok := k.at[d]; ok {
		return []string{name}
	}
	return nil
}

func (k *knownBlobs) addRepository(name string, d digest.Digest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.at[d]; !ok && len(k.at) < maxKnownBlobs {
		k.at[d] = name
	}
}

// startWriting waits until nothing else writes the blob: to the repository, or to the registry if that mounts blobs.
// The caller calls done with what has happened: whether the repository has the blob, whether a mount was tried, and
// whether it was granted.
func (k *knownBlobs) startWriting(ctx context.Context, name string,
	d digest.Digest) (done func(there, tried, mounted bool), err error) {
	key := d.String()
	if !k.mounts() {
		key = name + "@" + key
	}
	unlock, err := k.writing.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	return func(there, tried, mounted bool) {
		defer unlock()
		if there {
			k.addRepository(name, d)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		switch {
		case mounted:
			k.mounted++
		case tried:
			k.refused++
		}
	}, nil
}
