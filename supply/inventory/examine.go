package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/inspect"
	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/supply/sbom"
)

// Options configure [Examine].
type Options struct {
	// Limits bound what is read out of the images. Limits.File is 256 MiB for catalogs by default.
	Limits images.Limits
	// Temp is the directory of temporary files; empty means the system's.
	Temp string
	// Jobs is how many files of a catalog are parsed concurrently; 0 means one per processor.
	Jobs int
	// Only, unless empty, is the digest of the only image of an index that is examined.
	Only digest.Digest
	// Release is the version of bindery, which is that of its servers.
	Release string
}

// maxProgram is the largest file in an image: servers of other programs have 70 MiB and more.
const maxProgram = 256 << 20

// Inventory is what is in an image, or in an index and its images. It is immutable.
type Inventory struct {
	// Repository is the repository that the image is named by; empty if it has no such name.
	Repository string

	top    digest.Digest
	index  bool
	images []examined
}

// examined is the image of one platform.
type examined struct {
	digest       digest.Digest
	architecture string
	kind         render.Kind
	contents     sbom.Contents
	packages     []sbom.Package
	operator     *sbom.Operator
}

// Examine reads the images of a survey. Of catalogs every layer is read, of bundles the manifests, of other images
// nothing: their layers are listed. Two images that differ in the layer of the server alone, as those of one catalog
// for several platforms, are not both read as a whole.
//
// A catalog or bundle that cannot be read is an error: what is in it is not known. The classes of errors are those of
// [images.Client.Open] and [render.Options.Render].
func Examine(ctx context.Context, s *images.Survey, o Options) (*Inventory, error) {
	inv := &Inventory{Repository: s.Repository, top: s.Digest, index: s.Index}
	x := examiner{o: o, servers: map[digest.Digest]*sbom.Program{}}
	for _, i := range s.Images {
		if o.Only != "" && i.Digest != o.Only ||
			slices.ContainsFunc(inv.images, func(e examined) bool { return e.digest == i.Digest }) {
			continue
		}
		one, err := x.examine(ctx, i)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", i.Digest, err)
		}
		inv.images = append(inv.images, *one)
	}
	return inv, nil
}

// examiner examines the images of one survey.
type examiner struct {
	o Options
	// catalogs are the catalog images that were read.
	catalogs []readCatalog
	// servers are those of the server layers that were read, by diffID; nil for a layer with something else in it.
	servers map[digest.Digest]*sbom.Program
}

// withProgram are the limits for reading files among which is a program.
func (x *examiner) withProgram() images.Limits {
	limits := x.o.Limits
	limits.File = cmp.Or(limits.File, maxProgram)
	return limits
}

func (x *examiner) examine(ctx context.Context, i images.SurveyedImage) (*examined, error) {
	e := &examined{digest: i.Digest, architecture: i.Config.Architecture}
	for n, kind := range inspect.LayerKinds(i.Image) {
		if kind == "" || kind == build.LayerBase { // what is in it is not known
			l := i.Layers[n]
			e.contents.Layers = append(e.contents.Layers, sbom.Layer{Digest: l.Digest, MediaType: l.MediaType})
		}
	}
	kind, place, err := kindOf(i.Config.Config.Labels)
	if err != nil {
		return nil, err
	}
	e.kind = kind
	switch kind {
	case render.CatalogImage:
		return e, x.catalog(ctx, i, place, e)
	case render.DatabaseImage:
		return e, x.database(ctx, i, place, e)
	case render.BundleImage:
		return e, x.bundle(ctx, i, e)
	}
	return e, nil
}

// kindOf returns the kind of an image by its labels: [render.Image] if they declare none.
func kindOf(labels map[string]string) (render.Kind, string, error) {
	for _, name := range []string{"operators.operatorframework.io.index.database.v1",
		"operators.operatorframework.io.index.configs.v1", bundle.AnnotationPackage} {
		if _, ok := labels[name]; ok {
			return render.KindOfImage(labels)
		}
	}
	return render.Image, "", nil
}

// Subjects returns the digests of the index or image and of the images of the index, each once.
func (inv *Inventory) Subjects() []digest.Digest {
	all := []digest.Digest{inv.top}
	for _, e := range inv.images {
		if e.digest != inv.top {
			all = append(all, e.digest)
		}
	}
	return all
}

// Of returns the inventory of one of the subjects. name is its repository, or empty. What it says of an image of an
// index does not depend on the index.
func (inv *Inventory) Of(subject digest.Digest, name string) (*sbom.Inventory, bool) {
	of := sbom.Image{Name: name, Digest: subject}
	if inv.index && subject == inv.top {
		out := &sbom.Inventory{Image: of}
		for n, e := range inv.images {
			out.Instances = append(out.Instances, sbom.Instance{
				Image:    sbom.Image{Name: name, Digest: e.digest, Architecture: e.architecture},
				Contents: e.contents,
			})
			if n == 0 {
				out.Packages, out.Operator = e.packages, e.operator
				continue
			}
			out.Packages = merged(out.Packages, e.packages)
			if out.Operator == nil {
				out.Operator = e.operator
			}
		}
		return out, true
	}
	for _, e := range inv.images {
		if e.digest == subject {
			return &sbom.Inventory{Image: of, Contents: e.contents, Packages: e.packages, Operator: e.operator}, true
		}
	}
	return nil, false
}

// Servers returns the digests of the servers of the images by architecture.
func (inv *Inventory) Servers() map[string]digest.Digest {
	out := map[string]digest.Digest{}
	for _, e := range inv.images {
		if e.contents.Program != nil {
			out[e.architecture] = e.contents.Program.Digest
		}
	}
	return out
}

// Servers returns the digests of the servers of the images of a survey by architecture, without reading more than the
// layers that are declared to hold them. It is for images that this program has built.
func Servers(ctx context.Context, s *images.Survey, o Options) (map[string]digest.Digest, error) {
	x := examiner{o: o, servers: map[digest.Digest]*sbom.Program{}}
	out := map[string]digest.Digest{}
	for _, i := range s.Images {
		for n, kind := range inspect.LayerKinds(i.Image) {
			if kind != build.LayerServer {
				continue
			}
			p, err := x.serverLayer(ctx, i.Image, n, "configs")
			if err != nil {
				return nil, fmt.Errorf("image %s: %w", i.Digest, err)
			}
			if p != nil {
				out[i.Config.Architecture] = p.Digest
			}
		}
	}
	return out, nil
}
