package medium

import (
	"iter"
	"maps"
	"slices"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/reflist"
)

const repositoriesDir = registryDir + "repositories/"

// links returns the links of a repository as a docker distribution registry has them: files whose content is a digest.
func (l *listing) links() iter.Seq[member] {
	at := repositoriesDir + l.path
	link := func(dir string, k key) member {
		d := k.digest()
		return member{dir + "/sha256/" + d.Encoded() + "/link", []byte(d)}
	}
	return func(yield func(member) bool) {
		for _, k := range sorted(l.blobs) {
			if !yield(link(at+"/_layers", k)) {
				return
			}
		}
		for _, k := range sorted(l.manifests) {
			if !yield(link(at+"/_manifests/revisions", k)) {
				return
			}
		}
		for _, tag := range slices.Sorted(maps.Keys(l.tags)) {
			k, err := keyOf(l.tags[tag].Digest)
			if err != nil {
				continue
			}
			dir := at + "/_manifests/tags/" + tag
			if !yield(member{dir + "/current/link", []byte(k.digest())}) || !yield(link(dir+"/index", k)) {
				return
			}
		}
	}
}

// fallbackLists writes the lists of referrers as manifests and adds their tags: a docker distribution registry has no
// other way to list them. Where the tag is that of an image (sha256-HEX is also how an image is named that is mirrored
// by its digest) the image keeps it; bindery finds the referrers among the manifests of the repository. The caller has
// the turn.
func (w *Writer) fallbackLists(l *listing) error {
	lists := map[key][]byte{}
	var order []key
	for _, a := range l.attached {
		old, again := lists[a.subject]
		text, err := reflist.Add(old, a.Descriptor)
		if err != nil {
			return err
		}
		if !again {
			order = append(order, a.subject)
		}
		if text != nil {
			lists[a.subject] = text
		}
	}
	tags := maps.Clone(l.tags)
	for _, subject := range order {
		tag := reflist.Tag(subject.digest())
		if _, taken := tags[tag]; taken || len(lists[subject]) > limit.MaxManifest {
			continue
		}
		d, err := w.writeText(w.repos[l.path], lists[subject], v1.MediaTypeImageIndex)
		if err != nil {
			return err
		}
		k, err := keyOf(d.Digest)
		if err != nil {
			return err
		}
		tags[tag] = d
		l.manifests[k] = true
	}
	l.tags = tags
	return nil
}
