package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Digest returns the digest that a name refers to now, without use of the lock. It is empty if there is no such image.
// Errors are those of [Client.Open].
func (c *Client) Digest(ctx context.Context, name string) (_ digest.Digest, err error) {
	defer func() { err = pullError(name, err) }()
	n, err := parseSourceName(name)
	if err != nil {
		return "", err
	}
	if err := c.start(ctx); err != nil {
		return "", err
	}
	src, err := c.source(ctx, n)
	if err != nil {
		return "", notThere(err)
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	text, _, err := src.GetManifest(ctx, nil)
	if err != nil {
		return "", notThere(err)
	}
	return identityOf(src, text), nil
}

// Head returns the descriptor of an image in a registry, or in the mirror that has it, as a rule by a request without a
// body. It asks neither the policy nor the cache. The error is [fs.ErrNotExist] if there is none, and [ErrInvalid] for
// other transports.
func (c *Client) Head(ctx context.Context, name string) (_ v1.Descriptor, err error) {
	defer func() { err = pullError(name, err) }()
	n, err := parseSourceName(name)
	if err != nil {
		return v1.Descriptor{}, err
	}
	if n.transport != Docker {
		return v1.Descriptor{}, fmt.Errorf("%w: %s is not in a registry", fault.ErrInvalid, name)
	}
	if err := c.start(ctx); err != nil {
		return v1.Descriptor{}, err
	}
	if pinned, locked := c.o.Lock.Digest(name); locked {
		if n.repository, err = pin(n.repository, pinned); err != nil {
			return v1.Descriptor{}, err
		}
	}
	return c.remote.Head(ctx, n.repository)
}

// notThere returns nil for an error that means that there is no such image.
func notThere(err error) error {
	var status *StatusError
	if errors.As(err, &status) && status.Status == http.StatusNotFound || errors.Is(err, fault.ErrInvalid) ||
		errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
