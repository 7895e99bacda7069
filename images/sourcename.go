package images

import (
	"errors"
	"strings"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/internal/imagestore"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/trust"
	"github.com/operator-bindery/bindery/internal/verify"
)

// sourceName is the parsed name of an image to read.
type sourceName struct {
	transport Transport
	// path is the directory or file of a local transport, or the place of a store. name is the text after it: a tag, a
	// reference, or "@" and a number.
	path, name string
	// repository has the tag or digest of an image in a registry.
	repository reference.Named
}

// parse reads the names that [Client.Open] describes.
func (ts Transports) parse(text string) (n sourceName, err error) {
	if !printable.NoControl(text) || text == "" {
		return n, errors.New("not a name of an image")
	}
	transport, rest, _ := strings.Cut(text, ":")
	row := ts.row(Transport(transport))
	switch {
	case row == nil:
		return repositoryName(text)
	case row.Parse == nil:
		named, ok := strings.CutPrefix(rest, "//")
		if !ok {
			return n, errors.New("a registry is written docker://HOST/REPOSITORY[:TAG]")
		}
		return repositoryName(named)
	}
	n.transport = row.Name
	n.path, n.name, err = row.Parse(rest)
	return n, err
}

// pathAndName reads PATH[:NAME].
func pathAndName(rest string) (path, name string, err error) {
	path, name = splitPath(rest)
	return path, name, checkPath(path)
}

func checkPath(path string) error {
	if path == "" {
		return errors.New("the path is empty")
	}
	return nil
}

// parseStored reads [SPEC]NAME.
func parseStored(rest string) (path, name string, err error) {
	if path, name, err = imagestore.Split(rest); err == nil && name == "" {
		err = errors.New("the image has no name: want containers-storage:NAME[:TAG]")
	}
	return path, name, err
}

// repositoryName parses HOST/REPOSITORY[:TAG][@DIGEST]. The default host is docker.io, the default tag "latest".
func repositoryName(named string) (sourceName, error) {
	ref, err := reference.ParseNormalizedNamed(named)
	if err != nil {
		return sourceName{}, err
	}
	if canonical, ok := ref.(reference.Canonical); ok {
		if err := verify.Digest(canonical.Digest()); err != nil {
			return sourceName{}, err
		}
		// The tag is ignored if there is a digest.
		if ref, err = reference.WithDigest(reference.TrimNamed(ref), canonical.Digest()); err != nil {
			return sourceName{}, err
		}
	}
	return sourceName{transport: Docker, repository: reference.TagNameOnly(ref)}, nil
}

// tagOrDigest returns the part of a name that chooses the image in its repository: the digest, else the tag.
func tagOrDigest(named reference.Named) string {
	switch named := named.(type) {
	case reference.Canonical:
		return named.Digest().String()
	case reference.Tagged:
		return named.Tag()
	}
	return "latest"
}

// policyName is the name for the signature policy.
func (n sourceName) policyName() trust.Name {
	return trust.Name{Transport: string(n.transport), Path: n.path, Name: n.name, Repository: n.repository}
}

// named returns the reference of the image in a registry, as its name has it; nil if it has none.
func (n sourceName) named() reference.Named {
	switch n.transport {
	case Docker:
		return n.repository
	case DockerArchive, Store:
		if named, err := reference.ParseNormalizedNamed(n.name); err == nil {
			return reference.TagNameOnly(named)
		}
	}
	return nil
}
