package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
)

// ConflictError is the error for a tag that stands for another image than [CopyOptions.If], perhaps since another client
// has moved it. The tag is not written.
type ConflictError struct {
	// Name is the name of the tag, such as HOST/REPOSITORY:TAG.
	Name string
	// Want and Got are the expected and the actual digest; empty for no image.
	Want, Got digest.Digest
}

func (e *ConflictError) Error() string {
	show := func(d digest.Digest) string {
		if d == "" {
			return "no image"
		}
		return string(d)
	}
	return fmt.Sprintf("%s stands for %s and not for %s: it was not changed", e.Name, show(e.Got), show(e.Want))
}

// ErrorClass returns [fault.Conflict].
func (e *ConflictError) ErrorClass() fault.Class { return fault.Conflict }

// compare returns an error if a tag is not what it must be before the image is copied.
func (c *imageCopy) compare(ctx context.Context) error {
	if c.o.If == "" {
		return nil
	}
	for _, n := range c.names {
		if n.Tag == "" {
			continue
		}
		is, err := c.currentTag(ctx, n.Tag)
		if err == nil && is != c.top.Digest {
			err = c.conflict(n, is)
		}
		if err != nil {
			return nameError(ctx, n, err)
		}
	}
	return nil
}

// currentTag returns the digest that a tag stands for; empty if there is none.
func (c *imageCopy) currentTag(ctx context.Context, tag string) (digest.Digest, error) {
	is, err := TagDigest(ctx, c.to, tag)
	if err != nil && c.o.If != "" {
		return "", fmt.Errorf("what %s:%s stands for: %w", c.to.Name(), tag, err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // there is no such tag
	}
	return is, err
}

// TagDigest returns the digest that a tag stands for; empty if there is none. A place that refuses to show it is an error.
func TagDigest(ctx context.Context, at Reader, tag string) (digest.Digest, error) {
	is, err := at.Head(ctx, tag)
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDenied) {
		return "", nil
	}
	return is.Digest, err
}

// conflict returns an error if a tag must stand for something else.
func (c *imageCopy) conflict(n Name, is digest.Digest) error {
	if want := c.o.If; want == "" || want == is.String() || want == IfNone && is == "" {
		return nil
	}
	return Conflict(c.to, n.Tag, c.o.If, is)
}

// Conflict returns the error of a tag of a place that stands for a digest, or for nothing, and not for what is wanted: a
// digest, or [IfNone].
func Conflict(at Reader, tag, want string, got digest.Digest) *ConflictError {
	if want == IfNone {
		want = ""
	}
	return &ConflictError{Name: at.Name() + ":" + tag, Want: digest.Digest(want), Got: got}
}
