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

	"github.com/operator-bindery/bindery/internal/registriesd"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/internal/sigblob"
	"github.com/operator-bindery/bindery/internal/userns"
)

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
