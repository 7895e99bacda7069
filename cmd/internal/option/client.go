package option

import (
	"os"
	"runtime"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/lockfile"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/store"
)

// ImageFlags are the flags for reading images: registry access, limits and the cache. They are the same in every
// command that reads images.
func ImageFlags() []cli.Flag {
	const limits = "limits for reading images"
	return append(RegistryFlags(),
		&cli.StringFlag{Name: "lock",
			Usage:   "lock `FILE`: resolve image names to the digests recorded there, and record new ones",
			EnvVars: program.Env("lock"), Category: "registry"},
		NoCacheFlag(),
		CacheSizeFlag(),
		sizeFlag("max-image-size", "8GiB for a catalog, 256MiB for a bundle",
			"maximum uncompressed `SIZE` of all layers", limits),
		sizeFlag("max-download-size", "4GiB", "maximum compressed `SIZE` of all layers", limits),
		sizeFlag("max-file-size", "1GiB for a database, 64MiB for another file", "maximum `SIZE` of one file", limits),
		&cli.IntFlag{Name: "max-ratio", Usage: "maximum compression ratio `N` of a layer larger than 64MiB",
			DefaultText: "200", EnvVars: program.Env("max-ratio"), Category: limits},
		&cli.IntFlag{Name: "max-entries", Usage: "maximum number `N` of files and directories in all layers",
			DefaultText: "200000", EnvVars: program.Env("max-entries"), Category: limits},
	)
}

// PlatformFlag selects the platform of multi-platform images.
func PlatformFlag() cli.Flag {
	return &cli.StringFlag{Name: "platform", Usage: "`OS/ARCH` to read of a multi-platform image",
		DefaultText: "linux/" + runtime.GOARCH, EnvVars: program.Env("platform"), Category: "content"}
}

func sizeFlag(name, value, usage, group string) cli.Flag {
	return &cli.StringFlag{Name: name, Usage: usage, DefaultText: value, EnvVars: program.Env(name), Category: group}
}

// ImageLimits reads the limits from [ImageFlags].
func ImageLimits(c *cli.Context) (images.Limits, error) {
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

// Client returns the image client configured by the command's flags. It is closed when the command ends; the lock file
// is then written if the command succeeded.
func (p *Session) Client(c *cli.Context) (*images.Client, error) {
	if p.Images != nil {
		return p.Images, nil
	}
	o, err := p.ClientOptions(c)
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
	p.Images, p.lock, p.BeforeOutput = client, o.Lock, p.SaveLock
	p.AtEnd = append(p.AtEnd, func(done bool) error {
		if !done {
			return nil
		}
		return p.SaveLock()
	}, func(bool) error { return client.Close() })
	return client, nil
}

// ClientOptions reads the flags about reading images, but for the lock file and the cache.
func (p *Session) ClientOptions(c *cli.Context) (images.ClientOptions, error) {
	moved := p.Moved()
	o := images.ClientOptions{
		Policy:        policy.Read,
		Transports:    program.Transports,
		Registry:      RegistryOptions(c),
		Retries:       c.Int("retries"),
		Timeout:       c.Duration("timeout"),
		RequireSigned: c.Bool("require-signed") || p.RequireSigned,
		Platform:      v1.Platform{OS: "linux", Architecture: runtime.GOARCH},
		Events: func(e store.Event) {
			moved.Event("reading", e)
			switch e.Kind {
			case store.EventBlobDone:
				p.Log.Debug("fetched blob", "digest", e.Blob, "bytes", e.Size, "from", e.Destination)
			case store.EventBlobReused:
				p.Log.Debug("blob is cached", "digest", e.Blob, "bytes", e.Size)
			case store.EventVerified:
				p.Log.Debug("the policy accepts the signature", "image", e.Destination, "digest", e.Blob)
			default:
				p.WarnEvent(e)
			}
		},
	}
	var err error
	// Commands that write images for several platforms read images for the first of these, or for any: catalogs and
	// bundles are the same for all of them.
	switch platform := c.Value("platform").(type) {
	case string:
		if platform != "" {
			if o.Platform, err = ParsePlatform(platform); err != nil {
				return o, err
			}
		}
	case cli.StringSlice:
		of, err := Platforms(c)
		if err != nil {
			return o, err
		}
		o.Platform, o.AnyPlatform = of[0], true
	}
	if p.ReadPlatform.OS != "" {
		o.Platform, o.AnyPlatform = p.ReadPlatform, p.ReadAny
	}
	if o.Limits, err = ImageLimits(c); err != nil {
		return o, err
	}
	if o.PolicyFile, err = PolicyFlag(c); err != nil {
		return o, err
	}
	if o.TrustedKeys, _, err = PublicKeys(c, "trusted-key"); err != nil {
		return o, err
	}
	return o, nil
}

// SaveLock writes the lock file, if there is one. Commands with output call it before printing, so that they print
// nothing if it fails.
func (p *Session) SaveLock() error {
	if p.lock == nil {
		return nil
	}
	err := p.lock.Save()
	p.lock = nil
	return err
}

// PolicyFlag reads --policy. An empty value on the command line, such as that of a variable that is not set, is an
// error: the system's policy in its place may accept every image.
func PolicyFlag(c *cli.Context) (string, error) {
	file := c.String("policy")
	if _, inEnvironment := os.LookupEnv(program.Env("policy")[0]); file == "" && c.IsSet("policy") && !inEnvironment {
		return "", cmdline.Usagef("--policy names no file")
	}
	return file, nil
}
