package build

import (
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images"
)

var _ images.Lenders = source{}

// Lenders implements [images.Lenders]: where layers of bases and of other images come from, these have them.
func (s source) Lenders(d digest.Digest) []string { return s.image.lenders[d] }

// lend notes that a repository has the blob.
func (i *Image) lend(d digest.Digest, repository string) {
	if repository != "" && !slices.Contains(i.lenders[d], repository) {
		i.lenders[d] = append(i.lenders[d], repository)
	}
}
