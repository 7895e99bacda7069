package images

import (
	"github.com/operator-bindery/bindery/internal/blobcache"
)

// Cache stores manifests and blobs of registries in a directory that all processes of one user may share. Blobs are
// compared with their digests each time they are read. It is safe for concurrent use.
type Cache = blobcache.Cache

// OpenCache opens the cache in a directory, which is created when the first blob is stored. maxBytes bounds its size; 0
// means the default.
func OpenCache(dir string, maxBytes int64) (*Cache, error) {
	return blobcache.Open(dir, blobcache.Options{MaxBytes: maxBytes})
}
