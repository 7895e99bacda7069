package images

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/internal/layouts"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
)

// BuiltIn returns the transports of this package, that of registries first. Archives of docker and directories of the
// containers tools are only read; library.Transports of package images/library has all that can be written.
func BuiltIn() transport.Table {
	return transport.Table{
		{Name: transport.Docker, Form: "docker://HOST/REPOSITORY[:TAG]", About: "a repository of a registry",
			Attachments: true},
		layoutRow(transport.Row{Name: transport.OCI, Form: "oci:DIR[:TAG]", About: "an OCI image layout", Many: true,
			Check: checkLayout}),
		layoutRow(transport.Row{Name: transport.OCIArchive, Form: "oci-archive:FILE[:TAG]",
			About: "an OCI image layout in an archive", Check: checkArchive}),
		filesRow(transport.Row{Name: transport.DockerArchive, Form: "docker-archive:FILE[:NAME]",
			About: "an archive of \"docker save\"", Converts: true, Parse: pathAndName,
			NameOf: func(name string) string { return name }, Check: checkDockerArchive, Takes: takesOneImage}),
		filesRow(transport.Row{Name: transport.Directory, Form: "dir:DIR", About: "a directory of the containers tools",
			Parse: func(rest string) (string, string, error) {
				if rest == "" {
					return "", "", errors.New("the path is empty")
				}
				return rest, "", nil
			}, Check: checkFile}),
	}
}

// filesRow completes the row of a transport whose images are in files.
func filesRow(r transport.Row) transport.Row {
	r.Files = true
	r.Open = func(ctx context.Context, path, name string, o transport.Options) (*transport.Place, error) {
		from := transport.Destination{Transport: r.Name, Path: path, Name: name}
		at, err := layouts.OpenSource(ctx, from, o.Limits, o.Temp)
		if err != nil {
			return nil, err
		}
		at.Named = nameInLayout(at.Top.Annotations[v1.AnnotationRefName])
		return at, nil
	}
	return r
}

// layoutRow completes the row of a transport whose images are in OCI layouts.
func layoutRow(r transport.Row) transport.Row {
	r.Attachments, r.Parse, r.NameOf, r.Takes = true, pathAndName, tagOf, takesOCI
	r.Write = func(ctx context.Context, path, name string, o transport.Options) (store.Writer, error) {
		begin := layouts.NewWriter
		if o.Adds {
			begin = layouts.NewAddition
		}
		to, err := begin(ctx, transport.Destination{Transport: r.Name, Path: path, Name: name}, o.Limits, o.Temp)
		if err != nil {
			return nil, err
		}
		return to, nil
	}
	return filesRow(r)
}

func tagOf(name string) string {
	_, tag, _ := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":")
	return tag
}

// checkArchive checks a file to write a layout to.
func checkArchive(path, name string) error {
	if base := filepath.Base(path); base == "." || base == string(filepath.Separator) {
		return errors.New("the path is a directory")
	}
	return checkLayout(path, name)
}

// checkDockerArchive checks a file to write an archive of docker to. The image in it need not have a name.
func checkDockerArchive(path, name string) error {
	if err := checkFile(path, name); err != nil || name == "" {
		return err
	}
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return fmt.Errorf("docker-archive parsing reference: %w", err)
	}
	if _, tagged := reference.TagNameOnly(named).(reference.Tagged); !tagged {
		return fmt.Errorf("reference does not include a tag: %s", named)
	}
	if _, digested := named.(reference.Digested); digested {
		return fmt.Errorf("docker-archive doesn't support digest references: %s", named)
	}
	return nil
}

// takesOneImage refuses an index for an archive of docker.
func takesOneImage(mediaType string) error {
	if !manifest.MIMETypeIsMultiImage(mediaType) {
		return nil
	}
	return errors.New("an archive of docker holds the image of one platform, and this is an index of several")
}

// takesOCI refuses docker's formats for a layout.
func takesOCI(mediaType string) error {
	if mediaType == v1.MediaTypeImageManifest || mediaType == v1.MediaTypeImageIndex {
		return nil
	}
	return fmt.Errorf("an OCI layout holds OCI images only, and this is %s: take the oci format, or a destination of "+
		"docker://, dir: or docker-archive", mediaType)
}

// unsupported is the error about what a row of a table does not do.
func unsupported(r *transport.Row) error {
	return fmt.Errorf("the transports of this program do not do this with images of %s, and perhaps those of package "+
		"images/library do: %w", r.Prefix(), errors.ErrUnsupported)
}

// nameInLayout returns the name of an image in a layout if it is one of a registry, with a host; else it is empty.
func nameInLayout(name string) string {
	host, _, ok := strings.Cut(name, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return ""
	}
	ref, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return ""
	}
	return reference.TagNameOnly(ref).String()
}

// pathAndName reads PATH[:NAME], for [transport.Row.Parse]. The colon of a Windows drive belongs to the path.
func pathAndName(rest string) (path, name string, err error) {
	drive := filepath.VolumeName(rest)
	path, name, _ = strings.Cut(rest[len(drive):], ":")
	if path = drive + path; path == "" {
		return "", "", errors.New("the path is empty")
	}
	return path, name, nil
}

// checkFile is a [transport.Row.Check] for a path and the name of an image there, which must not be the number of one.
func checkFile(path, name string) error {
	if strings.ContainsRune(path, 0) {
		return errors.New("NUL in the path")
	}
	if strings.HasPrefix(name, "@") {
		return errors.New("an index of an image can be read but not written")
	}
	return nil
}

// checkLayout is checkFile for a layout, whose names are those of the image specification.
func checkLayout(path, name string) error {
	if err := checkFile(path, name); err != nil {
		return err
	}
	if name != "" && !layoutName.MatchString(name) {
		return fmt.Errorf("%q is no name for an image in a layout", name)
	}
	return nil
}

// layoutName is the form of the names of images in layouts (image specification, "Pre-Defined Annotation Keys"), with
// the signs that the containers tools allow as well.
var layoutName = regexp.MustCompile(`^` + layoutPart + `(?:/` + layoutPart + `)*$`)

const layoutPart = `[A-Za-z0-9]+(?:(?:[-._:@+]|--)[A-Za-z0-9]+)*`
