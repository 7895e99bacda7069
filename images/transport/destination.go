package transport

import (
	"errors"
	"fmt"
	"strings"

	"go.podman.io/image/v5/docker/reference"
)

// Destination is a place to write an image to; see [Table.Parse].
type Destination struct {
	Transport Name
	// Path is the directory or file of a local transport, or the place of a store other than the user's own.
	Path string
	// Name is the repository and tag in a registry or store, or the name in a layout or archive, which may be empty.
	Name string
}

// Parse reads a destination TRANSPORT:DETAILS, in the forms of the rows:
//
//	docker://HOST/REPOSITORY[:TAG]
//	oci:DIR[:TAG]
//	oci-archive:FILE[:TAG]
//	docker-archive:FILE[:REPOSITORY[:TAG]]
//	dir:DIR
//	containers-storage:[[DRIVER@ROOT+RUNROOT:OPTIONS]]REPOSITORY[:TAG]
//
// Only the text is checked. Whether the place can be written is found out by writing.
func (t Table) Parse(text string) (Destination, error) {
	name, rest, ok := strings.Cut(text, ":")
	if !ok {
		return Destination{}, fmt.Errorf("destination %q: want TRANSPORT:PATH with one of %s", text, t.Prefixes())
	}
	row := t.Row(Name(name))
	if row == nil {
		return Destination{}, fmt.Errorf("destination %q: unknown transport %q, want one of %s", text, name, t.Prefixes())
	}
	d, err := row.destination(rest)
	if err != nil {
		return Destination{}, fmt.Errorf("destination %q: %w", text, err)
	}
	return d, nil
}

// destination reads what is after the colon.
func (r *Row) destination(rest string) (d Destination, err error) {
	d.Transport = r.Name
	if r.Parse == nil {
		d.Name = strings.TrimPrefix(rest, "//")
		if d.Name == rest {
			return d, errors.New("a registry is written docker://HOST/REPOSITORY:TAG")
		}
		_, err = d.Repository()
		return d, err
	}
	if d.Path, d.Name, err = r.Parse(rest); err == nil && r.Check != nil {
		err = r.Check(d.Path, d.Name)
	}
	return d, err
}

// untagged ends the name of a destination that gets no tag, as the containers tools write it.
const untagged = "@@unknown-digest@@"

// Repository returns the reference of a destination in a registry, with the tag "latest" if it has none.
func (d Destination) Repository() (reference.Named, error) {
	name, bare := strings.CutSuffix(d.Name, untagged)
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return nil, err
	}
	if bare {
		if !reference.IsNameOnly(named) {
			return nil, fmt.Errorf("%q has a tag or a digest", d.Name)
		}
		return named, nil
	}
	_, tagged := named.(reference.Tagged)
	if _, digested := named.(reference.Digested); tagged && digested {
		return nil, errors.New("an image is written under a tag or a digest, not under both")
	}
	return reference.TagNameOnly(named), nil
}

// String returns the text that [Table.Parse] reads.
func (d Destination) String() string {
	switch {
	case d.Transport == Docker:
		return "docker://" + d.Name
	case d.Transport == Store && d.Path != "":
		return string(d.Transport) + ":[" + d.Path + "]" + d.Name
	case d.Path == "" || d.Name == "":
		return string(d.Transport) + ":" + d.Path + d.Name
	}
	return string(d.Transport) + ":" + d.Path + ":" + d.Name
}

// InRegistry tells whether the destination is in a registry, and not on this machine.
func (d Destination) InRegistry() bool { return d.Transport == Docker }

// InFiles tells whether Path is the file or directory of the image: the destination is neither in a registry nor in a
// store.
func (d Destination) InFiles() bool { return d.Transport != Docker && d.Transport != Store }
