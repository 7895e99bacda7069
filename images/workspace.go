package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/operator-bindery/bindery/images/internal/layouts"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
)

// Workspace is a private directory for the blobs of an image that is being made. If the image goes to an OCI layout, it
// is in the file system of that layout, so that blobs get there by a hard link.
type Workspace struct {
	stage *layouts.Stage
	made  []string
	held  []func() error // what releases the stores
}

// NewWorkspace makes a workspace in temp, or in the system's directory for temporary files if temp is empty. The caller
// must close it.
func NewWorkspace(ctx context.Context, temp string) (*Workspace, error) {
	return CopyOptions{Options: registries.Options{Temp: temp}}.Workspace(ctx, nil)
}

// Workspace makes a workspace for an image that will be copied to the destinations. Without a destination in files it
// is in Temp. Stores among the destinations are opened, so that errors are known before the work. The caller must close
// the workspace.
func (o CopyOptions) Workspace(ctx context.Context, dests []transport.Destination) (_ *Workspace, err error) {
	dir := cmp.Or(o.Temp, os.TempDir())
	w := &Workspace{}
	if d := o.staged(dests); d != nil {
		if dir, err = layouts.StageDir(*d); err != nil {
			return nil, err
		}
		if w.made, err = layouts.Parents(dir); err != nil {
			return nil, fmt.Errorf("%s: %w", d, err)
		}
	}
	if w.stage, err = layouts.NewStage(ctx, dir); err != nil {
		layouts.RemoveEmpty(w.made)
		return nil, fmt.Errorf("making a workspace: %w", err)
	}
	for _, d := range dests {
		row := o.transports().Row(d.Transport)
		if row == nil || row.Hold == nil {
			continue
		}
		release, err := row.Hold(ctx, d.Path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", d, err), w.Close())
		}
		w.held = append(w.held, release)
	}
	return w, nil
}

// staged returns the first destination in files, by the order of the table; nil if there is none.
func (o CopyOptions) staged(dests []transport.Destination) *transport.Destination {
	for _, row := range o.transports() {
		for i, d := range dests {
			if row.Files && row.Name == d.Transport {
				return &dests[i]
			}
		}
	}
	return nil
}

// Dir returns the directory. Only the user can access it.
func (w *Workspace) Dir() string { return w.stage.Path }

// Close removes the workspace, and the directories that were made for it if they are empty.
func (w *Workspace) Close() error {
	err := w.stage.Close()
	for _, release := range w.held {
		err = errors.Join(err, release())
	}
	layouts.RemoveEmpty(w.made)
	return err
}
