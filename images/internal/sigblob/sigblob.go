// Package sigblob reads signatures that are attached to an image, and returns them in the form in which a
// types.ImageSource of the containers library returns signatures: blobs.
//
// Attached signatures are the layers of an OCI manifest, which is beside the image under the tag sha256-HEX.sig of the
// image's digest (cosign, "Signature Spec"). The payload of a signature is the content of its layer, and the signature
// itself is an annotation of it. A blob has both.
package sigblob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/verify"
)

// The limits for the signatures of one image. Sizes are in bytes.
const (
	// MaxSize is for one signature.
	MaxSize = 4 << 20
	// MaxCount is for all signatures under a tag.
	MaxCount = 1000
	// MaxTotal is for the size of all signatures together.
	MaxTotal = 32 << 20
	// MaxStored is how many signatures are read of those in files that are numbered.
	MaxStored = 128
)

// MediaType is the type of layers that are payloads of signatures.
const MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"

// Tag returns the tag of the signatures of an image. The digest must be valid.
func Tag(image digest.Digest) string { return reflist.Tag(image) + ".sig" }

// sigstoreBlob begins a blob with a signature of sigstore's form. Blobs with GPG signatures have no such beginning.
const sigstoreBlob = "\x00sigstore-json\n"

// Attached returns the signatures in a manifest, in its order. Layers of other types are not read: their blobs have
// no payload, by which a policy still counts them. open opens a layer; its content is compared with the descriptor.
//
// One layer that cannot be read fails all, since it may be the one that is needed. Errors are those of open, and of the
// classes [fault.ErrInvalid], [fault.ErrLimit] and [fault.ErrIntegrity].
func Attached(ctx context.Context, manifest []byte,
	open func(context.Context, v1.Descriptor, int64) (io.ReadCloser, error)) ([][]byte, error) {
	layers, err := Layers(manifest)
	if err != nil {
		return nil, err
	}
	var total int64
	for _, d := range layers {
		if d.MediaType != MediaType {
			continue
		}
		if d.Size < 0 || d.Size > MaxSize {
			return nil, fmt.Errorf("%w: a signature of %d bytes (limit %d)", fault.ErrLimit, d.Size, MaxSize)
		}
		if total += d.Size; total > MaxTotal {
			return nil, fmt.Errorf("%w: signatures of more than %d bytes", fault.ErrLimit, MaxTotal)
		}
	}
	var blobs [][]byte
	for i, d := range layers {
		var payload []byte
		if d.MediaType == MediaType {
			if payload, err = read(ctx, d, open); err != nil {
				return nil, fmt.Errorf("signature %d: %w", i, err)
			}
		}
		blob, err := encode(d.MediaType, payload, d.Annotations)
		if err != nil {
			return nil, err
		}
		blobs = append(blobs, blob)
	}
	return blobs, nil
}

// Layers returns the layers of a manifest with signatures or attestations, of any type. Errors are of the classes
// [fault.ErrInvalid] and [fault.ErrLimit].
func Layers(manifest []byte) ([]v1.Descriptor, error) {
	var m v1.Manifest
	if err := json.Unmarshal(manifest, &m); err != nil {
		return nil, fmt.Errorf("%w: not an OCI manifest: %v", fault.ErrInvalid, err)
	}
	if m.MediaType != "" && m.MediaType != v1.MediaTypeImageManifest {
		return nil, fmt.Errorf("%w: not an OCI manifest: its media type is %.80q", fault.ErrInvalid, m.MediaType)
	}
	if len(m.Layers) > MaxCount {
		return nil, fmt.Errorf("%w: %d layers (limit %d)", fault.ErrLimit, len(m.Layers), MaxCount)
	}
	return m.Layers, nil
}

// read reads a layer.
func read(ctx context.Context, d v1.Descriptor,
	open func(context.Context, v1.Descriptor, int64) (io.ReadCloser, error)) (_ []byte, err error) {
	if err := verify.Digest(d.Digest); err != nil {
		return nil, err
	}
	r, err := open(ctx, d, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return io.ReadAll(io.LimitReader(verify.NewReader(r, d.Digest, d.Size), d.Size+1))
}

// encode returns the blob of a signature.
func encode(mediaType string, payload []byte, annotations map[string]string) ([]byte, error) {
	text, err := json.Marshal(struct {
		MediaType   string            `json:"mimeType"`
		Payload     []byte            `json:"payload"`
		Annotations map[string]string `json:"annotations"`
	}{mediaType, payload, annotations})
	if err != nil {
		return nil, err
	}
	return append([]byte(sigstoreBlob), text...), nil
}

// Numbered returns the signatures in files that are numbered from 1 to the first that is missing. read returns the
// content of a file of at most limit bytes, and whether there is one.
func Numbered(read func(number int, limit int64) (content []byte, ok bool, err error)) ([][]byte, error) {
	var blobs [][]byte
	var total int64
	for n := 1; ; n++ {
		if n > MaxStored {
			return nil, fmt.Errorf("%w: more than %d signatures", fault.ErrLimit, MaxStored)
		}
		blob, ok, err := read(n, MaxSize)
		if err != nil || !ok {
			return blobs, err
		}
		if total += int64(len(blob)); total > MaxTotal {
			return nil, fmt.Errorf("%w: signatures of more than %d bytes", fault.ErrLimit, MaxTotal)
		}
		blobs = append(blobs, blob)
	}
}
