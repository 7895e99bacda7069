package registry

import (
	"context"
	"fmt"
	"net/http"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/sigblob"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Signatures returns the signatures of the image, or of one instance of its index: those in the lookaside storage
// and, if registries.d wants them, those that are attached to it. Both are read for the repository that the image is
// read from, which is that of a mirror if it is from there, as the containers library does. If there is none, that is
// no error; every failure to read one is.
func (s *Source) Signatures(ctx context.Context, of digest.Digest) ([][]byte, error) {
	if err := verify.Digest(of); err != nil {
		return nil, err
	}
	places, err := s.repo.host.r.signaturePlaces()
	if err != nil {
		return nil, err
	}
	found, err := s.lookaside(ctx, places, of)
	if err != nil {
		return nil, remoteError(fmt.Errorf("signatures of %s@%s: %w", s.repo.name, of, err))
	}
	if use, _ := places.Attachments(s.at); !use {
		return found, nil
	}
	attached, err := s.attached(ctx, of)
	if err != nil {
		return nil, remoteError(fmt.Errorf("signatures in %s:%s: %w", s.repo.name, sigblob.Tag(of), err))
	}
	return append(found, attached...), nil
}

// SignaturesAt tells where attached signatures of the image are looked for: the repository that is read, and whether
// registries.d wants them for it. file is the file that says so, if one does.
func (s *Source) SignaturesAt() (repository string, wanted bool, file string) {
	places, err := s.repo.host.r.signaturePlaces()
	if err != nil {
		return s.repo.name.Name(), false, ""
	}
	wanted, file = places.Attachments(s.at)
	return s.repo.name.Name(), wanted, file
}

// attached returns the signatures under the tag of a digest.
func (s *Source) attached(ctx context.Context, of digest.Digest) ([][]byte, error) {
	text, _, _, err := s.repo.manifest(ctx, sigblob.Tag(of), manifestTypes, s.repo.host.r.o.Retries)
	if hasStatus(err, http.StatusNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return sigblob.Attached(ctx, text, s.repo.blob)
}
