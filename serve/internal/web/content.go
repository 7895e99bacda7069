package web

import (
	"cmp"
	"encoding/hex"
	"io"
	"slices"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/serve/internal/catalogql"
	"github.com/operator-bindery/bindery/serve/internal/counted"
)

// Content is a catalog as JSON lines in a temporary file, in the order in which the blobs were written. It is safe for
// concurrent use. It counts its readers, so that a replaced catalog is closed after the last answer from it.
type Content struct {
	file     *atomicfs.Scratch
	size     int64
	digest   [32]byte
	modified time.Time
	blobs    []blob            // by package, those of no package last; those of each package in the order of the file
	packages []packageSummary  // those with an olm.package blob, sorted by name
	byName   map[string]int    // positions in packages
	spans    map[string][2]int // of blobs, by package
	bundles  int

	gzip contentStore

	types  once[*catalogql.Service] // for queries
	latest once[[]*version]         // for the feed

	users counted.Users
}

// blob is the position of a blob in the file, without the trailing newline, with its queryable fields. pkg is the value
// of the field "package", which an olm.package blob does not have.
type blob struct {
	schema, pkg, name string
	offset, length    int64
}

func (b *blob) owner() string {
	if b.schema == declcfg.SchemaPackage {
		return b.name
	}
	return b.pkg
}

// etag returns the entity tag of everything that depends only on the catalog.
func (c *Content) etag() string { return `"` + hex.EncodeToString(c.digest[:16]) + `"` }

// version returns what the addresses of icons contain, so that browsers may keep these until the catalog changes.
func (c *Content) version() string { return hex.EncodeToString(c.digest[:6]) }

// KeepTime takes the modification time of another content with the same bytes, so that a reload changes nothing for
// clients with conditional requests. It must be called before the content is used.
func (c *Content) KeepTime(old *Content) {
	if old != nil && old.digest == c.digest {
		c.modified = old.modified
	}
}

// query selects blobs; empty fields match everything.
type query struct{ schema, pkg, name string }

// matches reports whether a blob has all fields of a query, which is not empty. As in catalogd, blobs without a schema
// match nothing.
func (q query) matches(b *blob) bool {
	return b.schema != "" && (q.schema == "" || b.schema == q.schema) && (q.pkg == "" || b.pkg == q.pkg) &&
		(q.name == "" || b.name == q.name)
}

// find returns the matching blobs in the order of the file.
func (c *Content) find(q query) []*blob {
	var found []*blob
	for i := range c.blobs {
		if q.matches(&c.blobs[i]) {
			found = append(found, &c.blobs[i])
		}
	}
	sortByOffset(found)
	return found
}

// sortByOffset puts blobs in the order of the file.
func sortByOffset(blobs []*blob) {
	slices.SortFunc(blobs, func(a, b *blob) int { return cmp.Compare(a.offset, b.offset) })
}

// blobsOf returns all blobs of a package including its olm.package blob.
func (c *Content) blobsOf(pkg string) []blob {
	span := c.spans[pkg]
	return c.blobs[span[0]:span[1]]
}

// findFirst returns the first blob of a package with a schema and a name, or nil.
func (c *Content) findFirst(pkg, schema, name string) *blob {
	all := c.blobsOf(pkg)
	for i := range all {
		if all[i].schema == schema && all[i].name == name {
			return &all[i]
		}
	}
	return nil
}

func (c *Content) read(b *blob) ([]byte, error) {
	text := make([]byte, b.length)
	if _, err := c.file.ReadAt(text, b.offset); err != nil {
		return nil, err
	}
	return text, nil
}

// reader reads the lines of blobs.
func (c *Content) reader(blobs []blob) io.Reader {
	e := &extents{c: c}
	for i := range blobs {
		e.add(&blobs[i])
	}
	return e
}

// acquire adds a user; it returns false if the content is closed or about to be.
func (c *Content) acquire() bool { return c.users.Acquire() }

func (c *Content) release() {
	if c.users.Release() {
		_ = c.closeFiles()
	}
}

// Close closes the file as soon as no request reads it.
func (c *Content) Close() error {
	if c.users.Retire() {
		return c.closeFiles()
	}
	return nil
}

// closeFiles closes the files after the last user.
func (c *Content) closeFiles() error {
	c.gzip.close()
	return c.file.Close()
}
