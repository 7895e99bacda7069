package library

import (
	"errors"
	"slices"

	"github.com/operator-bindery/bindery/images/internal/imagestore"
	"github.com/operator-bindery/bindery/images/transport"
)

// ErrStore is the class of errors about stores of images that cannot be used here.
var ErrStore = imagestore.ErrStore

// Transports completes a table: archives of docker and directories can be written, and the store of podman is added.
// The table that is given is not changed.
func Transports(t transport.Table) transport.Table {
	t = slices.Clone(t)
	for i := range t {
		switch t[i].Name {
		case transport.DockerArchive, transport.Directory:
			t[i].Fill = fillFiles(t[i].Name)
		}
	}
	return append(t, transport.Row{Name: transport.Store, Form: "containers-storage:NAME", About: "podman's storage",
		Many: true, Parse: parseStored, Check: checkStored, Open: openStored, Fill: fillStore, Hold: holdStore})
}

// InStore returns the destination in the user's store of podman. A name without a host gets the host "localhost", as by
// "podman build".
func InStore(name string) transport.Destination {
	if !imagestore.HasHost(name) {
		name = "localhost/" + name
	}
	return transport.Destination{Transport: transport.Store, Name: name}
}

// parseStored reads [SPEC]NAME.
func parseStored(rest string) (path, name string, err error) {
	if path, name, err = imagestore.Split(rest); err == nil && name == "" {
		err = errors.New("the image has no name: want containers-storage:NAME[:TAG]")
	}
	return path, name, err
}

// checkStored checks a name to write to.
func checkStored(_, name string) error {
	_, err := imagestore.Tag(name)
	return err
}
