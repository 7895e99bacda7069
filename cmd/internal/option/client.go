package option

import (
	"context"
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

// Images is how images are read: registries, limits and the cache.
type Images struct {
	Registry
	Lock                                                  string
	NoCache                                               bool
	CacheKey                                              string
	CacheSize, MaxImageSize, MaxDownloadSize, MaxFileSize string
	MaxRatio, MaxEntries                                  int
	// Platform is that to read of a multi-platform image, for commands with [Images.PlatformFlag]. Commands that write
	// images for several platforms have these in Platforms, and read images for the first of them or for any: catalogs
	// and bundles are the same for all of them.
	Platform  string
	Platforms cli.StringSlice
}

// Flags are the flags of every command that reads images.
func (o *Images) Flags() []cli.Flag { return append(o.Registry.Flags(), o.ownFlags()...) }

// FlagsWithoutPolicy are those of commands that use no content of an image: the policy is about that.
func (o *Images) FlagsWithoutPolicy() []cli.Flag { return append(o.AccessFlags(), o.ownFlags()...) }

func (o *Images) ownFlags() []cli.Flag {
	const limits = "limits for reading images"
	return []cli.Flag{
		&cli.StringFlag{Name: "lock",
			Usage:   "lock `FILE`: resolve image names to the digests recorded there, and record new ones",
			EnvVars: program.Env("lock"), Category: "registry", Destination: &o.Lock},
		o.NoCacheFlag(),
		o.CacheSizeFlag(),
		sizeFlag(&o.MaxImageSize, "max-image-size", "8GiB for a catalog, 256MiB for a bundle",
			"maximum uncompressed `SIZE` of all layers", limits),
		sizeFlag(&o.MaxDownloadSize, "max-download-size", "4GiB", "maximum compressed `SIZE` of all layers", limits),
		sizeFlag(&o.MaxFileSize, "max-file-size", "1GiB for a database, 64MiB for another file",
			"maximum `SIZE` of one file", limits),
		&cli.IntFlag{Name: "max-ratio", Usage: "maximum compression ratio `N` of a layer larger than 64MiB",
			DefaultText: "200", EnvVars: program.Env("max-ratio"), Category: limits, Destination: &o.MaxRatio},
		&cli.IntFlag{Name: "max-entries", Usage: "maximum number `N` of files and directories in all layers",
			DefaultText: "200000", EnvVars: program.Env("max-entries"), Category: limits, Destination: &o.MaxEntries},
	}
}

// PlatformFlag selects the platform of multi-platform images.
func (o *Images) PlatformFlag() cli.Flag {
	return &cli.StringFlag{Name: "platform", Usage: "`OS/ARCH` to read of a multi-platform image",
		DefaultText: "linux/" + runtime.GOARCH, EnvVars: program.Env("platform"), Category: "content",
		Destination: &o.Platform}
}

// PlatformsFlag selects the platforms of an image that is written.
func (o *Images) PlatformsFlag(group, otherwise string) cli.Flag {
	return &cli.StringSliceFlag{Name: "platform", Usage: "`OS/ARCH` of the image; more than one builds an image index",
		DefaultText: otherwise, Category: group, Destination: &o.Platforms}
}

func sizeFlag(at *string, name, value, usage, group string) cli.Flag {
	return &cli.StringFlag{Name: name, Usage: usage, DefaultText: value, EnvVars: program.Env(name), Category: group,
		Destination: at}
}

// Limits returns the limits for reading images.
func (o *Images) Limits() (images.Limits, error) {
	var l images.Limits
	for _, f := range []struct {
		name, text string
		at         *int64
	}{{"max-image-size", o.MaxImageSize, &l.Uncompressed}, {"max-download-size", o.MaxDownloadSize, &l.Compressed},
		{"max-file-size", o.MaxFileSize, &l.File}} {
		if f.text == "" {
			continue
		}
		n, err := cmdline.ParseSize(f.text)
		if err != nil || n <= 0 {
			return l, cmdline.Usagef("invalid --%s value %q, expected a size such as 512MiB", f.name, f.text)
		}
		*f.at = n
	}
	if l.Entries = o.MaxEntries; l.Entries < 0 {
		return l, cmdline.Usagef("invalid --max-entries value %d, expected a positive number", l.Entries)
	}
	if l.Ratio = int64(o.MaxRatio); l.Ratio < 0 {
		return l, cmdline.Usagef("invalid --max-ratio value %d, expected a positive number", l.Ratio)
	}
	return l, nil
}

// Client opens the image client that the flags configure, once for a command. It is closed when the command ends; the lock file
// is then written if the command succeeded.
func (p *Session) Client(ctx context.Context, o *Images) (*images.Client, error) {
	if p.client != nil {
		return p.client, nil
	}
	with, err := o.ClientOptions(ctx, p)
	if err != nil {
		return nil, err
	}
	if path := o.Lock; path != "" {
		if with.Lock, err = lockfile.Open(ctx, path); err != nil {
			return nil, err
		}
	}
	if with.Cache, err = p.blobCache(o); err != nil {
		return nil, err
	}
	client, err := images.NewClient(with)
	if err != nil {
		return nil, err
	}
	p.lock, p.BeforeOutput = with.Lock, p.SaveLock
	p.AtEnd = append(p.AtEnd, func(done bool) error {
		if !done {
			return nil
		}
		return p.SaveLock()
	})
	p.Use(client)
	return client, nil
}

// Use makes a client the one of the command, which closes it when it ends.
func (p *Session) Use(client *images.Client) {
	p.client = client
	p.AtEnd = append(p.AtEnd, func(bool) error { return client.Close() })
}

// ClientOptions reads the flags about reading images, but for the lock file and the cache.
func (o *Images) ClientOptions(ctx context.Context, p *Session) (images.ClientOptions, error) {
	moved := p.Moved()
	with := images.ClientOptions{
		Options:       o.SourceAccess(p),
		Policy:        policy.Read,
		Transports:    program.Transports,
		Timeout:       o.Timeout,
		RequireSigned: o.RequireSigned || p.RequireSigned,
		Platform:      v1.Platform{OS: "linux", Architecture: runtime.GOARCH},
	}
	with.Events = func(e store.Event) {
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
	}
	var err error
	if o.Platform != "" {
		if with.Platform, err = ParsePlatform(o.Platform); err != nil {
			return with, err
		}
	}
	if p.hasPlatforms() {
		of, err := o.WrittenPlatforms()
		if err != nil {
			return with, err
		}
		with.Platform, with.AnyPlatform = of[0], true
	}
	if p.ReadPlatform.OS != "" {
		with.Platform, with.AnyPlatform = p.ReadPlatform, p.ReadAny
	}
	if with.Limits, err = o.Limits(); err != nil {
		return with, err
	}
	if with.PolicyFile, err = o.PolicyFile(p); err != nil {
		return with, err
	}
	if with.TrustedKeys, _, err = PublicKeys(ctx, p, "trusted-key", o.TrustedKeys.Value()); err != nil {
		return with, err
	}
	with.TrustedIdentities, err = o.identities(ctx, p)
	return with, err
}

// hasPlatforms reports whether the command writes images for several platforms.
func (p *Session) hasPlatforms() bool {
	_, several := p.Command.Value("platform").(cli.StringSlice)
	return several
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
