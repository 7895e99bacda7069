package mirror

import (
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/nolink"
	"github.com/operator-bindery/bindery/mirror/medium"
	"github.com/operator-bindery/bindery/mirror/stock"
)

// otherSide is what the target of an archive is known to have, which the archive leaves out: by an inventory, or by
// what earlier archives carried. If it is nil, nothing is known, as with images that go to a registry.
type otherSide struct {
	inventory *stock.Inventory
	// names gives the names that the inventory has: those at its target, below its path.
	names   imageset.Target
	history *medium.History
	// has tells whether a blob or manifest is there; nil if nothing is known to be.
	has func(digest.Digest) bool
}

// readOtherSide finds out what the target of an archive is known to have.
func readOtherSide(o *Options, report *report) (*otherSide, error) {
	s := &otherSide{inventory: o.Against, names: imageset.Target{MaxNestedPaths: o.Target.MaxNestedPaths}}
	switch {
	case o.Against != nil:
		s.has = o.Against.Have
		return s, nil
	case o.All, o.isPart():
		return s, nil
	}
	h, err := medium.ReadHistory(nolink.FS(o.Workspace.Dir()), o.Since)
	if err != nil || h.Time.IsZero() {
		return s, err
	}
	report.log.info(fmt.Sprintf("leaving out what earlier archives carried, up to that of %s; with --all nothing is "+
		"left out", pinnedTime(h.Time)))
	s.history, s.has = h, h.Has
	return s, nil
}

// configure makes an archive leave out what is there.
func (s *otherSide) configure(o *medium.Options) {
	switch {
	case s.inventory != nil:
		o.Have, o.Where = s.inventory.Have, s.repositoriesWith
	case s.history != nil:
		o.Have, o.Where, o.Since = s.history.Has, s.history.Where, &s.history.Time
	}
}

// repositoriesWith returns a repository of the target, by the inventory, that has a blob or manifest.
func (s *otherSide) repositoriesWith(d digest.Digest) []string {
	for _, name := range s.inventory.Repositories() {
		if s.inventory.HaveBlob(name, d) || s.inventory.HaveManifest(name, d) {
			return []string{name}
		}
	}
	return nil
}

// hasImage tells whether an image is there under its name, by the inventory.
func (s *otherSide) hasImage(i *item) bool {
	if s == nil || s.inventory == nil || i.source.Digest == "" || i.kind == Catalog {
		return false
	}
	at := s.names.Image(i.source)
	if i.kind == Additional || i.ofRelease() {
		at = i.destination
	}
	return s.inventory.Tag(at.Path, at.Tag) == i.source.Digest
}

// addArchive counts what an archive has as there.
func (s *otherSide) addArchive(reader *medium.Reader) {
	had := s.has
	s.has = func(d digest.Digest) bool { return had != nil && had(d) || reader.Has(d) }
}

// remove removes the blobs that are there.
func (s *otherSide) remove(blobs map[digest.Digest]int64) {
	if s == nil || s.has == nil {
		return
	}
	for d := range blobs {
		if s.has(d) {
			delete(blobs, d)
		}
	}
}
