package images

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

// localSource is an image on this machine. It reads files where they lie, in a directory or within an archive, and
// nothing but regular ones.
type localSource struct {
	ref   types.ImageReference
	files fileStore
	// top is what is known of the manifest; its digest is empty if nothing is.
	top v1.Descriptor
	// made is the top's text if no file has it.
	made []byte
	// manifestFile and blobFile are the names of files.
	manifestFile func(*digest.Digest) string
	blobFile     func(digest.Digest) string
}

var _ types.ImageSource = (*localSource)(nil)

// openLocal opens an image of a transport of the file system.
func openLocal(ctx context.Context, p place, ref types.ImageReference, limits limit.Limits, temp string) (_ *localSource, err error) {
	var files fileStore
	switch p.format {
	case formatOCI, formatDirectory:
		files, err = openDirFiles(p.path)
	default:
		files, err = openTarFiles(ctx, p.path, limits, temp)
	}
	if err != nil {
		return nil, err
	}
	s := &localSource{ref: ref, files: files}
	defer func() {
		if err != nil {
			err = errors.Join(err, files.Close())
		}
	}()
	switch p.format {
	case formatOCI, formatOCIArchive:
		return s, s.openLayout(p)
	case formatDockerArchive:
		return s, s.openDockerArchive(ctx, p.name, limits)
	}
	return s, s.openDirectory()
}

// openLayout finds the image in an OCI image layout (image specification, "Image Layout").
func (s *localSource) openLayout(p place) error {
	content, err := readFile(s.files, layoutFile)
	if err != nil {
		return err
	}
	if err := checkLayoutVersion(content); err != nil {
		return err
	}
	if content, err = readFile(s.files, indexFile); err != nil {
		return err
	}
	index := &layoutIndex{}
	if err := index.parse(content); err != nil {
		return fmt.Errorf("%s: %w", indexFile, err)
	}
	if s.top, err = index.find(p.path, p.name, s.refers); err != nil {
		return err
	}
	if err := verify.Digest(s.top.Digest); err != nil {
		return fmt.Errorf("%s: %w", indexFile, err)
	}
	s.blobFile = func(d digest.Digest) string {
		return blobsDir + "/" + d.Algorithm().String() + "/" + d.Encoded()
	}
	s.manifestFile = func(d *digest.Digest) string {
		if d == nil {
			d = &s.top.Digest
		}
		return s.blobFile(*d)
	}
	return nil
}

// maxReferrer is the longest manifest of a signature or an attestation in bytes: its layers hold what it says, so it is
// short.
const maxReferrer = 64 << 10

// refers tells whether the manifest of an entry names a subject: it is a signature or an attestation of another image.
func (s *localSource) refers(d v1.Descriptor) bool {
	if verify.Digest(d.Digest) != nil || d.Size > maxReferrer {
		return false
	}
	content, err := readFileUpTo(s.files, blobsDir+"/"+d.Digest.Algorithm().String()+"/"+d.Digest.Encoded(), maxReferrer)
	if err != nil {
		return false
	}
	var m struct {
		Subject *v1.Descriptor `json:"subject"`
	}
	return json.Unmarshal(content, &m) == nil && m.Subject != nil
}

// openDirectory reads what the containers tools call "dir:": a manifest, and blobs named by their digests.
func (s *localSource) openDirectory() error {
	s.blobFile = func(d digest.Digest) string { return d.Encoded() }
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
	if text := strings.TrimSpace(string(version)); text != "Directory Transport Version: 1.1" && text != "Directory Transport Version: 1.0" {
		return fmt.Errorf("%w: version: unknown version %.80q of a directory with an image", fault.ErrInvalid, text)
	}
	return nil
}

// topDescriptor is what is known of the manifest before it is read.
func (s *localSource) topDescriptor() (v1.Descriptor, bool) { return s.top, s.top.Digest != "" }

func (s *localSource) GetManifest(_ context.Context, instance *digest.Digest) ([]byte, string, error) {
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

func (s *localSource) GetBlob(_ context.Context, info types.BlobInfo, _ types.BlobInfoCache) (io.ReadCloser, int64, error) {
	if err := verify.Digest(info.Digest); err != nil {
		return nil, 0, err
	}
	return s.files.open(s.blobFile(info.Digest))
}

func (s *localSource) Reference() types.ImageReference { return s.ref }
func (s *localSource) Close() error                    { return s.files.Close() }
func (s *localSource) HasThreadSafeGetBlob() bool      { return true }

// GetSignatures finds none: signatures of local images are read by the library, see images.Client.
func (s *localSource) GetSignatures(context.Context, *digest.Digest) ([][]byte, error) {
	return nil, nil
}

// LayerInfosForCopy says that the layers are as the manifest has them.
func (s *localSource) LayerInfosForCopy(context.Context, *digest.Digest) ([]types.BlobInfo, error) {
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
