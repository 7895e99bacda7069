package web

import (
	"slices"
	"sort"

	"github.com/operator-bindery/bindery/serve/internal/catalogql"
)

// blobList gives queries the blobs of a content by schema, in the order of the file.
type blobList struct {
	c        *Content
	bySchema map[string][]int32 // positions in blobs
}

// discover reads the whole file, a blob at a time, and makes its type system.
func (c *Content) discover() (*catalogql.Service, error) {
	order := make([]int32, len(c.blobs))
	for i := range order {
		order[i] = int32(i)
	}
	sort.Slice(order, func(i, j int) bool { return c.blobs[order[i]].offset < c.blobs[order[j]].offset })
	list := &blobList{c: c, bySchema: map[string][]int32{}}
	var (
		found catalogql.Discovery
		text  []byte
	)
	for _, i := range order {
		b := &c.blobs[i]
		if b.schema == "" {
			continue
		}
		list.bySchema[b.schema] = append(list.bySchema[b.schema], i)
		text = slices.Grow(text[:0], int(b.length))[:b.length]
		if _, err := c.file.ReadAt(text, b.offset); err != nil {
			return nil, err
		}
		if err := found.Add(b.schema, text); err != nil {
			return nil, err
		}
	}
	return found.Service(list)
}

func (l *blobList) Count(schema string) int { return len(l.bySchema[schema]) }

func (l *blobList) Size(schema string, i int) (offset, length int64) {
	b := &l.c.blobs[l.bySchema[schema][i]]
	return b.offset, b.length + 1
}

func (l *blobList) Read(schema string, i int) ([]byte, error) {
	return l.c.read(&l.c.blobs[l.bySchema[schema][i]])
}
