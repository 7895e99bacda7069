package layouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// OpenSource opens an image in files as the place where it is, a layout or the image alone: in a directory, or in an
// archive that is read in place. Only regular files are opened. The limits are for archives, and temp is the directory
// for what is decompressed of them. The caller must close the place.
//
// The descriptor of an image in a layout is what index.json says, which is not compared with the manifest yet. A layout
// has the signatures of a manifest under the name sha256-HEX.sig, as a registry has them under that tag; a directory of
// the containers tools has files signature-N and HEX.signature-N; an archive of docker has none.
func OpenSource(ctx context.Context, p transport.Destination, limits limit.Limits,
	temp string) (_ *transport.Place, err error) {
	if isLayout(p) {
		r, err := OpenRepository(ctx, p, limits, temp)
		if err != nil {
			return nil, err
		}
		top, err := r.Top(p)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		return &transport.Place{Reader: r, Top: top, Signatures: signatures(r.signatures), Close: r.Close}, nil
	}
	files, err := openFiles(ctx, p, limits, temp)
	if err != nil {
		return nil, err
	}
	one := &oneImage{blobFiles: blobFiles{files: files}}
	at := &transport.Place{Reader: one, Close: files.Close}
	if p.Transport == transport.Directory {
		at.Signatures = signatures(one.signatures)
		err = one.openDirectory()
	} else {
		err = one.openDockerArchive(ctx, p.Name, limits)
	}
	if err != nil {
		return nil, errors.Join(err, files.Close())
	}
	at.Top = one.Top
	return at, nil
}

// signatures completes a function that reads the signatures of a manifest. If there is none, that is no error; every
// failure to read one is.
func signatures(read func(context.Context, digest.Digest) ([][]byte, error)) func(context.Context,
	digest.Digest) ([][]byte, error) {
	return func(ctx context.Context, of digest.Digest) ([][]byte, error) {
		if err := verify.Digest(of); err != nil {
			return nil, err
		}
		found, err := read(ctx, of)
		if err != nil {
			return nil, fmt.Errorf("signatures: %w", err)
		}
		return found, nil
	}
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

// readFile reads a small file, a manifest or configuration, completely.
func readFile(files fileStore, name string) ([]byte, error) {
	return readFileUpTo(files, name, limit.MaxManifest)
}

// readFileUpTo is like readFile with another limit in bytes.
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
