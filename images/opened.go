package images

import (
	"maps"

	"github.com/opencontainers/go-digest"
)

// Opened returns the images that the client has opened so far, by their names as they were given, without "docker://":
// the digest of the index or manifest that each was opened by. It is what a run depended on, with or without a lock.
func (c *Client) Opened() map[string]digest.Digest {
	c.openedLock.Lock()
	defer c.openedLock.Unlock()
	return maps.Clone(c.opened)
}

// record notes the digest that a name was opened by, in the lock too.
func (c *Client) record(name string, d digest.Digest) error {
	if err := c.o.Lock.Record(name, d); err != nil {
		return err
	}
	c.openedLock.Lock()
	defer c.openedLock.Unlock()
	if c.opened == nil {
		c.opened = map[string]digest.Digest{}
	}
	c.opened[lockedName(name)] = d
	return nil
}
