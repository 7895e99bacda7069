package layouts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Source is an image in a directory or an archive, read in place. Only regular files are opened.
type Source struct {
	ref   types.ImageReference
	files fileStore
	// top is the descriptor of the manifest; its digest is empty if it is unknown.
	top v1.Descriptor
	// made is the manifest if no file has it.
	made []byte
	// manifestFile and blobFile return names of files.
	manifestFile func(*digest.Digest) string
	blobFile     func(digest.Digest) string
	// repository is the layout; nil for other formats.
	repository *Repository
	// signatures reads the signatures of the image or of an instance; nil if the format has none.
	signatures func(ctx context.Context, instance *digest.Digest) ([][]byte, error)
}

var _ types.ImageSource = (*Source)(nil)

// OpenSource opens an image in files.
func OpenSource(ctx context.Context, p Place, ref types.ImageReference, limits limit.Limits,
	temp string) (_ *Source, err error) {
	var files fileStore
	switch p.Format {
	case OCI, Directory:
		files, err = openDirFiles(p.Path)
	default:
		files, err = openTarFiles(ctx, p.Path, limits, temp)
	}
	if err != nil {
		return nil, err
	}
	s := &Source{ref: ref, files: files}
	defer func() {
		if err != nil {
			err = errors.Join(err, files.Close())
		}
	}()
	switch p.Format {
	case OCI, OCIArchive:
		return s, s.openLayout(p)
	case DockerArchive:
		return s, s.openDockerArchive(ctx, p.Name, limits)
	}
	return s, s.openDirectory()
}

// openLayout finds the image in an OCI image layout (image specification, "Image Layout").
func (s *Source) openLayout(p Place) error {
	index, err := readLayout(s.files)
	if err != nil {
		return err
	}
	if s.top, err = index.find(p.Path, p.Name, func(d v1.Descriptor) bool { return refers(s.files, d) }); err != nil {
		return err
	}
	if err := verify.Digest(s.top.Digest); err != nil {
		return fmt.Errorf("%s: %w", indexFile, err)
	}
	s.blobFile = blobName
	s.manifestFile = func(d *digest.Digest) string {
		if d == nil {
			d = &s.top.Digest
		}
		return s.blobFile(*d)
	}
	s.repository = &Repository{files: s.files, index: index}
	s.signatures = s.layoutSignatures
	return nil
}

// maxReferrer is the largest manifest of a signature or attestation in bytes. They are small: the content is in the
// layers.
const maxReferrer = 64 << 10

// refers tells whether the manifest of an entry names a subject: it is a signature or an attestation of another image.
func refers(files fileStore, d v1.Descriptor) bool {
	if verify.Digest(d.Digest) != nil || d.Size > maxReferrer {
		return false
	}
	content, err := readFileUpTo(files, blobName(d.Digest), maxReferrer)
	if err != nil {
		return false
	}
	var m struct {
		Subject *v1.Descriptor `json:"subject"`
	}
	return json.Unmarshal(content, &m) == nil && m.Subject != nil
}

// openDirectory opens a directory of the containers tools ("dir:"): a manifest, and blobs named by their digests.
func (s *Source) openDirectory() error {
	s.blobFile = func(d digest.Digest) string { return d.Encoded() }
	s.signatures = s.directorySignatures
	s.manifestFile = func(d *digest.Digest) string {
		if d == nil {
			return "manifest.json"
		}
		return d.Encoded() + ".manifest.json"
	}
	version, err := readFile(s.files, "version")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if text := strings.TrimSpace(string(version)); text != "Directory Transport Version: 1.1" &&
		text != "Directory Transport Version: 1.0" {
		return fmt.Errorf("%w: version: unknown version %.80q of a directory with an image", fault.ErrInvalid, text)
	}
	return nil
}

// TopDescriptor returns the descriptor of the manifest, and whether it is known.
func (s *Source) TopDescriptor() (v1.Descriptor, bool) { return s.top, s.top.Digest != "" }

func (s *Source) GetManifest(_ context.Context, instance *digest.Digest) ([]byte, string, error) {
	if instance == nil && s.made != nil {
		return bytes.Clone(s.made), s.top.MediaType, nil
	}
	if instance != nil {
		if err := verify.Digest(*instance); err != nil {
			return nil, "", err
		}
	}
	text, err := readFile(s.files, s.manifestFile(instance))
	if err != nil {
		return nil, "", err
	}
	if instance == nil && s.top.MediaType != "" {
		return text, s.top.MediaType, nil
	}
	return text, manifest.GuessMIMEType(text), nil
}

func (s *Source) GetBlob(_ context.Context, info types.BlobInfo, _ types.BlobInfoCache) (io.ReadCloser, int64, error) {
	if err := verify.Digest(info.Digest); err != nil {
		return nil, 0, err
	}
	return s.files.open(s.blobFile(info.Digest))
}

// Repository returns the layout that the image is in, as long as the source is open; nil for other formats.
func (s *Source) Repository() *Repository { return s.repository }

func (s *Source) Reference() types.ImageReference { return s.ref }
func (s *Source) Close() error                    { return s.files.Close() }
func (s *Source) HasThreadSafeGetBlob() bool      { return true }

// LayerInfosForCopy returns nil: the layers are those of the manifest.
func (s *Source) LayerInfosForCopy(context.Context, *digest.Digest) ([]types.BlobInfo, error) {
	return nil, nil
}

// readFile reads a small file, a manifest or configuration, completely.
func readFile(files fileStore, name string) ([]byte, error) {
	return readFileUpTo(files, name, limit.MaxManifest)
}

// readFileUpTo is readFile with another limit in bytes.
func readFileUpTo(files fileStore, name string, limit int64) ([]byte, error) {
	r, size, err := files.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if size > limit {
		return nil, fmt.Errorf("%.200q: %w: %d bytes (limit %d)", name, fault.ErrLimit, size, limit)
	}
	var text bytes.Buffer
	if _, err := io.Copy(&text, io.LimitReader(r, limit+1)); err != nil {
		return nil, err
	}
	if int64(text.Len()) > limit {
		return nil, fmt.Errorf("%.200q: %w: longer than %d bytes", name, fault.ErrLimit, limit)
	}
	return text.Bytes(), nil
}
