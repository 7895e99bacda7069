package images

import (
	"context"
	"errors"
	"io/fs"
	"net/http"

	"github.com/opencontainers/go-digest"

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

// notThere returns nil for an error that means that there is no such image.
func notThere(err error) error {
	var status *StatusError
	if errors.As(err, &status) && status.Status == http.StatusNotFound || errors.Is(err, fault.ErrInvalid) ||
		errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
