package serve

import (
	"errors"

	"github.com/operator-bindery/bindery/internal/fault"
)

// The errors of [Run] and [Load], and those about unusable cache files, for use with [errors.Is].
var (
	// ErrListen is returned for a port that cannot be listened on.
	ErrListen = errors.New("failed to listen")
	// ErrTLSFlags is returned for a certificate without a key, or a key without a certificate.
	ErrTLSFlags = errors.New("--tls-cert and --tls-key go together")
	// ErrIntegrity is returned for a cache that does not match its catalog if integrity is enforced.
	ErrIntegrity = fault.New(fault.Integrity, "integrity check failed")
	// ErrNoCacheDir is returned if integrity is enforced without a cache.
	ErrNoCacheDir = errors.New("--cache-dir must be specified")
	// ErrCorrupt is returned for a cache file whose bytes have changed since it was written.
	ErrCorrupt = fault.New(fault.Integrity, "cache file is corrupt")
	// ErrVersion is returned for a cache file of another format or another version of it.
	ErrVersion = errors.New("cache file has another format version")
	// ErrTooLarge is returned for a catalog that exceeds the limits of the format.
	ErrTooLarge = errors.New("package is too large for a cache file")
)
