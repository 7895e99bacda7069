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

// Category says what an image was mirrored for.
type Category string

// The categories.
const (
	Operator Category = "operator" // for a catalog: bundles and their related images
	Generic  Category = "generic"  // an additional image
)

// Copied is an image that is at the destination.
type Copied struct {
	// Source is the reference as the image set or the catalog names it, Destination that of the copy.
	Source, Destination imageset.Ref
	Category            Category
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

// Options configure [Make].
type Options struct {
	// CreatedBy, CreatedAt and Version are written into annotations. An empty CreatedBy is [Creator]; files with
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
	// Policy adds an ImageContentSourcePolicy, for clusters that know nothing newer.
	Policy bool
	// Lists adds mapping.txt and registries.conf.
	Lists bool
	// Insecure allows plain HTTP for the mirror in registries.conf.
	Insecure bool
}

// Creator is the value of the annotation createdBy.
const Creator = "bindery"

// File is a file of the set, with its name without a directory.
type File struct {
	Name string
	Data []byte
}

// Set is what [Make] returns.
type Set struct {
	// Files are sorted by name.
	Files []File
	// Warnings are what should be known about them.
	Warnings []string
}

// object is an object of a cluster, as JSON.
type object = map[string]any

// Make makes the files for images. The order of the images does not matter.
func Make(images []Copied, o Options) (*Set, error) {
	m := &maker{o: o, names: map[string]bool{}}
	images = slices.Clone(images)
	slices.SortStableFunc(images, func(a, b Copied) int {
		return cmp.Or(cmp.Compare(b.Category, a.Category), cmp.Compare(a.Source.String(), b.Source.String()),
			cmp.Compare(a.Destination.String(), b.Destination.String()))
	})
	m.mirrors(images)
	for i := range images {
		if images[i].Catalog {
			m.catalog(&images[i])
		}
	}
	if m.o.Lists {
		m.add("mapping.txt", Mapping(images))
		m.add("registries.conf", m.registries(images))
	}
	if m.err != nil {
		return nil, m.err
	}
	slices.SortFunc(m.set.Files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return &m.set, nil
}

// maker makes one set.
type maker struct {
	o     Options
	set   Set
	names map[string]bool // of catalogs
	err   error
}

func (m *maker) add(name string, data []byte) { m.set.Files = append(m.set.Files, File{name, data}) }

func (m *maker) warn(text string) {
	if !slices.Contains(m.set.Warnings, text) {
		m.set.Warnings = append(m.set.Warnings, text)
	}
}

// annotations returns those that every object has.
func (m *maker) annotations() object {
	return object{"createdBy": cmp.Or(m.o.CreatedBy, Creator), "createdAt": m.o.CreatedAt.UTC().Format(time.RFC3339),
		"oc-mirror_version": m.o.Version}
}

// text returns an object as YAML.
func (m *maker) text(v any) []byte {
	plain, err := json.Marshal(v)
	if err == nil {
		plain, err = yamlout.AppendYAML(nil, plain)
	}
	m.err = cmp.Or(m.err, err)
	return plain
}
