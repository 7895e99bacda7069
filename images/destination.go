package images

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/docker/archive"
	"go.podman.io/image/v5/oci/layout"

	"github.com/operator-bindery/bindery/internal/imagestore"
	"github.com/operator-bindery/bindery/internal/layouts"
)

// Transport is a kind of place for images, as the containers tools write it before the colon.
type Transport string

// The transports that images can be written to.
const (
	Docker        Transport = "docker"
	OCI           Transport = "oci"
	OCIArchive    Transport = "oci-archive"
	DockerArchive Transport = "docker-archive"
	Directory     Transport = "dir"
	Store         Transport = "containers-storage"
)

// Destination is a place to write an image to; see [Parse].
type Destination struct {
	Transport Transport
	// Path is the directory or file of a local transport, or the place of a store other than the user's own.
	Path string
	// Name is the repository and tag in a registry or store, or the name in a layout or archive, which may be empty.
	Name string
}

// Parse reads TRANSPORT:DETAILS:
//
//	docker://HOST/REPOSITORY[:TAG]
//	oci:DIR[:TAG]
//	oci-archive:FILE[:TAG]
//	docker-archive:FILE[:REPOSITORY[:TAG]]
//	dir:DIR
//	containers-storage:[[DRIVER@ROOT+RUNROOT:OPTIONS]]REPOSITORY[:TAG]
//
// Only the text is checked. [Copy] finds out whether the place can be written.
func Parse(text string) (Destination, error) { return BuiltIn().Destination(text) }

// Destination is [Parse] with the transports of the table.
func (ts Transports) Destination(text string) (Destination, error) {
	name, rest, ok := strings.Cut(text, ":")
	if !ok {
		return Destination{}, fmt.Errorf("destination %q: want TRANSPORT:PATH with one of %s", text, ts.prefixes())
	}
	d := Destination{Transport: Transport(name)}
	row := ts.row(d.Transport)
	switch {
	case row == nil:
		return Destination{}, fmt.Errorf("destination %q: unknown transport %q, want one of %s", text, name,
			ts.prefixes())
	case row.Parse == nil:
		d.Name = strings.TrimPrefix(rest, "//")
		if d.Name == rest {
			return Destination{}, fmt.Errorf("destination %q: a registry is written docker://HOST/REPOSITORY:TAG", text)
		}
	default:
		var err error
		if d.Path, d.Name, err = row.Parse(rest); err != nil {
			return Destination{}, fmt.Errorf("destination %q: %w", text, err)
		}
	}
	if err := d.check(); err != nil {
		return Destination{}, fmt.Errorf("destination %q: %w", text, err)
	}
	return d, nil
}

// splitPath splits PATH:NAME. The colon of a Windows drive belongs to the path.
func splitPath(rest string) (path, name string) {
	drive := filepath.VolumeName(rest)
	path, name, _ = strings.Cut(rest[len(drive):], ":")
	return drive + path, name
}

func (d Destination) check() error {
	if d.Transport == Docker {
		_, err := docker.ParseReference("//" + d.Name)
		return err
	}
	if d.Transport == Store {
		_, err := imagestore.Tag(d.Name)
		return err
	}
	if d.Path == "" {
		return errors.New("the path is empty")
	}
	if strings.ContainsRune(d.Path, 0) {
		return errors.New("NUL in the path")
	}
	if strings.HasPrefix(d.Name, "@") {
		return errors.New("an index of an image can be read but not written")
	}
	switch base := filepath.Base(d.Path); {
	case d.Transport == DockerArchive:
		_, err := archive.ParseReference("x:" + d.Name)
		if d.Name == "" {
			return nil
		}
		return err
	case d.Transport == Directory:
		return nil
	case d.Transport == OCIArchive && (base == "." || base == string(filepath.Separator)):
		return errors.New("the path is a directory")
	}
	return checkTag(d.Name)
}

// checkTag checks that the library can find an image by that name.
func checkTag(tag string) error {
	_, err := layout.NewReference(".", tag)
	return err
}

// String returns the text that [Parse] reads.
func (d Destination) String() string {
	switch {
	case d.Transport == Docker:
		return "docker://" + d.Name
	case d.Transport == Store && d.Path != "":
		return string(d.Transport) + ":[" + d.Path + "]" + d.Name
	case d.Transport == Store:
		return string(d.Transport) + ":" + d.Name
	}
	return d.place().String()
}

// local tells whether the destination is on this machine, and not in a registry.
func (d Destination) local() bool { return d.Transport != Docker }

// InFiles tells whether Path is the file or directory of the image: the destination is neither in a registry nor in a
// store.
func (d Destination) InFiles() bool { return d.Transport != Docker && d.Transport != Store }

// place is the destination if it is in files.
func (d Destination) place() layouts.Place {
	return layouts.Place{Format: layouts.Format(d.Transport), Path: d.Path, Name: d.Name}
}

// InStore returns the destination in the user's store of podman. A name without a host gets the host "localhost", as by
// "podman build".
func InStore(name string) Destination {
	if !imagestore.HasHost(name) {
		name = "localhost/" + name
	}
	return Destination{Transport: Store, Name: name}
}
