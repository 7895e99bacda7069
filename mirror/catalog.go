package mirror

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/convert"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/resources"
	"github.com/operator-bindery/bindery/render"
)

// catalog is one entry of the image set's operators.
type catalog struct {
	op imageset.Operator
	// selects is what the filter selects of what is read: op, or all of a catalog that was filtered before.
	selects imageset.Operator
	// ready, unless nil, is the finished catalog on a medium.
	ready *archivedCatalog
	// carrier, unless nil, is the repository on a medium that the catalog is in, with what is attached to it.
	carrier store.Reader
	// name is what the catalog is read from: with the digest if it is in a registry. digest is that of its image.
	name   string
	digest digest.Digest
	// readFrom is where a catalog with a tag is read in a registry, which may be a mirror of what it is named by.
	readFrom imageset.Ref
	// source is how messages name it.
	source string
	// onMedium is PATH:TAG on the medium that the catalog is read from, and failed why it cannot be read.
	onMedium string
	failed   error
	// index is the catalog, filtered. It is open until the catalog is published.
	index  *indeximage.Index
	result *filter.Result
	// asIs tells that the image is copied as it is, not rebuilt. narrowed tells that what is read is not all of the
	// source.
	asIs, narrowed bool
	// docker tells that the target refuses the types of OCI, so that it is rebuilt with Docker's.
	docker bool
	// onlyAsIs is why it cannot be rebuilt in its place.
	onlyAsIs error
	bundles  []catalogBundle
	// tagKept tells that the tag of the catalog, which is made of its digest, is the fallback tag with the list of its
	// referrers, and is not replaced.
	tagKept bool

	// image is that of the catalog where it goes. The tag of one that is named by digest is a guess until it is rebuilt.
	image *item
	// template, unless nil, is what its CatalogSource is made from.
	template *resources.Template
	account  CatalogAccount
}

// newCatalog returns the catalog of an entry.
func newCatalog(op imageset.Operator) *catalog {
	c := &catalog{op: op, selects: op, image: &item{source: op.Catalog, kind: Catalog}}
	c.image.catalog = c
	c.account = CatalogAccount{Source: op.Catalog.Name(), Packages: map[string]catalogedPackage{}}
	return c
}

// setDestination sets where the catalog goes.
func (c *catalog) setDestination(dest imageset.Ref, d digest.Digest) {
	c.image.setDestination(dest)
	c.account.Destination, c.account.DestinationDigest = dest.String(), d
}

// settle notes what became of the catalog: that it is at its destination, or why not.
func (c *catalog) settle() {
	of := c.image.account
	if c.account.DestinationDigest = of.Digest; of.Digest != "" {
		c.account.Destination = of.Destination
	}
	c.account.Published, c.account.Present, c.account.Error = c.image.isThere(), of.Status == Present, of.Error
}

// fail notes why the catalog cannot be mirrored.
func (c *catalog) fail(err error) { c.account.Error, c.failed = err.Error(), err }

// sourceImage is the image that the catalog is read from.
func (c *catalog) sourceImage() imageset.Ref {
	at := c.op.Catalog
	if at.Transport != imageset.OCI {
		at.Digest = c.digest
	}
	return at
}

// catalogBundle is a bundle that the filter keeps, with the images that it names.
type catalogBundle struct {
	pkg, name, version string
	images             []*item
	// bad is why the bundle cannot be mirrored, whatever the registries have.
	bad error
}

func (c *catalog) close() error {
	if c.index == nil {
		return nil
	}
	index := c.index
	c.index = nil
	return index.Close()
}

// open opens the catalog where it is read. The caller closes it.
func (c *catalog) open(ctx context.Context, o render.Options) (err error) {
	c.index, err = indeximage.Open(ctx, c.name, indeximage.Options{
		Change: change.Options{Jobs: o.Jobs, Reuse: true, Warn: o.Warn}, Render: o})
	return err
}

// filter filters the catalog, and leaves bundles out of it.
func (c *catalog) filter(ctx context.Context, o filter.Options, without []edit.Name) error {
	return c.index.Apply(ctx, c.edit(o, without), change.Directory)
}

// errLooked ends an edit whose result is not wanted.
var errLooked = errors.New("looked")

// look finds out what the filter keeps, and makes nothing of it.
func (c *catalog) look(ctx context.Context, o filter.Options) error {
	e := c.edit(o, nil)
	filtered := e.Apply
	e.Apply = func(ctx context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
		_, _, err := filtered(ctx, s)
		return nil, nil, cmp.Or(err, errLooked)
	}
	if _, _, err := c.index.Source.Apply(ctx, e); !errors.Is(err, errLooked) {
		return err
	}
	return nil
}

// edit is the change of the catalog that a filter makes, and leaving bundles out of it.
func (c *catalog) edit(o filter.Options, without []edit.Name) change.Edit {
	e := change.Edit{Whole: []string{}, Scope: o.Scope(c.selects)}
	e.Apply = func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
		var err error
		c.result, err = o.Apply(s.Catalog, c.selects)
		if err != nil {
			return nil, nil, err
		}
		if len(without) > 0 {
			c.result, err = c.result.Without(without, "images that it names are not available")
			if err != nil {
				return nil, nil, err
			}
		}
		return c.result.Catalog, c.result.Account, nil
	}
	return e
}

// checkAnyKept returns an error if the catalog has nothing of what the image set names.
func (c *catalog) checkAnyKept() error {
	if len(c.result.Catalog.Bundles) > 0 {
		return nil
	}
	var texts []string
	for _, p := range c.result.Problems {
		if p.Absent() {
			texts = append(texts, p.String())
		}
	}
	if texts == nil {
		return nil // there is another reason that nothing is kept
	}
	return absentError("nothing of the catalog is kept: no related images found: " + strings.Join(texts, "; "))
}

// checkResult returns an error if what the filter gives cannot be published. Bundles with images that cannot be
// mirrored are left out, or are an error of their own.
func (c *catalog) checkResult() error {
	var errs []error
	for _, p := range c.result.Problems {
		if p.Level == filter.Failure && p.Code != filter.UnusableImage {
			errs = append(errs, errors.New(p.String()))
		}
	}
	return errors.Join(errs...)
}

// accountPackages fills in the packages of the account.
func (c *catalog) accountPackages() {
	c.account.Packages = map[string]catalogedPackage{}
	for i := range c.result.Catalog.Packages {
		p := &c.result.Catalog.Packages[i]
		c.account.Packages[p.Name] = catalogedPackage{DefaultChannel: p.DefaultChannel, Channels: map[string][]string{}}
	}
	for i := range c.result.Catalog.Channels {
		h := &c.result.Catalog.Channels[i]
		names := make([]string, len(h.Entries))
		for n, e := range h.Entries {
			names[n] = e.Name
		}
		if p, ok := c.account.Packages[h.Package]; ok {
			p.Channels[h.Name] = names
		}
	}
}

// rebuiltContent stands for the digest of a rebuilt catalog, which is not known yet: it is that of no image.
func (c *catalog) rebuiltContent() digest.Digest {
	return digest.FromString("rebuilt " + c.digest.String() + " " + c.op.Catalog.String() + " " + c.account.FilterHash)
}

// notesOf returns what a rebuilt catalog says of itself: the annotations of its manifest or index, or in Docker's format,
// which has none, the labels of its image.
func notesOf(ctx context.Context, at store.Reader, text []byte, kind string) (map[string]string, error) {
	var m struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%w: manifest: %v", fault.ErrInvalid, err)
	}
	if convert.Of(kind) != convert.Docker {
		return m.Annotations, nil
	}
	source, err := images.At(ctx, at, v1.Descriptor{MediaType: kind, Digest: digest.FromBytes(text), Size: int64(len(text))})
	if err != nil {
		return nil, err
	}
	image, err := source.Choose(ctx, func(entries []v1.Descriptor) (v1.Descriptor, error) {
		if len(entries) == 0 {
			return v1.Descriptor{}, fmt.Errorf("%w: the catalog has no images", fault.ErrInvalid)
		}
		return entries[0], nil
	})
	if err != nil {
		return nil, err
	}
	return image.Config.Config.Labels, nil
}

// filterAnnotation has the hash of the filter of a rebuilt catalog.
const filterAnnotation = "io.github.operator-bindery.mirror.filter"

// lacksAnnotation has, of a rebuilt catalog, what was asked for and is not in it: a line each.
const lacksAnnotation = "io.github.operator-bindery.mirror.lacks"

// maxLacks is the limit of that annotation in bytes.
const maxLacks = 64 << 10

// lacks is what was asked for and is not in the catalog, a line each.
func (c *catalog) lacks() string {
	lines := slices.Clone(c.account.Missing)
	for _, l := range c.account.LeftOut {
		lines = append(lines, fmt.Sprintf("package %q: bundle %s, version %s, lacks %s", l.Package, l.Bundle, l.Version,
			cmp.Or(l.Image, "an image")))
	}
	for n, line := range lines {
		lines[n] = strings.ReplaceAll(line, "\n", "; ")
	}
	text := strings.Join(lines, "\n")
	if len(text) > maxLacks {
		return strconv.Itoa(len(lines)) + " of what was asked for, too many to be listed"
	}
	return text
}

// countPending counts the images that are not at the target and that their sources have.
func (c *catalog) countPending() int {
	found := map[*item]bool{}
	for n := range c.bundles {
		for _, i := range c.bundles[n].images {
			if i.pending {
				found[i] = true
			}
		}
	}
	return len(found)
}
