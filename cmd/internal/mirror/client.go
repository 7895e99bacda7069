package mirror

import (
	"context"
	"errors"
	"path/filepath"

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
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/resources"
	"github.com/operator-bindery/bindery/supply/publish"
)

// bundles is how bundles and catalogs are read.
func (o *runOptions) bundles() *option.Bundles {
	return &option.Bundles{Images: o.Images, Jobs: o.Jobs}
}

// largestKept is the size of the largest manifest that a run keeps, in bytes. Some small layers are kept with them.
const largestKept = 64 << 10

// WorkDirectory creates the directory for temporary files of a run, and in it a cache of manifests: they are read to find
// out how much there is to copy, and again to copy it. Everything else is read once, so that a cache of it would only be
// a second copy.
func WorkDirectory(ctx context.Context, p *option.Session) (dir string, manifests *blobcache.Cache, err error) {
	work, err := images.NewWorkspace(ctx, "")
	if err != nil {
		return "", nil, err
	}
	p.AtEnd = append(p.AtEnd, func(bool) error { return errors.Join(manifests.Close(), work.Close()) })
	manifests, err = blobcache.Open(filepath.Join(work.Dir(), "manifests"),
		blobcache.Options{MaxBytes: 1 << 30, MaxBlob: largestKept})
	return work.Dir(), manifests, err
}

// mirrorSource is the client that reads the images of a run: as [option.Session.Client], with a cache of manifests alone.
func mirrorSource(ctx context.Context, p *option.Session, of *option.Images, throttle *registries.Throttle,
	manifests *blobcache.Cache) (*images.Client, error) {
	o, err := of.ClientOptions(ctx, p)
	if err != nil {
		return nil, err
	}
	o.Throttle, o.Cache, o.AnyPlatform = throttle, manifests, true
	return images.NewClient(o)
}

// readResources reads the flags about files for clusters.
func (o *runOptions) readResources(p *option.Session, with *resources.Options) error {
	switch v := o.idmsScope; v {
	case "namespace", "repository":
		with.Repositories = v == "repository"
	default:
		return cmdline.Usagef("invalid --idms-scope value %q, expected (namespace|repository)", v)
	}
	with.Version = version.Release()
	with.Lists, with.Insecure = true, p.PlainHTTP
	return nil
}

// throttle reads --per-host and --max-bandwidth.
func (o *runOptions) throttle() (*registries.Throttle, error) {
	bandwidth := int64(0)
	if o.perHost < 0 {
		return nil, cmdline.Usagef("invalid --per-host value %d, expected a positive number", o.perHost)
	}
	if text := o.bandwidth; text != "" {
		n, err := cmdline.ParseSize(text)
		if err != nil || n <= 0 {
			return nil, cmdline.Usagef("invalid --max-bandwidth value %q, expected a size such as 20MiB", text)
		}
		bandwidth = n
	}
	if o.perHost == 0 && bandwidth == 0 {
		return nil, nil
	}
	return registries.NewThrottle(o.perHost, bandwidth), nil
}

// createClients creates the clients that read images and catalogs, and how catalogs are rebuilt.
func (o *runOptions) createClients(ctx context.Context, p *option.Session, with *mirror.Options,
	throttle *registries.Throttle) (err error) {
	spec, err := CatalogSpec(ctx, p, &o.Image, with.CatalogBase)
	if err != nil {
		return err
	}
	dir, manifests, err := WorkDirectory(ctx, p)
	if err != nil {
		return err
	}
	spec.Build.Dir = dir
	with.Spec = *spec
	if with.Render, err = o.bundles().Options(ctx, p); err != nil {
		return err
	}
	with.Render.Opened = nil // the run says which catalogs it reads
	client, err := mirrorSource(ctx, p, &o.Images, throttle, manifests)
	if err != nil {
		return err
	}
	p.AtEnd = append(p.AtEnd, func(bool) error { return client.Close() })
	with.Images = client
	return nil
}

// CatalogSpec is how catalogs are rebuilt. On the base of their source they have no serve cache unless one is asked for:
// its server reads its own formats only.
func CatalogSpec(ctx context.Context, p *option.Session, o *option.Image, base mirror.Base) (*indeximage.Spec, error) {
	s := &indeximage.Spec{Server: o.ServerName, Embedded: &p.Embedded, Registry: o.SourceAccess(p).Registry,
		Program: version.Program(), Log: p.Log}
	s.Build = build.Options{Format: build.FormatOCI, MaxLayers: o.MaxLayers, Jobs: o.Jobs, Compression: o.Compression,
		Warn: func(text string) { p.Log.Warn(text) }}
	err := s.Build.Check()
	if err != nil {
		return nil, err
	}
	if s.Build.Created, err = program.SourceDate(); err != nil {
		return nil, err
	}
	if p.Given("cache") || base != mirror.KeepBase {
		if err := o.SetCaches(p, &s.Build); err != nil {
			return nil, err
		}
	}
	if s.Build.Cache, err = o.Known(ctx, p); err != nil {
		return nil, err
	}
	s.Images, err = p.Client(ctx, &o.Images)
	return s, err
}

// createRemote creates the client that writes to the target.
func (o *runOptions) createRemote(ctx context.Context, p *option.Session, with *mirror.Options,
	throttle *registries.Throttle) error {
	if with.Mode == mirror.ToDisk {
		return nil
	}
	uploads, err := with.Workspace.Uploads()
	if err != nil {
		return err
	}
	with.Remote, err = newRemote(ctx, p, &o.Registry, throttle, uploads)
	return err
}

// newRemote returns a client for repositories at a mirror, which is closed when the command ends.
func newRemote(ctx context.Context, p *option.Session, at *option.Registry, throttle *registries.Throttle,
	uploads registries.Uploads) (*registries.Client, error) {
	with := at.DestAccess(p)
	with.Throttle, with.Uploads = throttle, uploads
	remote, err := registries.New(ctx, with)
	if err != nil {
		return nil, err
	}
	p.AtEnd = append(p.AtEnd, func(bool) error { return remote.Close() })
	return remote, nil
}

// prepareSigning reads the flags about signing: rebuilt catalogs are signed.
func (o *runOptions) prepareSigning(ctx context.Context, p *option.Session, with *mirror.Options) (err error) {
	t := publish.Target{}
	if with.Mode == mirror.ToDisk {
		// Its name at a registry is not known yet: signatures for policies need --sign-identity.
		t.Destinations = []transport.Destination{{Transport: transport.OCIArchive, Path: with.Archive}}
	}
	with.Sign, err = o.Signing.Attachments(ctx, p, t)
	return err
}
