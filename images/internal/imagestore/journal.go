//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package imagestore

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/operator-bindery/bindery/images/internal/layouts"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// journal lists what a run adds to a store. It is a file in the store until the image has its name, so that the next
// run can remove what a killed run has added: podman removes images without a name, but layers only with their image.
type journal struct {
	// Image is the ID of the image; empty if the store had it before.
	Image string `json:"image,omitempty"`
	// Layers are the IDs of new layers, in the order of the image.
	Layers []string `json:"layers"`
}

// journalFile is the name of the journal in a stage in the root of the store.
const journalFile = "added.json"

// identity is the form of the IDs of images and layers.
var identity = regexp.MustCompile(`^[0-9a-f]{64}$`)

// remove removes the image and layers unless they are in use by now. Errors are ignored: what cannot be removed stays.
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

func (j journal) write(s *layouts.Stage) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return layouts.WriteSync(s.Join(journalFile), text)
}

// reclaim removes what killed runs have added to a store.
func reclaim(store *Store) {
	layouts.Sweep(store.GraphRoot(), func(stage string) {
		var j journal
		text, err := regularfile.Read(filepath.Join(stage, journalFile), limit.MaxManifest)
		if err == nil && json.Unmarshal(text, &j) == nil && len(j.Layers) <= limit.MaxLayers {
			j.remove(store)
		}
	})
}
