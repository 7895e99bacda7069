package transport

import (
	"context"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/limit"
)

// Name is the name of a transport, as the containers tools write it before the colon.
type Name string

// The transports that bindery has: the first three of package images, the others of package images/library.
const (
	Docker        Name = "docker"
	OCI           Name = "oci"
	OCIArchive    Name = "oci-archive"
	DockerArchive Name = "docker-archive"
	Directory     Name = "dir"
	Store         Name = "containers-storage"
)

// Row describes a transport: how its images are named, opened and written, and what it can do. Its functions are safe
// for concurrent use.
type Row struct {
	Name Name
	// Form is the form of a name, such as "oci:DIR[:TAG]", and About says in a few words what it is.
	Form, About string
	// Files tells that an image is a file or directory, whose path is in its name, and Many that one path can have
	// several images.
	Files, Many bool
	// Attachments tells that signatures and other attachments are kept beside images.
	Attachments bool
	// Converts tells that an image is written in another format, so that it gets another digest.
	Converts bool

	// NameOf returns the name of an image in files for that in a registry, REPOSITORY[:TAG]; nil if it has none there.
	NameOf func(name string) string
	// Parse reads what is after the colon: a place, and the name of the image there. Nil is for registries, whose names
	// are HOST/REPOSITORY[:TAG][@DIGEST].
	Parse func(rest string) (path, name string, err error)
	// Check, unless nil, returns an error for a name that can be read and not be written.
	Check func(path, name string) error
	// Takes, unless nil, returns an error for the media type of a manifest or index that the transport cannot hold.
	Takes func(mediaType string) error

	// Open opens an image for reading. Nil is for registries, which the client opens.
	Open func(ctx context.Context, path, name string, o Options) (*Place, error)
	// Write opens the place for an image to be written. Nil is for registries, which images.Copy opens, and for what
	// has a Fill.
	Write func(ctx context.Context, path, name string, o Options) (store.Writer, error)
	// Fill copies an image to a place that is no [store.Writer], beside it or without its name.
	Fill func(ctx context.Context, path, name string, c Content) (*Filled, error)
	// Hold, unless nil, opens the place of an image that is going to be written, so that an error is known before the
	// work; the place is held until it is released.
	Hold func(ctx context.Context, path string) (release func() error, err error)
}

// Prefix is what a name of the transport begins with.
func (r *Row) Prefix() string {
	if r.Parse == nil {
		return string(r.Name) + "://"
	}
	return string(r.Name) + ":"
}

// Options are how a place is opened.
type Options struct {
	// Limits are for archives. None is zero.
	Limits limit.Limits
	// Temp is the directory for what is decompressed of archives; empty means the system's. Private is a directory that
	// exists as long as the client.
	Temp, Private string
	// Adds tells that what is written is attached to an image that is there.
	Adds bool
}

// Place is an image in the place where it is, as a transport opens it.
type Place struct {
	store.Reader
	// Top is the descriptor of the index or manifest. Its text has that digest and size.
	Top v1.Descriptor
	// Digest is that by which others know the image, if it is not that of Top: a store of podman has the files of
	// layers, of which another manifest is made.
	Digest digest.Digest
	// Named is the reference of the image in a registry, where the place has one: REPOSITORY:TAG or REPOSITORY@DIGEST.
	Named string
	// OpenedAt is the reference in the registry or the mirror that is read.
	OpenedAt string
	// Signatures, unless nil, returns the signatures that the place has for a manifest of the image, in the form of the
	// containers library. If there is none, that is no error.
	Signatures func(ctx context.Context, of digest.Digest) ([][]byte, error)
	// SignaturesAt, unless nil, tells the repository where attached signatures are looked for, whether they are, and
	// the file that says so, if one does.
	SignaturesAt func() (repository string, wanted bool, file string)
	// Original, unless nil, has the manifest that was signed, and its signatures.
	Original types.ImageSource
	// Close, unless nil, ends the use of the place.
	Close func() error
}

// Content is an image that [Row.Fill] copies.
type Content struct {
	From store.Reader
	Top  v1.Descriptor
	// Platform selects the image of an index for a place that holds only one image; zero means the platform of this
	// machine, else any for Linux.
	Platform v1.Platform
	// Private is a directory for temporary files that exists until the image is in its place.
	Private string
	// Event receives the steps, without their Destination. It is called from several goroutines.
	Event func(store.Event)
}

// Filled is an image that is written, but not in its place.
type Filled struct {
	Digest    digest.Digest
	MediaType string
	// Written are the blobs that were written, with the configuration, and Reused those that were there.
	Written, Reused []digest.Digest
	// Commit puts the image in its place, in one step. Discard removes what is left, also after Commit.
	Commit  func(context.Context) error
	Discard func() error
}
