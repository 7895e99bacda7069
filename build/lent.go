package build

import (
	"encoding/json"
	"slices"

	"github.com/opencontainers/go-digest"
)

// maxLenders is how many repositories are remembered of a layer.
const maxLenders = 4

// lenderNote is the key of the note of the repositories that have a layer.
func lenderNote(d digest.Digest) digest.Digest { return noteKey("lenders 1", d.String()) }

// lenders are the repositories to which a layer has been pushed, the latest first. They may have lost it: a registry
// that is asked for it there then says no.
func (k *Known) lenders(d digest.Digest) []string {
	if k == nil {
		return nil
	}
	text, ok := k.Notes.Get(lenderNote(d))
	var repositories []string
	if !ok || json.Unmarshal(text, &repositories) != nil || len(repositories) > maxLenders {
		return nil
	}
	return repositories
}

// lent puts a repository first among those of a layer.
func (k *Known) lent(d digest.Digest, repository string) {
	had := k.lenders(d)
	if len(had) > 0 && had[0] == repository {
		return
	}
	now := append([]string{repository}, slices.DeleteFunc(had, func(r string) bool { return r == repository })...)
	if text, err := json.Marshal(now[:min(len(now), maxLenders)]); err == nil {
		k.Notes.Put(lenderNote(d), text)
	}
}
