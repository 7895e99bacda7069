package build

import (
	"encoding/json"
	"slices"

	"github.com/opencontainers/go-digest"
)

// mountable records where registries have layers of the image.
func (i *Image) mountable(o *Options) {
	i.lenders, i.known = map[digest.Digest][]string{}, o.Cache
	add := func(d digest.Digest, repository string) {
		if repository != "" && !slices.Contains(i.lenders[d], repository) {
			i.lenders[d] = append(i.lenders[d], repository)
		}
	}
	for d, b := range i.bases {
		if b.src.InRegistry() {
			add(d, b.src.Repository)
		}
	}
	for _, l := range i.Layers {
		add(l.Digest, l.repository)
	}
	defer func() {
		for _, l := range i.Layers {
			for _, repository := range o.Cache.repositories(l.Digest) {
				add(l.Digest, repository)
			}
		}
	}()
	if o.Previous == nil {
		return
	}
	had := map[digest.Digest]bool{}
	for _, b := range o.Previous.layers {
		had[b.Digest] = true
	}
	for _, l := range i.Layers {
		if had[l.Digest] {
			add(l.Digest, o.Previous.repository)
		}
	}
}

// maxRepositories is the maximum number of recorded repositories of a layer.
const maxRepositories = 4

// repositoriesNote returns the key of the note about the repositories of a layer.
func repositoriesNote(d digest.Digest) digest.Digest { return noteKey("lenders 1", d.String()) }

// repositories returns the repositories to which a layer has been pushed, the latest first. They may have deleted it:
// mounting then fails without harm.
func (k *Cache) repositories(d digest.Digest) []string {
	if k == nil {
		return nil
	}
	text, ok := k.hints.Get(repositoriesNote(d))
	var repositories []string
	if !ok || json.Unmarshal(text, &repositories) != nil || len(repositories) > maxRepositories {
		return nil
	}
	return repositories
}

// addRepository puts a repository first among those of a layer.
func (k *Cache) addRepository(d digest.Digest, repository string) {
	had := k.repositories(d)
	if len(had) > 0 && had[0] == repository {
		return
	}
	now := append([]string{repository}, slices.DeleteFunc(had, func(r string) bool { return r == repository })...)
	if text, err := json.Marshal(now[:min(len(now), maxRepositories)]); err == nil {
		k.hints.Put(repositoriesNote(d), text)
	}
}
