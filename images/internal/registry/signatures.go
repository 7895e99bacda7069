package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images/internal/registriesd"
	"github.com/operator-bindery/bindery/images/internal/sigblob"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/internal/userns"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Signatures returns the signatures of the image, or of one instance of its index: those in the lookaside storage and,
// if registries.d wants them, those that are attached to it. Both are read for the repository that the image is read
// from, as the containers library does: for that of a mirror, if a mirror has the image. If there is none, that is no
// error; every failure to read one is.
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

// lookaside returns the signatures in the lookaside storage: BASE/REPOSITORY@ALGORITHM=HEX/signature-N (containers
// image library, "Signature access protocols"). Without a configured storage it is a directory of the user.
func (s *Source) lookaside(ctx context.Context, places *registriesd.Config, of digest.Digest) ([][]byte, error) {
	base, err := places.Lookaside(s.at)
	if err != nil {
		return nil, err
	}
	if base == nil {
		if base = ownLookaside(); base == nil {
			return nil, nil
		}
	}
	at := *base
	at.Path += fmt.Sprintf("/%s@%s=%s", reference.Path(s.repo.name), of.Algorithm(), of.Encoded())
	return sigblob.Numbered(func(n int, limit int64) ([]byte, bool, error) {
		u := at
		u.Path += fmt.Sprintf("/signature-%d", n)
		if u.Scheme == "file" {
			return fileSignature(u.Path, limit)
		}
		return s.repo.signatureAt(ctx, &u, limit)
	})
}

// ownLookaside returns the storage that the containers library has on this machine, as far as there is one.
func ownLookaside() *url.URL {
	if userns.UID() == 0 {
		return &url.URL{Scheme: "file", Path: "/var/lib/containers/sigstore"}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	return &url.URL{Scheme: "file", Path: filepath.Join(home, ".local", "share", "containers", "sigstore")}
}

// fileSignature reads a signature in a file.
func fileSignature(name string, limit int64) (_ []byte, ok bool, err error) {
	path, err := filepath.EvalSymlinks(name)
	if err == nil {
		var content []byte
		if content, err = regularfile.Read(path, limit); err == nil {
			return content, true, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return nil, false, err
}

// signatureAt reads a signature from a web server, which gets no credentials of the registry. The settings for TLS are
// those of the registry, as the containers library has it.
func (p *repository) signatureAt(ctx context.Context, u *url.URL, limit int64) (content []byte, ok bool, err error) {
	err = p.retry(ctx, p.host.r.o.Retries, func() error {
		resp, err := p.exchange(ctx, nil, request{url: u, foreign: true})
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		content, err = readAtMost(resp, limit, "signature")
		return err
	})
	if hasStatus(err, http.StatusNotFound) {
		return nil, false, nil
	}
	return content, err == nil, err
}
