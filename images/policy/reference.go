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
	ociarchive "go.podman.io/image/v5/oci/archive"
	"go.podman.io/image/v5/oci/layout"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/imagestore"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"go.podman.io/image/v5/docker/reference"
)

// named is the reference of a name for the policy. An image that was carried from a layout has the name of a
// directory that may be elsewhere; the library's reference needs one that is here.
func named(n transport.Source) (types.ImageReference, error) {
	ref, err := libraryReference(n)
	if err != nil && n.Transport == transport.OCI && errors.Is(err, fs.ErrNotExist) {
		return absentLayout{path: n.Path}, nil
	}
	return ref, err
}

// other is the name of an image of a transport that the library does not know.
type other struct {
	types.ImageReference
	name transport.Source
}

func (o other) Transport() types.ImageTransport         { return otherTransport(o.name.Transport) }
func (o other) StringWithinTransport() string           { return o.name.Path + ":" + o.name.Name }
func (o other) DockerReference() reference.Named        { return nil }
func (o other) PolicyConfigurationIdentity() string     { return o.StringWithinTransport() }
func (o other) PolicyConfigurationNamespaces() []string { return []string{o.name.Path} }

// stored is the name of an image in a store.
type stored struct {
	other
	identity   string
	namespaces []string
}

func (s stored) StringWithinTransport() string {
	if s.name.Path == "" {
		return s.name.Name
	}
	return "[" + s.name.Path + "]" + s.name.Name
}
func (s stored) DockerReference() reference.Named        { return s.name.Named() }
func (s stored) PolicyConfigurationIdentity() string     { return s.identity }
func (s stored) PolicyConfigurationNamespaces() []string { return s.namespaces }

type otherTransport string

func (t otherTransport) Name() string { return string(t) }
func (t otherTransport) ParseReference(string) (types.ImageReference, error) {
	return nil, errors.ErrUnsupported
}
func (t otherTransport) ValidatePolicyConfigurationScope(string) error { return nil }

// absentLayout is the name of an OCI layout in a directory that is not here, for the policy.
type absentLayout struct {
	types.ImageReference
	path string
}

func (l absentLayout) Transport() types.ImageTransport     { return layout.Transport }
func (l absentLayout) StringWithinTransport() string       { return l.path }
func (l absentLayout) DockerReference() reference.Named    { return nil }
func (l absentLayout) PolicyConfigurationIdentity() string { return path.Clean(l.path) }
func (l absentLayout) PolicyConfigurationNamespaces() []string {
	var parents []string
	for dir := path.Dir(path.Clean(l.path)); dir != "/" && dir != "."; dir = path.Dir(dir) {
		parents = append(parents, dir)
	}
	return parents
}

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
		identity, above := imagestore.PolicyNames(imagestore.Name{Place: n.Path, Image: n.Name})
		return stored{other{name: n}, identity, above}, nil
	}
	if n.Repository == nil {
		return other{name: n}, nil
	}
	return docker.NewReference(n.Repository)
}
