// Package payload reads what a release of OpenShift or OKD consists of: the images that the release image names.
package payload

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// The directory of a release image, and the files in it: an ImageStream with the images, the ConfigMap with the boot
// images of machines, which releases before 4.13 do not have, and what the graph says of the release.
const (
	Dir        = "release-manifests"
	References = "image-references"
	BootImages = "0000_50_installer_coreos-bootimages.yaml"
	Metadata   = "release-metadata"
)

const (
	// maxFile is the limit of each of the files in bytes. Those of releases have about 200 KiB.
	maxFile = 16 << 20
	// maxComponents is how many images a release names at most. Releases have about 200.
	maxComponents = 5000
)

// Payload is what a release names.
type Payload struct {
	// Version is the version that the release gives itself, empty if it gives none.
	Version string
	// Architectures are those of the images of the release, sorted; none if they are not known.
	Architectures []string
	// Components are its images in the order of the file. Several may be one image under different names.
	Components []Component
	// KubeVirt are the boot images of virtual machines by architecture: x86_64, s390x. BootImagesError is why the file
	// with them cannot be read, which is of no matter to those who do not ask for them.
	KubeVirt        map[string]imageset.Ref
	BootImagesError error
	// Files are the texts of the files by their names, without [Dir].
	Files map[string][]byte
}

// ErrNoRelease is about an image that has no list of components. It is [fault.ErrInvalid].
var ErrNoRelease = fmt.Errorf("%w: the image has no file %s/%s: it is no release", fault.ErrInvalid, Dir, References)

// Component is an image of a release.
type Component struct {
	Name  string
	Image imageset.Ref
}

// Read reads the files of a release image. Of an index it reads those of all images, which must be the same: the images
// of a release for several architectures are named by indexes, too. Errors about the content are [fault.ErrInvalid] and
// [fault.ErrLimit].
func Read(ctx context.Context, at store.Reader, top v1.Descriptor) (*Payload, error) {
	index, err := store.ReadImage(ctx, at, top)
	if err != nil {
		return nil, err
	}
	list := index.Instances
	if len(list) == 0 {
		list = []v1.Descriptor{top}
	}
	var files map[string][]byte
	var first digest.Digest
	var absent error
	architectures := map[string]bool{}
	for _, d := range list {
		of, architecture, err := readFiles(ctx, at, d)
		if errors.Is(err, fs.ErrNotExist) {
			absent = err
			continue // an index of which only some platforms were copied
		}
		if err != nil {
			return nil, err
		}
		if architecture != "" {
			architectures[architecture] = true
		}
		if files == nil {
			files, first = of, d.Digest
		}
		if !bytes.Equal(files[References], of[References]) {
			return nil, fmt.Errorf("%w: the images of the release differ in %s/%s: %s is not as %s", fault.ErrInvalid, Dir,
				References, d.Digest, first)
		}
	}
	if files == nil {
		return nil, absent
	}
	p, err := Parse(files)
	if err == nil {
		p.Architectures = slices.Sorted(maps.Keys(architectures))
	}
	return p, err
}

// IsFor reports whether the images of the release may be those for an architecture of a graph, of which "multi" is all.
func (p *Payload) IsFor(architecture string) bool {
	return architecture == "" || architecture == "multi" || len(p.Architectures) == 0 || slices.Contains(p.Architectures, architecture)
}

// readFiles reads the files of one image, and its architecture.
func readFiles(ctx context.Context, at store.Reader, d v1.Descriptor) (_ map[string][]byte, architecture string, err error) {
	source, err := images.At(ctx, at, d)
	if err != nil {
		return nil, "", err
	}
	image, err := source.Image(ctx, v1.Platform{})
	if err != nil {
		return nil, "", err
	}
	limits := images.Limits{File: maxFile}
	names := []string{References, BootImages, Metadata}
	var wanted []string
	for _, name := range names {
		wanted = append(wanted, path.Join(Dir, name))
	}
	tree, err := image.Extract(ctx, wanted, images.ExtractOptions{Limits: limits})
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	files := map[string][]byte{}
	for _, name := range names {
		text, err := fs.ReadFile(tree, Dir+"/"+name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		files[name] = text
	}
	return files, image.Config.Architecture, nil
}

// Parse reads the texts of the files.
func Parse(files map[string][]byte) (*Payload, error) {
	p := &Payload{Files: files, KubeVirt: map[string]imageset.Ref{}}
	text, ok := files[References]
	if !ok {
		return nil, ErrNoRelease
	}
	var stream struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Tags []struct {
				Name string `json:"name"`
				From struct {
					Name string `json:"name"`
				} `json:"from"`
			} `json:"tags"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(text, &stream); err != nil {
		return nil, fmt.Errorf("%s: %w: %v", References, fault.ErrInvalid, err)
	}
	if err := p.readVersion(stream.Metadata.Name); err != nil {
		return nil, err
	}
	if n := len(stream.Spec.Tags); n > maxComponents {
		return nil, fmt.Errorf("%s: %w: %d images (limit %d)", References, fault.ErrLimit, n, maxComponents)
	}
	seen := map[string]bool{}
	for _, tag := range stream.Spec.Tags {
		ref, err := reference(tag.From.Name)
		if err != nil {
			return nil, fmt.Errorf("%s: component %s: %w", References, fault.Quote(tag.Name), err)
		}
		if tag.Name == "" || seen[tag.Name] {
			return nil, fmt.Errorf("%s: %w: two components are called %s", References, fault.ErrInvalid, fault.Quote(tag.Name))
		}
		seen[tag.Name] = true
		p.Components = append(p.Components, Component{tag.Name, ref})
	}
	if len(p.Components) == 0 {
		return nil, fmt.Errorf("%s: %w: the release has no components", References, fault.ErrInvalid)
	}
	if p.BootImagesError = p.readBootImages(); p.BootImagesError != nil {
		p.KubeVirt = nil
	}
	return p, nil
}

// readVersion reads the version, which the two files that have it give alike.
func (p *Payload) readVersion(name string) error {
	var about struct {
		Version string `json:"version"`
	}
	if text, ok := p.Files[Metadata]; ok {
		if err := json.Unmarshal(text, &about); err != nil {
			return fmt.Errorf("%s: %w: %v", Metadata, fault.ErrInvalid, err)
		}
	}
	if p.Version = cmp.Or(about.Version, name); name != "" && p.Version != name {
		return fmt.Errorf("%w: the release is %s in %s, and %s in %s", fault.ErrInvalid, fault.Quote(p.Version), Metadata,
			fault.Quote(name), References)
	}
	return nil
}

// reference reads a reference that a release has.
func reference(text string) (imageset.Ref, error) {
	ref, err := imageset.ParseRef(text)
	if err == nil && (!ref.InRegistry() || ref.Host == "") {
		err = fmt.Errorf("%s names no registry", fault.Quote(text))
	}
	if err != nil {
		return imageset.Ref{}, fmt.Errorf("%w: %w", fault.ErrInvalid, err)
	}
	return ref, nil
}

// readBootImages reads the images of virtual machines.
func (p *Payload) readBootImages() error {
	text, ok := p.Files[BootImages]
	if !ok {
		return nil
	}
	var config struct {
		Data struct {
			Stream string `json:"stream"`
		} `json:"data"`
	}
	plain, err := canon.AppendYAML(nil, text, canon.Limits{MaxDocument: maxFile}, nil)
	if err == nil {
		err = json.Unmarshal(plain, &config)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %w", BootImages, fault.ErrInvalid, err)
	}
	var stream struct {
		Architectures map[string]struct {
			Images struct {
				KubeVirt struct {
					DigestRef string `json:"digest-ref"`
				} `json:"kubevirt"`
			} `json:"images"`
		} `json:"architectures"`
	}
	if config.Data.Stream == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(config.Data.Stream), &stream); err != nil {
		return fmt.Errorf("%s: %w: data.stream: %v", BootImages, fault.ErrInvalid, err)
	}
	for key, of := range stream.Architectures {
		if text := of.Images.KubeVirt.DigestRef; text != "" {
			if p.KubeVirt[key], err = reference(text); err != nil {
				return fmt.Errorf("%s: kubevirt image of %s: %w", BootImages, fault.Quote(key), err)
			}
		}
	}
	return nil
}
