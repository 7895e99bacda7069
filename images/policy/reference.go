package policy

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"go.podman.io/image/v5/directory"
	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/docker/archive"
	"go.podman.io/image/v5/docker/reference"
	ociarchive "go.podman.io/image/v5/oci/archive"
	"go.podman.io/image/v5/oci/layout"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/internal/imagestore"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// named is the reference of a name for the policy. An image that was carried from a layout has the name of a
// directory that may be elsewhere; the library's reference needs one that is here.
func named(n transport.Source) (types.ImageReference, error) {
	ref, err := libraryReference(n)
	if err != nil && n.Transport == transport.OCI && errors.Is(err, fs.ErrNotExist) {
		return nameOf{transport: n.Transport, text: n.Path, identity: path.Clean(n.Path), namespaces: parents(n.Path)}, nil
	}
	return ref, err
}

// parents returns the directories above one, without the root.
func parents(dir string) (above []string) {
	for dir = path.Dir(path.Clean(dir)); dir != "/" && dir != "."; dir = path.Dir(dir) {
		above = append(above, dir)
	}
	return above
}

// nameOf is a name of an image for the policy, of which the library makes no reference: it does not know the transport,
// or what the name stands for is not here. Nothing but the name can be asked for.
type nameOf struct {
	types.ImageReference
	transport  transport.Name
	text       string
	named      reference.Named
	identity   string
	namespaces []string
}

func (n nameOf) Transport() types.ImageTransport         { return transportName{name: n.transport} }
func (n nameOf) StringWithinTransport() string           { return n.text }
func (n nameOf) DockerReference() reference.Named        { return n.named }
func (n nameOf) PolicyConfigurationIdentity() string     { return n.identity }
func (n nameOf) PolicyConfigurationNamespaces() []string { return n.namespaces }

// transportName is the transport of a [nameOf]. Nothing but its name can be asked for.
type transportName struct {
	types.ImageTransport
	name transport.Name
}

func (t transportName) Name() string { return string(t.name) }

// libraryReference returns the library's reference. It resolves symbolic links of paths.
func libraryReference(n transport.Source) (types.ImageReference, error) {
	details := n.Path
	if n.Name != "" {
		details += ":" + n.Name
	}
	switch n.Transport {
	case transport.OCI:
		return layout.ParseReference(details)
	case transport.OCIArchive, transport.DockerArchive:
		if info, err := os.Stat(n.Path); err == nil && !info.IsDir() {
			if err := regularfile.CheckSeekable(n.Path, info); err != nil { // before a path that does not exist is resolved
				return nil, err
			}
		}
		if n.Transport == transport.DockerArchive {
			return archive.ParseReference(details)
		}
		if strings.HasPrefix(n.Name, "@") {
			details = n.Path // in archives the library cannot select an image by its number
		}
		return ociarchive.ParseReference(details)
	case transport.Directory:
		return directory.NewReference(n.Path)
	case transport.Store:
		text := n.Name
		if n.Path != "" {
			text = "[" + n.Path + "]" + n.Name
		}
		identity, above := imagestore.PolicyNames(imagestore.Name{Place: n.Path, Image: n.Name})
		return nameOf{transport: n.Transport, text: text, named: n.Named(), identity: identity, namespaces: above}, nil
	}
	if n.Repository == nil {
		text := n.Path + ":" + n.Name
		return nameOf{transport: n.Transport, text: text, identity: text, namespaces: []string{n.Path}}, nil
	}
	return docker.NewReference(n.Repository)
}
