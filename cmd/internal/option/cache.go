package option

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/cmd/internal/secret"
	"github.com/operator-bindery/bindery/images/blobcache"
	"github.com/operator-bindery/bindery/internal/userns"
)

// CacheSizeFlag limits the size of the blob cache.
func (o *Images) CacheSizeFlag() cli.Flag {
	return sizeFlag(&o.CacheSize, "cache-size", "2GiB", "maximum `SIZE` of the cache of blobs and layers", "work")
}

// NoCacheFlag disables the caches.
func (o *Images) NoCacheFlag() cli.Flag {
	return &cli.BoolFlag{Name: "no-cache", Usage: "do not read or write the cache directory", EnvVars: program.Env("no-cache"),
		Category: "execution", Destination: &o.NoCache}
}

// CacheKeyFlag names the key of the notes about built layers.
func (o *Images) CacheKeyFlag() cli.Flag {
	return &cli.StringFlag{Name: "cache-key", EnvVars: program.Env("cache-key"), Category: "work", Destination: &o.CacheKey,
		Usage: "reuse layers of builds that were given the same secret, in `FILE`, " + secret.InVariable + " or fd:N; without " +
			"one they are built each time"}
}

// cacheKey reads the secret with which notes about built layers are sealed; nil without one.
func (o *Images) cacheKey(ctx context.Context, p *Session) ([]byte, error) {
	if o.CacheKey == "" {
		return nil, nil
	}
	var text []byte
	var err error
	if variable, ok := secret.Variable(o.CacheKey); ok {
		value, set := p.Secrets.Lookup(variable)
		if !set {
			return nil, cmdline.Usagef("--cache-key %s: the environment variable %s is not set", o.CacheKey, variable)
		}
		text = []byte(value)
	} else if text, err = secret.Read(ctx, o.CacheKey); err != nil {
		return nil, fmt.Errorf("--cache-key %s: %w", o.CacheKey, err)
	}
	text = secret.WithoutLineEnd(text)
	if len(text) < blobcache.MinSeal {
		e := cmdline.Usagef("--cache-key %s: a secret of %d bytes is too short: at least %d are needed", o.CacheKey, len(text),
			blobcache.MinSeal)
		e.Hint = "\"openssl rand -hex 32\" makes one"
		return nil, e
	}
	return text, nil
}

// CacheDir returns the directory of the blob cache; false if neither HOME nor XDG_CACHE_HOME gives one.
func CacheDir() (string, bool) {
	return blobcache.DefaultDir(func(name string) string {
		value := os.Getenv(name)
		if name == "HOME" && value == "/" && userns.UID() != 0 {
			return "" // what users without a home directory are given
		}
		return value
	})
}

// OpenCache opens the blob cache in a directory.
func (o *Images) OpenCache(p *Session, dir string) (*blobcache.Cache, error) {
	with := blobcache.Options{Warn: func(err error) {
		p.Log.Warn(fmt.Sprintf("images and layers are not cached: %v (%s)", err, OtherCache))
	}}
	if text := o.CacheSize; text != "" {
		n, err := cmdline.ParseSize(text)
		if err != nil || n <= 0 {
			return nil, cmdline.Usagef("invalid --cache-size value %q, expected a size such as 2GiB", text)
		}
		with.MaxBytes = n
	}
	return blobcache.Open(dir, with)
}

// blobCache opens the cache that the flags ask for, once for a command. If it cannot be used, it logs a warning and returns nil.
func (p *Session) blobCache(o *Images) (*blobcache.Cache, error) {
	if p.blobs != nil {
		return p.blobs, nil
	}
	dir, ok := CacheDir()
	if !ok || o.NoCache {
		return nil, nil
	}
	cache, err := o.OpenCache(p, dir)
	var usage *cmdline.Error
	switch {
	case errors.As(err, &usage):
		return nil, err
	case err != nil:
		p.WarnOnce(fmt.Sprintf("continuing without a cache: %v (%s)", err, OtherCache))
		return nil, nil
	}
	p.blobs = cache
	p.AtEnd = append(p.AtEnd, func(bool) error { return cache.Close() })
	return cache, nil
}

// OtherCache is the hint for a cache directory that is refused.
const OtherCache = "set XDG_CACHE_HOME to another directory, or --no-cache"

// NotesFailed logs that notes next to a blob cache can no longer be written.
func (p *Session) NotesFailed(err error) {
	p.Log.Debug(fmt.Sprintf("layer records are no longer written: %v", err))
}

// Known returns the stored results of earlier builds, as far as the flags allow; nil if nothing is to be stored.
func (o *Images) Known(ctx context.Context, p *Session) (*build.Cache, error) {
	key, err := o.cacheKey(ctx, p)
	if err != nil {
		return nil, err
	}
	blobs, err := p.blobCache(o)
	if err != nil || blobs == nil {
		return nil, err
	}
	cache, err := build.NewCache(blobs, key, p.NotesFailed)
	if err != nil {
		p.Log.Warn(fmt.Sprintf("layers are not recorded: %v", err))
		return nil, nil
	}
	p.AtEnd = append(p.AtEnd, func(bool) error { return cache.Close() })
	return cache, nil
}
