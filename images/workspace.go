package images

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/operator-bindery/bindery/internal/imagestore"
	"github.com/operator-bindery/bindery/internal/layouts"
)

// Workspace is a private directory for the blobs of an image that is being made. If the image goes to an OCI layout, it
// is in the file system of that layout, so that blobs get there by a hard link.
type Workspace struct {
	stage  *layouts.Stage
	made   []string
	stores []*imagestore.Store
}

// NewWorkspace makes a workspace for an image that will be written to the destinations. Without a local destination it
// is in temp, or in the system's directory for temporary files if temp is empty. Stores among the destinations are
// opened, so that errors are known before the work. The caller must close the workspace.
func NewWorkspace(ctx context.Context, dests []Destination, temp string) (*Workspace, error) {
	dir := temp
	if dir == "" {
		dir = os.TempDir()
	}
	var made []string
	for _, want := range []Transport{OCI, OCIArchive, DockerArchive, Directory} {
		d, ok := first(dests, want)
		if !ok {
			continue
		}
		in, err := d.place().StageDir()
		if err != nil {
			return nil, err
		}
		if made, err = layouts.Parents(in); err != nil {
			return nil, fmt.Errorf("%s: %w", d, err)
		}
		dir = in
		break
	}
	s, err := layouts.NewStage(ctx, dir)
	if err != nil {
		layouts.RemoveEmpty(made)
		return nil, fmt.Errorf("making a workspace: %w", err)
	}
	w := &Workspace{stage: s, made: made}
	for _, d := range dests {
		if d.Transport != Store {
			continue
		}
		store, err := imagestore.Open(ctx, d.Path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", d, err), w.Close())
		}
		w.stores = append(w.stores, store)
	}
	return w, nil
}

func first(dests []Destination, t Transport) (Destination, bool) {
	for _, d := range dests {
		if d.Transport == t {
			return d, true
		}
	}
	return Destination{}, false
}

// Dir returns the directory. Only the user can access it.
func (w *Workspace) Dir() string { return w.stage.Path }

// Close removes the workspace, and the directories that were made for it if they are empty.
func (w *Workspace) Close() error {
	err := w.stage.Close()
	for _, store := range w.stores {
		err = errors.Join(err, store.Release())
	}
	layouts.RemoveEmpty(w.made)
	return err
}
