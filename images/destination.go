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

// Transport names a way to keep or move an image, as the containers tools write it before the colon.
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

// Destination is a place that an image can be written to. Make it with [Parse].
type Destination struct {
	Transport Transport
	// Path is the directory or file of a local transport, or where the store of images is that is not the user's own.
	Path string
	// Name is the repository and tag of a registry, or what follows the path of the others. It may be empty for these.
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
// It looks at the text only; whether the place can be written is found out by [Copy].
func Parse(text string) (Destination, error) {
	name, rest, ok := strings.Cut(text, ":")
	if !ok {
		return Destination{}, fmt.Errorf("destination %q: want TRANSPORT:PATH with one of %s", text, transportNames)
	}
	d := Destination{Transport: Transport(name)}
	switch d.Transport {
	case Docker:
		d.Name = strings.TrimPrefix(rest, "//")
		if d.Name == rest {
			return Destination{}, fmt.Errorf("destination %q: a registry is written docker://HOST/REPOSITORY:TAG", text)
		}
	case OCI, OCIArchive, DockerArchive:
		d.Path, d.Name = splitPath(rest)
	case Directory:
		d.Path = rest
	case Store:
		var err error
		if d.Path, d.Name, err = imagestore.Split(rest); err != nil {
			return Destination{}, fmt.Errorf("destination %q: %w", text, err)
		}
	default:
		return Destination{}, fmt.Errorf("destination %q: unknown transport %q, want one of %s", text, name, transportNames)
	}
	if err := d.check(); err != nil {
		return Destination{}, fmt.Errorf("destination %q: %w", text, err)
	}
	return d, nil
}

const transportNames = "docker://, oci:, oci-archive:, docker-archive:, dir:, containers-storage:"

// splitPath cuts off what follows the path, leaving the colon of a Windows drive alone.
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

// checkTag asks the library whether it would find an image under that name again.
func checkTag(tag string) error {
	_, err := layout.NewReference(".", tag)
	return err
}

// String is the text that [Parse] reads.
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

// local tells whether the destination is in the file system, and not in a registry.
func (d Destination) local() bool { return d.Transport != Docker }

// InFiles tells whether Path is the file or directory that the image goes to: it is neither in a registry nor in a store.
func (d Destination) InFiles() bool { return d.Transport != Docker && d.Transport != Store }

// place is the destination if it is in files.
func (d Destination) place() layouts.Place {
	return layouts.Place{Format: layouts.Format(d.Transport), Path: d.Path, Name: d.Name}
}

// InStore is the destination of the store that podman has for this user under the name that "podman build" would give the
// image: one without a host is of "localhost".
func InStore(name string) Destination {
	if !imagestore.HasHost(name) {
		name = "localhost/" + name
	}
	return Destination{Transport: Store, Name: name}
}
