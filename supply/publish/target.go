package publish

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/library"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
)

// ErrNoName is the error of an image that goes to no place and has no name for one.
var ErrNoName = fault.New(fault.Usage, "the image has no name")

// Destination is where an image goes: to the registry and to the storage of each of its names, and to other places;
// without any to a layout.
type Destination struct {
	// Tags are the names of the image, REGISTRY/REPOSITORY[:TAG].
	Tags []string
	// Given and To are places: they are alike, but To is not parsed yet.
	Given []transport.Destination
	To    []string
	// Push and Load write the image to the registry of each name, and to the storage of containers.
	Push, Load bool
	// Dir is the directory of layouts of images that go nowhere else; empty is the working directory.
	Dir string
	// IfDigest is that of [images.CopyOptions].
	IfDigest string
}

// Target has the names of an image with their tags, and all its destinations.
type Target struct {
	Names        []string
	Destinations []transport.Destination
}

// Target checks the fields. Each destination is there once.
func (o Destination) Target(table transport.Table) (t Target, err error) {
	given := slices.Clone(o.Given)
	if len(o.Tags) == 0 && (len(o.To)+len(given) == 0 || o.Push || o.Load) {
		return t, ErrNoName
	}
	var own []string
	for _, name := range o.Tags {
		if name, err = CheckName(name); err != nil {
			return t, fault.Fieldf("{Tags} %w", err)
		}
		t.Names = append(t.Names, name)
		if o.Push {
			own = append(own, "docker://"+name)
		}
		if o.Load {
			own = append(own, library.InStore(name).String())
		}
	}
	places := append(slices.Clone(o.To), own...)
	if len(given)+len(places) == 0 {
		for _, name := range t.Names {
			_, tag := splitName(name)
			given = append(given, transport.Destination{Transport: transport.OCI, Path: filepath.Join(o.Dir, layoutName(name)), Name: tag})
		}
	}
	for _, text := range places {
		d, err := table.Parse(text)
		if err != nil {
			return t, &PlaceError{text, fault.Fieldf("{To} %q: %w", text, err)}
		}
		given = append(given, d)
	}
	seen := map[string]bool{}
	for _, d := range given {
		if err := CheckRegistry(d); err != nil {
			return t, err
		}
		for _, d := range t.named(d, table) {
			if !seen[d.String()] {
				seen[d.String()] = true
				t.Destinations = append(t.Destinations, d)
			}
		}
	}
	if o.IfDigest == "" {
		return t, nil
	}
	if err := images.CheckIfDigest(o.IfDigest); err != nil {
		return t, fault.Fieldf("invalid {IfDigest} value %.200q, expected sha256:... or none", o.IfDigest)
	}
	if !slices.ContainsFunc(t.Destinations, transport.Destination.InRegistry) {
		return t, fault.Fieldf("{IfDigest} requires {Push} or {To} docker://NAME")
	}
	return t, nil
}

// PlaceError is an error about one destination.
type PlaceError struct {
	Place string
	Err   error
}

func (e *PlaceError) Error() string { return e.Err.Error() }
func (e *PlaceError) Unwrap() error { return e.Err }

// Object is the destination.
func (e *PlaceError) Object() string { return e.Place }

// noRegistry is the error about a name without a registry.
type noRegistry struct{ name string }

func (e noRegistry) Error() string           { return fmt.Sprintf("%q names no registry to push to", e.name) }
func (e noRegistry) ErrorClass() fault.Class { return fault.Usage }

func (e noRegistry) Hint() string {
	return fmt.Sprintf("include the registry, as in registry.example.com/%s or docker.io/%[1]s", e.name)
}

// CheckRegistry refuses a destination without a registry host: the library would default to docker.io.
func CheckRegistry(d transport.Destination) error {
	if d.InRegistry() && !hasRegistry(d.Name) {
		return noRegistry{d.Name}
	}
	return nil
}

// hasRegistry tells whether a name begins with the host of a registry.
func hasRegistry(name string) bool {
	host, _, ok := strings.Cut(name, "/")
	return ok && (strings.ContainsAny(host, ".:") || host == "localhost")
}

// named adds the image's names to a local destination without a name: all of them to a layout, the first one to an
// archive.
func (t Target) named(d transport.Destination, table transport.Table) []transport.Destination {
	row := table.Row(d.Transport)
	if d.Name != "" || len(t.Names) == 0 || row == nil || row.NameOf == nil {
		return []transport.Destination{d}
	}
	var out []transport.Destination
	for _, name := range t.Names {
		d.Name = row.NameOf(name)
		if out = append(out, d); !row.Many {
			break
		}
	}
	return out
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]*$`)

// CheckName refuses invalid names of images and adds the tag "latest" if there is none.
func CheckName(name string) (string, error) {
	name = strings.TrimPrefix(name, "docker://")
	repository, tag := splitName(name)
	if strings.Contains(name, "@") {
		return "", fault.Fieldf("%q: a name with a digest cannot be built", redact.Text(name))
	}
	if !namePattern.MatchString(name) || strings.Contains(name, "//") || strings.HasSuffix(repository, "/") || tag == "" {
		return "", fault.Fieldf("%q: invalid image name, expected REGISTRY/REPOSITORY:TAG", redact.Text(name))
	}
	// Other programs and registries must accept the name too.
	if _, err := reference.ParseNormalizedNamed(repository + ":" + tag); err != nil {
		return "", fault.Fieldf("%q: invalid image name, expected REGISTRY/REPOSITORY:TAG: %w", name, err)
	}
	return repository + ":" + tag, nil
}

// splitName splits REPOSITORY:TAG; the tag is "latest" where there is none.
func splitName(name string) (repository, tag string) {
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return name[:i], name[i+1:]
	}
	return name, "latest"
}

// layoutName returns the directory of the OCI layout of an image: the last element of its repository plus an extension,
// because the catalog's directory often has the same name.
func layoutName(name string) string {
	repository, _ := splitName(name)
	return path.Base(repository) + ".oci"
}
