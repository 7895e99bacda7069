package layouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Source is an image in a directory or an archive, read in place, and the place where it is: a layout, or the image
// alone. Only regular files are opened.
type Source struct {
	store.Reader
	files fileStore
	top   v1.Descriptor
	// signatures reads the signatures of a manifest; nil if the format has none.
	signatures func(ctx context.Context, of digest.Digest) ([][]byte, error)
}

// OpenSource opens an image in files. The limits are for archives, and temp is the directory for what is decompressed
// of them. The caller must close the source.
func OpenSource(ctx context.Context, p transport.Destination, limits limit.Limits, temp string) (_ *Source, err error) {
	if p.Transport == transport.OCI || p.Transport == transport.OCIArchive {
		return openLayout(ctx, p, limits, temp)
	}
	one := &oneImage{}
	if p.Transport == transport.Directory {
		one.files, err = openDirFiles(p.Path)
	} else {
		one.files, err = openTarFiles(ctx, p.Path, limits, temp)
	}
	if err != nil {
		return nil, err
	}
	s := &Source{Reader: one, files: one.files}
	if p.Transport == transport.Directory {
		s.signatures = one.signatures
		err = one.openDirectory()
	} else {
		err = one.openDockerArchive(ctx, p.Name, limits)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.top = one.top
	return s, nil
}

// openLayout finds the image in an OCI image layout (image specification, "Image Layout").
func openLayout(ctx context.Context, p transport.Destination, limits limit.Limits, temp string) (*Source, error) {
	at, err := OpenRepository(ctx, p, limits, temp)
	if err != nil {
		return nil, err
	}
	s := &Source{Reader: at, files: at.files, signatures: at.signatures}
	if s.top, err = at.Top(p); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Top returns the descriptor of the image. That of a layout is what index.json says, which is not compared with the
// manifest yet.
func (s *Source) Top() v1.Descriptor { return s.top }

// Signatures returns the signatures that are stored with a manifest of the image. A layout has them under the name
// sha256-HEX.sig, as a registry has them under that tag; a directory of the containers tools has files signature-N and
// HEX.signature-N; an archive of docker has none. If there is none, that is no error; every failure to read one is.
func (s *Source) Signatures(ctx context.Context, of digest.Digest) ([][]byte, error) {
	if err := verify.Digest(of); err != nil {
		return nil, err
	}
	if s.signatures == nil {
		return nil, nil
	}
	found, err := s.signatures(ctx, of)
	if err != nil {
		return nil, fmt.Errorf("signatures: %w", err)
	}
	return found, nil
}

// Close closes the files.
func (s *Source) Close() error { return s.files.Close() }

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
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%.200q: %w: longer than %d bytes", name, fault.ErrLimit, limit)
	}
	return text, err
}
