package mirror

import (
	"errors"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/blobcache"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/resources"
)

// largestKept is the size of the largest manifest that a run keeps, in bytes. Some small layers are kept with them.
const largestKept = 64 << 10

// MirrorWork creates the directory for temporary files of a run, and in it a cache of manifests: they are read to find
// out how much there is to copy, and again to copy it. Everything else is read once, so that a cache of it would only be
// a second copy.
func MirrorWork(p *option.Session, c *cli.Context) (dir string, manifests *blobcache.Cache, err error) {
	work, err := images.NewWorkspace(c.Context, "")
	if err != nil {
		return "", nil, err
	}
	p.AtEnd = append(p.AtEnd, func(bool) error { return errors.Join(manifests.Close(), work.Close()) })
	manifests, err = blobcache.Open(filepath.Join(work.Dir(), "manifests"),
		blobcache.Options{MaxBytes: 1 << 30, MaxBlob: largestKept})
	return work.Dir(), manifests, err
}

// mirrorSource is the client that reads the images of a run: as [Client], with a cache of manifests alone.
func mirrorSource(p *option.Session, c *cli.Context, from registries.Config, throttle *registries.Throttle,
	manifests *blobcache.Cache) (*images.Client, error) {
	o, err := p.ClientOptions(c)
	if err != nil {
		return nil, err
	}
	o.Registry, o.Throttle, o.Cache, o.AnyPlatform = from, throttle, manifests, true
	return images.NewClient(o)
}

// readResourceFlags reads the flags about files for clusters.
func readResourceFlags(c *cli.Context, o *resources.Options) error {
	switch v := c.String("idms-scope"); v {
	case "namespace", "repository":
		o.Repositories = v == "repository"
	default:
		return cmdline.Usagef("invalid --idms-scope value %q, expected (namespace|repository)", v)
	}
	o.PinCatalogs, o.Policy, o.Version = c.Bool("pin-catalogs"), c.Bool("icsp"), version.Release()
	o.Lists, o.Insecure = true, c.Bool("use-http")
	return nil
}

// mirrorThrottle reads --per-host and --max-bandwidth.
func mirrorThrottle(c *cli.Context) (*registries.Throttle, error) {
	perHost, bandwidth := c.Int("per-host"), int64(0)
	if perHost < 0 {
		return nil, cmdline.Usagef("invalid --per-host value %d, expected a positive number", perHost)
	}
	if text := c.String("max-bandwidth"); text != "" {
		n, err := cmdline.ParseSize(text)
		if err != nil || n <= 0 {
			return nil, cmdline.Usagef("invalid --max-bandwidth value %q, expected a size such as 20MiB", text)
		}
		bandwidth = n
	}
	if perHost == 0 && bandwidth == 0 {
		return nil, nil
	}
	return registries.NewThrottle(perHost, bandwidth), nil
}

// mirrorClients creates the clients that read images and catalogs, and how catalogs are rebuilt.
func mirrorClients(p *option.Session, c *cli.Context, o *mirror.Options, from, to registries.Config,
	throttle *registries.Throttle) (err error) {
	spec, err := MirrorSpec(p, c, o.Base)
	if err != nil {
		return err
	}
	dir, manifests, err := MirrorWork(p, c)
	if err != nil {
		return err
	}
	spec.Build.Dir = dir
	o.Spec = *spec
	if o.Render, err = p.BundleOptions(c); err != nil {
		return err
	}
	o.Render.Opened = nil // the run says which catalogs it reads
	client, err := mirrorSource(p, c, from, throttle, manifests)
	if err != nil {
		return err
	}
	p.AtEnd = append(p.AtEnd, func(bool) error { return client.Close() })
	o.Images = client
	return nil
}

// MirrorSpec is how catalogs are rebuilt. On the base of their source they have no serve cache unless one is asked for:
// its server reads its own formats only.
func MirrorSpec(p *option.Session, c *cli.Context, base mirror.Base) (*indeximage.Spec, error) {
	s := &indeximage.Spec{Server: c.String("server"), Embedded: &p.Embedded, Registry: option.RegistryOptions(p, c),
		Program: version.Program(), Log: p.Log}
	s.Build = build.Options{MaxLayers: c.Int("max-layers"), Jobs: c.Int("jobs"),
		Warn: func(text string) { p.Log.Warn(text) }}
	var err error
	if s.Build.Compression = build.CompressionAuto; c.String("compression") != string(build.CompressionAuto) {
		if s.Build.Compression, err = layers.ParseCompression(c.String("compression")); err != nil {
			return nil, cmdline.Usagef("invalid --compression value %q, expected (gzip|zstd|auto)",
				c.String("compression"))
		}
	}
	if s.Build.Created, err = program.SourceDate(); err != nil {
		return nil, err
	}
	if c.IsSet("cache") || base != mirror.KeepBase {
		if err := p.SetCaches(c, &s.Build); err != nil {
			return nil, err
		}
	}
	if s.Build.Cache, err = p.Known(c); err != nil {
		return nil, err
	}
	s.Images, err = p.Client(c)
	return s, err
}

// mirrorRemote creates the client that writes to the target.
func mirrorRemote(p *option.Session, c *cli.Context, o *mirror.Options, to registries.Config,
	throttle *registries.Throttle) error {
	if o.Mode == mirror.ToDisk {
		return nil
	}
	uploads, err := o.Workspace.Uploads()
	if err != nil {
		return err
	}
	o.Remote, err = newRemote(p, c, to, throttle, uploads)
	return err
}

// newRemote returns a client for repositories at a mirror, which is closed when the command ends.
func newRemote(p *option.Session, c *cli.Context, at registries.Config, throttle *registries.Throttle,
	uploads registries.Uploads) (*registries.Client, error) {
	remote, err := registries.New(c.Context, registries.Options{Registry: at, Retries: c.Int("retries"),
		Throttle: throttle, Uploads: uploads, Events: p.WarnEvent})
	if err != nil {
		return nil, err
	}
	p.AtEnd = append(p.AtEnd, func(bool) error { return remote.Close() })
	return remote, nil
}

// mirrorSigning reads the flags about signing: rebuilt catalogs are signed.
func mirrorSigning(p *option.Session, c *cli.Context, o *mirror.Options) error {
	t := option.Target{}
	if o.Mode == mirror.ToDisk {
		// Its name at a registry is not known yet: signatures for policies need --sign-identity.
		t.Destinations = []transport.Destination{{Transport: transport.OCIArchive, Path: o.Archive}}
	}
	if err := p.PrepareSigning(c, t); err != nil {
		return err
	}
	o.Sign = p.Signing.Attachments()
	return nil
}
