package transport

import (
	"errors"
	"fmt"
	"strings"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Source is the name of an image to read; see [Table.Source].
type Source struct {
	Transport Name
	// Path is the directory or file of a local transport, or the place of a store. Name is the text after it: a tag, a
	// reference, or "@" and a number.
	Path, Name string
	// Repository has the tag or digest of an image in a registry.
	Repository reference.Named
}

// Source reads the name of an image to read: TRANSPORT:DETAILS in the forms of the rows, or
// HOST/REPOSITORY[:TAG][@DIGEST] for a registry. A first part without a dot or port that is not "localhost" is no host:
// such a name is of docker.io. If there is a digest, the tag is ignored. Only the text is checked.
func (t Table) Source(text string) (s Source, err error) {
	if !printable.NoControl(text) || text == "" {
		return s, errors.New("not a name of an image")
	}
	name, rest, _ := strings.Cut(text, ":")
	row := t.Row(Name(name))
	switch {
	case row == nil && t.Row(Docker) == nil:
		return s, fmt.Errorf("not a name of an image: want one with %s", t.Prefixes())
	case row == nil:
		return inRegistry(text)
	case row.Parse == nil:
		named, ok := strings.CutPrefix(rest, "//")
		if !ok {
			return s, errors.New("a registry is written docker://HOST/REPOSITORY[:TAG]")
		}
		return inRegistry(named)
	}
	s.Transport = row.Name
	s.Path, s.Name, err = row.Parse(rest)
	return s, err
}

// inRegistry parses HOST/REPOSITORY[:TAG][@DIGEST]. The default host is docker.io, the default tag "latest".
func inRegistry(named string) (Source, error) {
	ref, err := reference.ParseNormalizedNamed(named)
	if err != nil {
		return Source{}, err
	}
	if canonical, ok := ref.(reference.Canonical); ok {
		if err := verify.Digest(canonical.Digest()); err != nil {
			return Source{}, err
		}
		// The tag is ignored if there is a digest.
		if ref, err = reference.WithDigest(reference.TrimNamed(ref), canonical.Digest()); err != nil {
			return Source{}, err
		}
	}
	return Source{Transport: Docker, Repository: reference.TagNameOnly(ref)}, nil
}

// Named returns the reference of the image in a registry, as its name has it; nil if it has none.
func (s Source) Named() reference.Named {
	switch s.Transport {
	case Docker:
		return s.Repository
	case DockerArchive, Store:
		if named, err := reference.ParseNormalizedNamed(s.Name); err == nil {
			return reference.TagNameOnly(named)
		}
	}
	return nil
}
