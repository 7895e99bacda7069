package resources

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/yamlout"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// Copied is an image that is at the destination.
type Copied struct {
	// Source is the reference as the image set or the catalog names it, Destination that of the copy.
	Source, Destination imageset.Ref
	// Additional tells that it is an additional image or one of a chart, Release that it is one of a release; else it is one of a
	// catalog's bundles.
	Additional, Release bool
	// Catalog is set for catalogs: they get a CatalogSource and a ClusterCatalog, and no mirrors.
	Catalog bool
	// ByDigest tells that the tag stands for something else, the list of what is attached to the catalog: it is pulled by
	// its digest.
	ByDigest bool
	// Digest is that of a catalog at the destination. It is needed with [Options].PinCatalogs and ByDigest.
	Digest digest.Digest
	// Template is the CatalogSource to be filled in; nil for none.
	Template *Template
}

// The categories of images, by which sets of mirrors are named.
const (
	releases   = "release"
	operators  = "operator"
	additional = "generic"
)

func (c *Copied) category() string {
	switch {
	case c.Release:
		return releases
	case c.Additional:
		return additional
	}
	return operators
}

// Options configure [Options.Make].
type Options struct {
	// CreatedBy, CreatedAt and Version are written into annotations. An empty CreatedBy is "bindery"; files with
	// another one are never removed by [Write].
	CreatedBy string
	CreatedAt time.Time
	Version   string
	// Repositories names each repository in sets of mirrors. Otherwise the namespace is named where source and
	// destination end with the same path: fewer entries, which hold for other images of the namespace too.
	Repositories bool
	// Nested says that paths were joined at the destination, which implies Repositories.
	Nested bool
	// PinCatalogs refers to catalogs by digest.
	PinCatalogs bool
	// Signatures are the signatures of releases by the digest of the release image.
	Signatures map[digest.Digest][][]byte
	// GraphData, unless zero, is the image with the data of update graphs, for which an UpdateService is made, and
	// Releases the repository with the release images.
	GraphData, Releases imageset.Ref
	// Policy adds an ImageContentSourcePolicy, for clusters that know nothing newer.
	Policy bool
	// Lists adds mapping.txt and registries.conf.
	Lists bool
	// Insecure allows plain HTTP for the mirror in registries.conf.
	Insecure bool
}

// creator is the value of the annotation createdBy.
const creator = "bindery"

// File is a file of the set, with its name without a directory.
type File struct {
	Name string
	Data []byte
}

// object is an object of a cluster, as JSON.
type object = map[string]any

// Make makes the files for images, sorted by name. The order of the images does not matter. The warnings are what
// should be known about the files.
func (o Options) Make(images []Copied) (files []File, warnings []string, err error) {
	m := &maker{o: o, names: map[string]bool{}}
	images = slices.Clone(images)
	slices.SortStableFunc(images, func(a, b Copied) int {
		return cmp.Or(cmp.Compare(b.category(), a.category()), cmp.Compare(a.Source.String(), b.Source.String()),
			cmp.Compare(a.Destination.String(), b.Destination.String()))
	})
	m.addMirrors(images)
	m.addSignatures()
	m.addUpdateService()
	for i := range images {
		if images[i].Catalog {
			m.addCatalog(&images[i])
		}
	}
	if m.o.Lists {
		m.add("mapping.txt", mapping(images))
		m.add("registries.conf", m.registries(images))
	}
	if m.err != nil {
		return nil, nil, m.err
	}
	slices.SortFunc(m.files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return m.files, m.warnings, nil
}

// maker makes one set.
type maker struct {
	o        Options
	files    []File
	warnings []string
	names    map[string]bool // of catalogs
	err      error
}

func (m *maker) add(name string, data []byte) { m.files = append(m.files, File{name, data}) }

func (m *maker) warn(text string) {
	if !slices.Contains(m.warnings, text) {
		m.warnings = append(m.warnings, text)
	}
}

// annotations returns those that every object has.
func (m *maker) annotations() object {
	return object{"createdBy": cmp.Or(m.o.CreatedBy, creator), "createdAt": m.o.CreatedAt.UTC().Format(time.RFC3339),
		"oc-mirror_version": m.o.Version}
}

func (m *maker) text(v any) []byte {
	plain, err := json.Marshal(v)
	if err == nil {
		plain, err = yamlout.AppendYAML(nil, plain)
	}
	m.err = cmp.Or(m.err, err)
	return plain
}
