package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/redact"
)

// Stack is a catalog image whose package layers can be added to another image by digest. Its annotations name their
// packages; the bytes are not read. Create it with [ReadStack]. It is safe for concurrent use.
type Stack struct {
	// Layers are the package layers in the order of the image.
	Layers []Layer
	// Cached reports whether they contain the server's caches of their packages.
	Cached bool
}

// remoteBlob is a blob of another image.
type remoteBlob struct {
	image *images.Image
	d     v1.Descriptor
}

// open opens the blob. Reading to the end fails if the digest does not match.
func (l remoteBlob) open(ctx context.Context) (io.ReadCloser, int64, error) {
	r, err := l.image.Blob(ctx, l.d)
	return r, l.d.Size, err
}

// ReadStack determines which layers of the image can be stacked. An error is the reason why not: the image must then be
// read. Nothing is fetched. The image must stay open as long as the images built from the stack.
//
// The annotations are not verified. See [ComposeInput.Verify].
func ReadStack(img *images.Image) (*Stack, error) {
	labels := img.Config.Config.Labels
	switch _, database := labels[DatabaseLabel]; {
	case database:
		return nil, errors.New("it contains a database")
	case path.Clean("/"+labels[ConfigsLabel]) != "/"+cataloglayer.ConfigsDir:
		return nil, fmt.Errorf("its catalog is not at /%s", cataloglayer.ConfigsDir)
	case img.MediaType != v1.MediaTypeImageManifest:
		return nil, errors.New("docker manifests have no layer annotations")
	}
	s := &Stack{}
	for _, arg := range img.Config.Config.Cmd {
		at, ok := strings.CutPrefix(arg, "--cache-dir=")
		if ok && at != "/"+cataloglayer.CacheDir {
			return nil, fmt.Errorf("its cache is at %.100q", at)
		}
		s.Cached = s.Cached || ok
	}
	from := cmp.Or(img.Reference(), img.Digest.String())
	above := false // a layer built by this package has been seen
	held := map[string]bool{}
	for n, d := range img.Layers {
		switch kind := LayerKind(d.Annotations[AnnotationKind]); {
		case kind == "" && above:
			return nil, errors.New("it has additional layers above its packages")
		case kind == "":
			continue // the base
		case len(s.Layers) == 0 && (kind == LayerServer || kind == LayerReset):
			above = true
			continue
		case kind != LayerPackages:
			return nil, fmt.Errorf("it has a layer for %.40q", string(kind))
		}
		above = true
		l, err := stackedLayer(img, n, held)
		if err != nil {
			return nil, err
		}
		l.From = redact.Text(from)
		s.Layers = append(s.Layers, l)
	}
	if len(s.Layers) == 0 {
		return nil, errors.New("its layers are not annotated")
	}
	return s, nil
}

// stackedLayer reads the annotations of a package layer. held are the packages of other layers.
func stackedLayer(img *images.Image, n int, held map[string]bool) (Layer, error) {
	d := img.Layers[n]
	l := Layer{
		Kind: LayerPackages, MediaType: d.MediaType, Digest: d.Digest, DiffID: img.Config.RootFS.DiffIDs[n],
		Size:   d.Size,
		remote: &remoteBlob{img, d},
	}
	if _, ok := compressionOf(d.MediaType); !ok {
		return l, fmt.Errorf("a layer has the media type %.80q", d.MediaType)
	}
	if img.InRegistry() {
		l.repository, _, _ = strings.Cut(img.Reference(), "@")
	}
	text := d.Annotations[AnnotationPackages]
	if text == "" {
		return l, errors.New("it has blobs without a package")
	}
	l.Packages = strings.Split(text, ",")
	if !slices.IsSorted(l.Packages) {
		return l, errors.New("the packages of a layer are not in order")
	}
	for _, p := range l.Packages {
		if err := cataloglayer.CheckName(p); err != nil {
			return l, err
		}
		if held[p] {
			return l, fmt.Errorf("package %q is in it more than once", p)
		}
		held[p] = true
	}
	// Wrong values of these two only affect the division into layers, not the catalog.
	if key := digest.Digest(d.Annotations[AnnotationKey]); key.Validate() == nil {
		l.Key = key
	}
	if n, err := strconv.ParseInt(d.Annotations[annotationContent], 10, 64); err == nil && n > 0 {
		l.Content = n
	}
	return l, nil
}

// fits returns nil if the layers can be stacked in an image with the options, else the reason why not. only requires
// the compression of the options.
func (s *Stack) fits(o *Options, only bool) error {
	switch {
	case o.Compression == CompressionAuto:
		return errors.New("the image has each layer in two compressions")
	case len(o.caches.Extra) > 0: // the content is checked when it is read
	case s.Cached && o.caches.Native == nil:
		return errors.New("its layers have a serve cache, but the image must have none")
	case !s.Cached && o.caches.Native != nil:
		return errors.New("its layers have no serve cache")
	}
	for _, l := range s.Layers {
		c, _ := compressionOf(l.MediaType)
		if _, err := layerType(o.Format, c); err != nil {
			return err
		}
		if only && c != o.Compression {
			return fmt.Errorf("its layers are compressed with %s", c)
		}
	}
	return nil
}
