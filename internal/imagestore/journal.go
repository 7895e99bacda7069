//go:build linux && !nobuildah

package imagestore

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/filelock"
	"github.com/operator-bindery/bindery/internal/layouts"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// journal is what a run adds to a store, kept in the store while the image has no name there: podman removes images that have
// none, and layers that a killed run has left only with the image that they belong to.
type journal struct {
	// Image is the identity of the image, empty if it was there before.
	Image string `json:"image,omitempty"`
	// Layers are those that were not there before, in the order of the image.
	Layers []string `json:"layers"`
}

// journalFile is the name of the journal in a stage in the root of the store.
const journalFile = "added.json"

// identity is what images and layers are called in stores.
var identity = regexp.MustCompile(`^[0-9a-f]{64}$`)

// remove removes what nobody uses. It is housekeeping: what cannot be removed, because somebody else uses it by now or because
// the disk is broken, stays.
func (j journal) remove(store *Store) {
	if identity.MatchString(j.Image) {
		if image, err := store.Image(j.Image); err == nil && len(image.Names) == 0 {
			store.DeleteImage(j.Image, true)
		}
	}
	for _, id := range slices.Backward(j.Layers) {
		if identity.MatchString(id) {
			store.DeleteLayer(id)
		}
	}
}

// write keeps the journal in a stage.
func (j journal) write(s *layouts.Stage) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return layouts.WriteSync(s.Join(journalFile), text)
}

// reclaim removes what killed runs have left in a store.
func reclaim(store *Store) {
	names, err := os.ReadDir(store.GraphRoot())
	if err != nil {
		return
	}
	for _, n := range names {
		if !n.IsDir() || !strings.HasPrefix(n.Name(), layouts.StagePrefix) {
			continue
		}
		path := filepath.Join(store.GraphRoot(), n.Name())
		lock, abandoned := filelock.TryDir(path)
		if !abandoned {
			continue
		}
		var j journal
		if text, err := regularfile.Read(filepath.Join(path, journalFile), limit.MaxManifest); err == nil && json.Unmarshal(text, &j) == nil && len(j.Layers) <= limit.MaxLayers {
			j.remove(store)
		}
		os.RemoveAll(path)
		lock.Unlock()
	}
}
