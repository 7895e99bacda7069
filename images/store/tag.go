package store

import (
	"context"
	"errors"
	"io/fs"

	"github.com/opencontainers/go-digest"
	"github.com/operator-bindery/bindery/internal/reflist"
)

// tags writes the tags, once.
func (c *imageCopy) tags(ctx context.Context) error {
	for _, n := range c.names[c.account.Tagged:] {
		if err := c.tag(ctx, n); err != nil {
			return nameError(ctx, n, err)
		}
		c.account.Tagged++
	}
	return nil
}

// tag writes a tag, unless it stands for the image.
func (c *imageCopy) tag(ctx context.Context, n Name) error {
	o := WriteOptions{Tag: n.Tag, If: c.o.If, Listed: true}
	switch {
	case n.Tag == "" && !c.to.Can().Staged:
		return nil
	case n.Tag == "":
	case n.Tag == reflist.Tag(c.root.Digest):
		if c.o.Absent && !c.attached.Load() {
			// Another copy may have made it the list meanwhile: a registry that looks at conditions does not lose that.
			o.If = IfNone
			if err := c.writeTop(ctx, o); !errors.Is(err, ErrChanged) {
				return err
			}
			o.If = ""
		}
		kept, is, err := c.isList(ctx, n.Tag)
		if c.account.TagKept = c.account.TagKept || kept; is || err != nil {
			return err
		}
		if kept {
			return c.ensureTop(ctx)
		}
	case c.o.If != "" || c.root.complete() && !reflist.Belongs(n.Tag): // or the condition of CopyOptions.If decides about the tag
		is, err := c.currentTag(ctx, n.Tag)
		if err != nil || is == c.root.Digest {
			return err
		}
		if err := c.conflict(n, is); err != nil {
			return err
		}
	}
	if err := c.writeTop(ctx, o); !errors.Is(err, ErrChanged) {
		return err
	}
	is, err := c.currentTag(ctx, n.Tag)
	if err != nil || is == c.root.Digest { // the answer to an earlier attempt was lost
		return err
	}
	return Conflict(c.to, n.Tag, c.o.If, is)
}

// writeTop writes the top manifest, under a tag or its digest. If something is missing then, everything is asked for once
// more, as in fill.
func (c *imageCopy) writeTop(ctx context.Context, o WriteOptions) error {
	o.Sparse = len(c.root.leftOut) > 0
	if c.root.text == nil {
		if err := c.read(ctx, c.root); err != nil {
			return err
		}
	}
	err := c.write(ctx, c.root, o)
	if c.lacks(err) {
		if err = c.askAgain(ctx, err); err == nil {
			err = c.write(ctx, c.root, o)
		}
	}
	c.root.written = c.root.written || err == nil
	return err
}

// isList tells whether the tag that is derived from the digest of the image is the list of its referrers, or the image.
// Lists of referrers and images may have the same tag: an image that has the digest in its tag is no list, an OCI index
// with another digest is one.
func (c *imageCopy) isList(ctx context.Context, tag string) (list, image bool, err error) {
	is, err := c.to.Head(ctx, tag)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil || is.Digest == c.root.Digest {
		return false, err == nil, err
	}
	text, _, err := c.to.Manifest(ctx, tag)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	_, err = reflist.Parse(text)
	return err == nil, digest.FromBytes(text) == c.root.Digest, nil
}
