package images

import (
	"context"
	"errors"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/imagestore"
	"github.com/operator-bindery/bindery/internal/layouts"
)

// TransportRow describes a transport: how its images are named and opened, and what it can do.
type TransportRow struct {
	// Name is what stands before the colon, as the containers tools write it.
	Name Transport
	// Form is the form of a name, such as "oci:DIR[:TAG]", and About says in a few words what it is.
	Form, About string
	// Files tells that an image is a file or directory, whose path is in its name.
	Files bool
	// Attachments tells that signatures and other attachments are kept beside images.
	Attachments bool
	// Parse reads what is after the colon: a place, and the name of the image there. Nil is for registries, whose names
	// are HOST/REPOSITORY[:TAG][@DIGEST].
	Parse func(rest string) (path, name string, err error)
	// Open opens an image for reading. Nil is for registries, which the client opens.
	Open func(ctx context.Context, path, name string, o PlaceOptions) (*Place, error)
	// Write opens the place for an image to be written. Nil is for registries, which [Copy] opens, and for what the
	// containers library writes.
	Write func(ctx context.Context, path, name string, o PlaceOptions) (store.Writer, error)
}

// PlaceOptions are how a place is opened.
type PlaceOptions struct {
	// Limits are for archives. None is zero.
	Limits Limits
	// Temp is the directory for what is decompressed of archives; empty means the system's. Private is a directory that
	// exists as long as the client.
	Temp, Private string
}

// Transports is a table of transports. It is not changed once a client has it.
type Transports []TransportRow

// BuiltIn returns the transports of this package, that of registries first. A program appends its own.
func BuiltIn() Transports {
	files := func(t Transport, form, about string, attachments bool,
		parse func(string) (string, string, error)) TransportRow {
		return TransportRow{Name: t, Form: form, About: about, Files: true, Attachments: attachments, Parse: parse,
			Open: func(ctx context.Context, path, name string, o PlaceOptions) (*Place, error) {
				return openFiles(ctx, layouts.Place{Format: layouts.Format(t), Path: path, Name: name}, o)
			}}
	}
	layout := func(r TransportRow) TransportRow {
		r.Write = func(ctx context.Context, path, name string, o PlaceOptions) (store.Writer, error) {
			return writeLayout(ctx, layouts.Place{Format: layouts.Format(r.Name), Path: path, Name: name}, o)
		}
		return r
	}
	return Transports{
		{Name: Docker, Form: "docker://HOST/REPOSITORY[:TAG]", About: "a repository of a registry", Attachments: true},
		layout(files(OCI, "oci:DIR[:TAG]", "an OCI image layout", true, pathAndName)),
		layout(files(OCIArchive, "oci-archive:FILE[:TAG]", "an OCI image layout in an archive", true, pathAndName)),
		files(DockerArchive, "docker-archive:FILE[:NAME]", "an archive of \"docker save\"", false, pathAndName),
		files(Directory, "dir:DIR", "a directory of the containers tools", false,
			func(rest string) (string, string, error) { return rest, "", checkPath(rest) }),
		{Name: Store, Form: "containers-storage:NAME", About: "podman's storage", Parse: parseStored, Open: openStored},
	}
}

// openFiles opens an image in files.
func openFiles(ctx context.Context, p layouts.Place, o PlaceOptions) (*Place, error) {
	src, err := layouts.OpenSource(ctx, p, o.Limits, o.Temp)
	if err != nil {
		return nil, err
	}
	return &Place{Reader: src, Top: src.Top(), Named: nameInLayout(src.Top().Annotations[v1.AnnotationRefName]),
		Signatures: src.Signatures, Close: src.Close}, nil
}

// writeLayout stages a layout, or an addition to one.
func writeLayout(ctx context.Context, p layouts.Place, o PlaceOptions) (store.Writer, error) {
	out, err := layouts.NewOutput(ctx, p)
	if err != nil {
		return nil, err
	}
	to, err := out.Writer(ctx, o.Limits, o.Temp)
	if err != nil {
		return nil, errors.Join(err, out.Discard())
	}
	return to, nil
}

// openStored opens an image in a store. The library takes another place than the system's for temporary files.
func openStored(ctx context.Context, path, name string, o PlaceOptions) (*Place, error) {
	src, err := imagestore.OpenSource(ctx, imagestore.Name{Place: path, Image: name}, o.Private)
	if err != nil {
		return nil, err
	}
	return &Place{Reader: src, Top: src.Top(), Digest: src.Identity(), Original: src.Original(), Close: src.Close}, nil
}

// row returns the row of a transport; nil if there is none.
func (ts Transports) row(name Transport) *TransportRow {
	if i := slices.IndexFunc(ts, func(r TransportRow) bool { return r.Name == name }); i >= 0 {
		return &ts[i]
	}
	return nil
}

// Prefix is what a name of the transport begins with.
func (r *TransportRow) Prefix() string {
	if r.Parse == nil {
		return string(r.Name) + "://"
	}
	return string(r.Name) + ":"
}

// prefixes lists what names begin with.
func (ts Transports) prefixes() string {
	var all []string
	for _, r := range ts {
		all = append(all, r.Prefix())
	}
	return strings.Join(all, ", ")
}

// Has tells whether a text begins as a name of one of the transports.
func (ts Transports) Has(text string) bool {
	return slices.ContainsFunc(ts, func(r TransportRow) bool { return strings.HasPrefix(text, r.Prefix()) })
}

// Check checks the text of a name for [Client.Open].
func (ts Transports) Check(text string) error {
	_, err := ts.parse(text)
	return err
}

// CheckKeeps returns an [ErrNoAttachments] for the name of an image whose place keeps no attachments.
func (ts Transports) CheckKeeps(text string) error {
	n, err := ts.parse(text)
	if err != nil {
		return pullError(text, err)
	}
	if !ts.row(n.transport).Attachments {
		return pullError(text, &noAttachments{string(n.transport) + ":" + n.path})
	}
	return nil
}
