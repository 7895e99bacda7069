package main

import (
	"os"
	"runtime"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/lockfile"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/store"
)

// imageFlags are the flags for reading images: registry access, limits and the cache. They are the same in every
// command that reads images.
func imageFlags() []cli.Flag {
	const limits = "limits for reading images"
	return append(registryFlags(),
		&cli.StringFlag{Name: "lock",
			Usage:   "lock `FILE`: resolve image names to the digests recorded there, and record new ones",
			EnvVars: env("lock"), Category: "registry"},
		noCacheFlag(),
		cacheSizeFlag(),
		sizeFlag("max-image-size", "8GiB for a catalog, 256MiB for a bundle",
			"maximum uncompressed `SIZE` of all layers", limits),
		sizeFlag("max-download-size", "4GiB", "maximum compressed `SIZE` of all layers", limits),
		sizeFlag("max-file-size", "1GiB for a database, 64MiB for another file", "maximum `SIZE` of one file", limits),
		&cli.IntFlag{Name: "max-ratio", Usage: "maximum compression ratio `N` of a layer larger than 64MiB",
			DefaultText: "200", EnvVars: env("max-ratio"), Category: limits},
		&cli.IntFlag{Name: "max-entries", Usage: "maximum number `N` of files and directories in all layers",
			DefaultText: "200000", EnvVars: env("max-entries"), Category: limits},
	)
}

// platformFlag selects the platform of multi-platform images.
func platformFlag() cli.Flag {
	return &cli.StringFlag{Name: "platform", Usage: "`OS/ARCH` to read of a multi-platform image",
		DefaultText: "linux/" + runtime.GOARCH, EnvVars: env("platform"), Category: "content"}
}

func sizeFlag(name, value, usage, group string) cli.Flag {
	return &cli.StringFlag{Name: name, Usage: usage, DefaultText: value, EnvVars: env(name), Category: group}
}

// imageLimits reads the limits from [imageFlags].
func imageLimits(c *cli.Context) (images.Limits, error) {
	var l images.Limits
	for name, at := range map[string]*int64{"max-image-size": &l.Uncompressed, "max-download-size": &l.Compressed,
		"max-file-size": &l.File} {
		text := c.String(name)
		if text == "" {
			continue
		}
		n, err := cmdline.ParseSize(text)
		if err != nil || n <= 0 {
			return l, cmdline.Usagef("invalid --%s value %q, expected a size such as 512MiB", name, text)
		}
		*at = n
	}
	if l.Entries = c.Int("max-entries"); l.Entries < 0 {
		return l, cmdline.Usagef("invalid --max-entries value %d, expected a positive number", l.Entries)
	}
	if l.Ratio = int64(c.Int("max-ratio")); l.Ratio < 0 {
		return l, cmdline.Usagef("invalid --max-ratio value %d, expected a positive number", l.Ratio)
	}
	return l, nil
}

// client returns the image client configured by the command's flags. It is closed when the command ends; the lock file
// is then written if the command succeeded.
func (p *program) client(c *cli.Context) (*images.Client, error) {
	if p.images != nil {
		return p.images, nil
	}
	o, err := p.clientOptions(c)
	if err != nil {
		return nil, err
	}
	if path := c.String("lock"); path != "" {
		if o.Lock, err = lockfile.Open(c.Context, path); err != nil {
			return nil, err
		}
	}
	if o.Cache, err = p.blobCache(c); err != nil {
		return nil, err
	}
	client, err := images.NewClient(o)
	if err != nil {
		return nil, err
	}
	p.images, p.lock, p.beforeOutput = client, o.Lock, p.saveLock
	p.atEnd = append(p.atEnd, func(done bool) error {
		if !done {
			return nil
		}
		return p.saveLock()
	}, func(bool) error { return client.Close() })
	return client, nil
}

// clientOptions reads the flags about reading images, but for the lock file and the cache.
func (p *program) clientOptions(c *cli.Context) (images.ClientOptions, error) {
	moved := p.moved()
	o := images.ClientOptions{
		Policy:        policy.Read,
		Transports:    transports,
		Registry:      registryOptions(c),
		Retries:       c.Int("retries"),
		Timeout:       c.Duration("timeout"),
		RequireSigned: c.Bool("require-signed") || p.requireSigned,
		Platform:      v1.Platform{OS: "linux", Architecture: runtime.GOARCH},
		Events: func(e store.Event) {
			moved.event("reading", e)
			switch e.Kind {
			case store.EventBlobDone:
				p.log.Debug("fetched blob", "digest", e.Blob, "bytes", e.Size, "from", e.Destination)
			case store.EventBlobReused:
				p.log.Debug("blob is cached", "digest", e.Blob, "bytes", e.Size)
			case store.EventVerified:
				p.log.Debug("the policy accepts the signature", "image", e.Destination, "digest", e.Blob)
			default:
				p.warnEvent(e)
			}
		},
	}
	var err error
	// Commands that write images for several platforms read images for the first of these, or for any: catalogs and
	// bundles are the same for all of them.
	switch platform := c.Value("platform").(type) {
	case string:
		if platform != "" {
			if o.Platform, err = parsePlatform(platform); err != nil {
				return o, err
			}
		}
	case cli.StringSlice:
		of, err := platforms(c)
		if err != nil {
			return o, err
		}
		o.Platform, o.AnyPlatform = of[0], true
	}
	if p.readPlatform.OS != "" {
		o.Platform, o.AnyPlatform = p.readPlatform, p.readAny
	}
	if o.Limits, err = imageLimits(c); err != nil {
		return o, err
	}
	if o.PolicyFile, err = policyFlag(c); err != nil {
		return o, err
	}
	if o.TrustedKeys, _, err = publicKeys(c, "trusted-key"); err != nil {
		return o, err
	}
	return o, nil
}

// saveLock writes the lock file, if there is one. Commands with output call it before printing, so that they print
// nothing if it fails.
func (p *program) saveLock() error {
	if p.lock == nil {
		return nil
	}
	err := p.lock.Save()
	p.lock = nil
	return err
}

// policyFlag reads --policy. An empty value on the command line, such as that of a variable that is not set, is an
// error: the system's policy in its place may accept every image.
func policyFlag(c *cli.Context) (string, error) {
	file := c.String("policy")
	if _, inEnvironment := os.LookupEnv(env("policy")[0]); file == "" && c.IsSet("policy") && !inEnvironment {
		return "", cmdline.Usagef("--policy names no file")
	}
	return file, nil
}
