package mirror

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// origin is where images come from.
type origin interface {
	// open opens the image of an item. The caller closes it.
	open(ctx context.Context, i *item) (*opened, error)
}

// opened is an image that can be read.
type opened struct {
	referrers.Reader
	top   v1.Descriptor
	close func() error
}

// registryOrigin reads images from registries and layouts.
type registryOrigin struct{ client *images.Client }

func (o registryOrigin) open(ctx context.Context, i *item) (*opened, error) {
	at, err := o.client.Source(ctx, pullName(i.source))
	if err != nil {
		return nil, err
	}
	return &opened{at.Reader, at.Image.Top, at.Close}, nil
}

// pullName is the name by which an image is read: by its digest if it has one.
func pullName(r imageset.Ref) string {
	switch {
	case r.Transport == imageset.OCI:
		return imageset.LayoutName(r)
	case r.Digest != "":
		r.Tag = ""
	}
	return "docker://" + r.Name()
}

// target is where images go.
type target interface {
	repository(ref imageset.Ref) (repository, error)
}

// repository is a repository at the target.
type repository interface {
	referrers.Writer
	// Head returns the descriptor of a manifest; the error is [fs.ErrNotExist] if there is none.
	Head(ctx context.Context, name string) (v1.Descriptor, error)
}

// remoteTarget writes to a registry.
type remoteTarget struct{ run *run }

func (t remoteTarget) repository(ref imageset.Ref) (repository, error) {
	at, err := t.run.o.Remote.Repository(ref.Repository())
	if err == nil && len(t.run.elsewhere) > 0 {
		at.MountFrom(t.run.otherPlaces)
	}
	return at, err
}

// attachmentReader is a reader whose attachments are hints: what a registry does not give is noted and counts as
// absent, since registries answer 403 for tags that do not exist (MIRROR 8.5).
type attachmentReader struct {
	referrers.Reader
	mu   sync.Mutex
	lost []string
}

func (r *attachmentReader) note(ctx context.Context, what string, err error) bool {
	if err == nil || errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lost) < 10 {
		r.lost = append(r.lost, what+": "+err.Error())
	}
	return true
}

func (r *attachmentReader) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	text, kind, err := r.Reader.Manifest(ctx, name)
	if strings.HasPrefix(name, "sha256-") && r.note(ctx, name, err) {
		return nil, "", fs.ErrNotExist
	}
	return text, kind, err
}

func (r *attachmentReader) Referrers(ctx context.Context, subject digest.Digest) ([]v1.Descriptor, error) {
	list, err := r.Reader.Referrers(ctx, subject)
	if r.note(ctx, "referrers of "+subject.String(), err) {
		return nil, nil
	}
	return list, err
}

func (r *attachmentReader) Blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	return r.Reader.Blob(ctx, d)
}
