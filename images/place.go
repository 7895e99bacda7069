package images

import (
	"context"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/store"
)

// Place is an image in the place where it is, as a transport opens it.
type Place struct {
	store.Reader
	// Top is the descriptor of the index or manifest. Its text has that digest and size.
	Top v1.Descriptor
	// Digest is that by which others know the image, if it is not that of Top: a store of podman has the files of
	// layers, of which another manifest is made.
	Digest digest.Digest
	// Named is the reference of the image in a registry, where the place has one: REPOSITORY:TAG or REPOSITORY@DIGEST.
	Named string
	// OpenedAt is the reference in the registry or the mirror that is read.
	OpenedAt string
	// Signatures, unless nil, returns the signatures that the place has for a manifest of the image, in the form of the
	// containers library. If there is none, that is no error.
	Signatures func(ctx context.Context, of digest.Digest) ([][]byte, error)
	// SignaturesAt, unless nil, tells the repository where attached signatures are looked for, whether they are, and the
	// file that says so, if one does.
	SignaturesAt func() (repository string, wanted bool, file string)
	// Original, unless nil, has the manifest that was signed, and its signatures.
	Original types.ImageSource
	// Close, unless nil, ends the use of the place.
	Close func() error
}

// signaturesAt is SignaturesAt, or for other places their name: signatures are looked for in all of them.
func (p *Place) signaturesAt() (repository string, wanted bool, file string) {
	if p.SignaturesAt != nil {
		return p.SignaturesAt()
	}
	return p.Reader.Name(), true, ""
}

func (p *Place) close() error {
	if p.Close == nil {
		return nil
	}
	return p.Close()
}

// ofManifest says of an error that it is about a manifest, unless it says so itself.
func ofManifest(err error) error {
	if strings.HasPrefix(err.Error(), "manifest: ") {
		return err
	}
	return fmt.Errorf("manifest: %w", err)
}
