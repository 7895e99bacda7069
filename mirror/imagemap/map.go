package imagemap

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/internal/fault"
)

// ErrInvalid is the class of errors about images and registries that cannot be mapped.
var ErrInvalid = fault.New(fault.Input, "invalid mapping")

// Mapping is the destination of an image.
type Mapping struct {
	// Source is the image with its registry and a tag or digest.
	Source string `json:"source"`
	// Destination always has a tag: registries delete untagged images, and old ones do not accept them.
	Destination string `json:"destination"`

	from, to string // the repositories
	digest   bool   // the source is pulled by digest
}

// Options configure the destinations.
type Options struct {
	// To is the registry with an optional path: HOST[:PORT][/PATH].
	To string
	// MaxComponents, unless 0, is the maximum number of path components at the destination. Further components are
	// joined to the last one with dashes.
	MaxComponents int
	// KeepHost prefixes the path at the destination with the source's registry.
	KeepHost bool
}

// Map maps images in their order; a repeated image is mapped once. A tag is kept. An image with a digest gets a tag
// derived from the digest, so that equal tags mean equal images.
//
// The error joins all problems, each of which is [ErrInvalid]: invalid names, and different images with the same
// destination.
func Map(images []string, o Options) ([]Mapping, error) {
	prefix, err := parsePlace(o.To)
	if err != nil {
		return nil, err
	}
	if least := len(prefix.path) + 1; o.MaxComponents != 0 && o.MaxComponents < least {
		return nil, fmt.Errorf("%w: %d parts of a path are too few: %s needs %d", ErrInvalid, o.MaxComponents,
			fault.Quote(o.To), least)
	}
	out := []Mapping{}
	var errs []error
	seen := map[string]bool{}
	takenBy := map[string]Mapping{}
	for _, image := range images {
		m, err := prefix.place(image, o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if seen[m.Source] {
			continue
		}
		seen[m.Source] = true
		if other, ok := takenBy[m.Destination]; ok && !(m.digest && other.digest) {
			errs = append(errs,
				fmt.Errorf(
					"%w: %s and %s would both be %s: begin the paths with the names of their registries, or give "+
						"them more parts", ErrInvalid, other.Source, m.Source, m.Destination))
			continue
		}
		takenBy[m.Destination] = m
		out = append(out, m)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// place is a registry with an optional path.
type place struct {
	host string
	path []string
}

func parsePlace(to string) (place, error) {
	to = strings.TrimSuffix(strings.TrimPrefix(to, "docker://"), "/")
	named, err := reference.ParseNamed(to + "/x")
	if err != nil || to == "" || strings.Contains(to, "@") {
		return place{},
			fmt.Errorf("%w: %s is no registry: HOST[:PORT][/PATH] is needed, such as registry.example.com/mirror",
				ErrInvalid, fault.Quote(to))
	}
	path := strings.Split(reference.Path(named), "/")
	return place{reference.Domain(named), path[:len(path)-1]}, nil
}

// place maps one image.
func (p place) place(image string, o Options) (Mapping, error) {
	named, err := reference.ParseNormalizedNamed(strings.TrimPrefix(image, "docker://"))
	if err != nil {
		return Mapping{}, fmt.Errorf("%w: image %s: %w", ErrInvalid, fault.Quote(image), err)
	}
	m := Mapping{from: named.Name()}
	tag := "latest"
	switch ref := named.(type) {
	case reference.Digested:
		digest := ref.Digest()
		const longest = 128
		tag = string(digest.Algorithm()) + "." + digest.Encoded()
		tag, m.digest = tag[:min(len(tag), longest)], true
		m.Source = named.String()
	case reference.Tagged:
		tag = ref.Tag()
		m.Source = named.String()
	default:
		m.Source = reference.TagNameOnly(named).String()
	}
	path := slices.Clone(p.path)
	if o.KeepHost {
		path = append(path,
			strings.ToLower(strings.NewReplacer(":", "-", "[", "", "]", "").Replace(reference.Domain(named))))
	}
	path = append(path, strings.Split(reference.Path(named), "/")...)
	if most := o.MaxComponents; most > 0 && len(path) > most {
		path = append(path[:most-1:most-1], strings.Join(path[most-1:], "-"))
	}
	m.to = p.host + "/" + strings.Join(path, "/")
	m.Destination = m.to + ":" + tag
	if _, err := reference.ParseNamed(m.Destination); err != nil {
		return Mapping{}, fmt.Errorf("%w: image %s would be %s: %w", ErrInvalid, fault.Quote(image),
			fault.Quote(m.Destination), err)
	}
	return m, nil
}
