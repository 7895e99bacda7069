package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/indeximage"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/internal/yamlout"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// deleteKind is the kind of a list of images to delete (MIRROR 12.1).
const deleteKind = "DeleteImageList"

// DeleteList are images to delete at a target. Its YAML form is that of oc-mirror, with keptItems.
type DeleteList struct {
	APIVersion string       `json:"apiVersion"`
	Items      []DeleteItem `json:"items"`
	// Kept are images that the image set names and that something else at the target needs.
	Kept []KeptItem `json:"keptItems,omitempty"`
	Kind string     `json:"kind"`
}

// DeleteItem is an image to delete.
type DeleteItem struct {
	// Name is the source of the image, Reference where it is.
	Name      string `json:"imageName"`
	Reference string `json:"imageReference"`
	Type      Kind   `json:"type"`
}

// KeptItem is an image that is not deleted, and why.
type KeptItem struct {
	Name      string `json:"imageName"`
	Reference string `json:"imageReference"`
	Reason    string `json:"reason"`
}

// DeleteOptions configure [ListDeletions].
type DeleteOptions struct {
	Options
	// Shared deletes images that other bundles and catalogs need, too.
	Shared bool
	// Signatures lists the signatures of the images, too.
	Signatures bool
}

// ListDeletions lists the images that an image set of the kind DeleteImageSetConfiguration names and that nothing else
// at the target needs. The catalogs are read at the target, as they were published. Nothing is changed.
//
// Needed are the images of all bundles that are not to be deleted, in all catalogs that were mirrored from the
// workspace to the target and in those of the image set, and additional images that were mirrored.
func ListDeletions(ctx context.Context, o DeleteOptions) (_ *DeleteList, problems []Problem, err error) {
	r := &run{o: o.Options, log: logger{o.Log}, account: &Account{}}
	r.to = remoteTarget{r}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := o.Remote.Ping(ctx, o.Target.String()); err != nil {
		return nil, nil, err // it names the registry
	}
	rec, err := readRecord(o.Workspace, o.Target)
	if err != nil {
		return nil, nil, err
	}
	wanted := map[string]DeleteItem{}
	gone := map[string]map[string]bool{} // by catalog at the target: its bundles that are to be deleted
	for _, op := range o.Set.Operators {
		if err := r.listCatalog(ctx, op, rec, wanted, gone); err != nil {
			return nil, nil, fmt.Errorf("catalog %s: %w", op.Catalog.Name(), err)
		}
	}
	for _, a := range o.Set.AdditionalImages {
		at, err := o.Target.Additional(a)
		if err != nil {
			return nil, nil, err
		}
		// The name of an additional image stands as it is written.
		wanted[at.String()] = DeleteItem{a.Written, at.String(), Additional}
	}
	needed := map[string]string{}
	if !o.Shared {
		if needed, err = r.neededBy(ctx, rec, gone, wanted); err != nil {
			return nil, nil, err
		}
	}
	list := &DeleteList{APIVersion: imageset.APIVersion, Kind: deleteKind, Items: []DeleteItem{}}
	for _, at := range slices.Sorted(maps.Keys(wanted)) {
		i := wanted[at]
		if why, ok := needed[at]; ok {
			list.Kept = append(list.Kept, KeptItem{i.Name, i.Reference, why})
			continue
		}
		list.Items = append(list.Items, i)
		if o.Signatures {
			found, err := r.signaturesOf(ctx, i)
			if err != nil {
				return nil, nil, err
			}
			list.Items = append(list.Items, found...)
		}
	}
	slices.SortFunc(list.Items, func(a, b DeleteItem) int { return strings.Compare(a.Reference, b.Reference) })
	list.Items = slices.Compact(list.Items)
	for _, at := range slices.Sorted(maps.Keys(gone)) {
		if len(gone[at]) > 0 && len(list.Items) > 0 {
			r.problem(Warning, at, "mirror the image set without them again to publish a catalog without them",
				"the catalog still names what is to be deleted: %s", bundlesText(len(gone[at])))
		}
	}
	return list, r.account.Problems, nil
}

// listCatalog adds the images of the bundles that an entry selects in the catalog at the target.
func (r *run) listCatalog(ctx context.Context, op imageset.Operator, rec *record, wanted map[string]DeleteItem,
	gone map[string]map[string]bool) error {
	at, err := publishedAt(r.o.Target, op, rec)
	if err != nil {
		return err
	}
	c := &catalog{op: op, selects: op, name: at.Name()}
	r.catalogs = append(r.catalogs, c)
	c.account.FilterHash = op.FilterHash("")
	if c.index, err = indeximage.Open(ctx, c.name, indeximage.Options{Render: r.o.Render}); err != nil {
		return err
	}
	if err := c.apply(ctx, r.o.Filter, nil); err != nil {
		return err
	}
	if gone[at.String()] == nil {
		gone[at.String()] = map[string]bool{}
	}
	for i := range c.result.Catalog.Bundles {
		b := &c.result.Catalog.Bundles[i]
		gone[at.String()][b.Package+"/"+b.Name] = true
		for image, kind := range imagesOf(b) {
			ref, err := imageset.ParseRef(image)
			if err != nil {
				continue // it cannot have been mirrored
			}
			to := r.o.Target.Image(ref).String()
			if old, ok := wanted[to]; !ok || old.Type == Related {
				wanted[to] = DeleteItem{ref.String(), to, kind}
			}
		}
	}
	return nil
}

// publishedAt is where the catalog of an entry is at the target. A rebuilt catalog that is named by digest has its own
// digest in its tag, which the record knows.
func publishedAt(t imageset.Target, op imageset.Operator, rec *record) (imageset.Ref, error) {
	known := op.Catalog.Transport == imageset.OCI || op.Catalog.Tag != "" || op.TargetTag != "" || op.WholeCatalog()
	at := t.Catalog(op, !op.WholeCatalog(), "", "")
	if known {
		return at, nil
	}
	for _, c := range rec.Catalogs {
		to, err := imageset.ParseRef(c.Destination)
		if err == nil && c.Source == op.Catalog.Name() && to.Repository() == at.Repository() {
			return to, nil
		}
	}
	return at, fmt.Errorf("%w: it is named by digest, and the workspace has no record of where it went; set targetTag "+
		"to the tag at %s", fault.ErrInvalid, at.Repository())
}

// neededBy returns the images at the target that must stay, with the reason.
func (r *run) neededBy(ctx context.Context, rec *record, gone map[string]map[string]bool,
	wanted map[string]DeleteItem) (map[string]string, error) {
	places := map[string]bool{}
	for at := range gone {
		places[at] = true
	}
	for _, c := range rec.Catalogs {
		places[c.Destination] = true
	}
	needed := map[string]string{}
	for _, at := range slices.Sorted(maps.Keys(places)) {
		ref, err := imageset.ParseRef(at)
		if err != nil {
			return nil, err
		}
		bundles, err := r.catalogAt(ctx, ref)
		if err != nil {
			return nil, fmt.Errorf("catalog %s at the target, which may need the images: %w", ref.Name(), err)
		}
		for i := range bundles {
			b := &bundles[i]
			if gone[at][b.Package+"/"+b.Name] {
				continue
			}
			for image := range imagesOf(b) {
				if ref, err := imageset.ParseRef(image); err == nil {
					to := r.o.Target.Image(ref).String()
					if needed[to] == "" {
						needed[to] = fmt.Sprintf("bundle %s in %s names it", b.Name,
							strings.TrimPrefix(at, "docker://"))
					}
				}
			}
		}
	}
	for _, i := range rec.Images {
		if item, ok := wanted[i.Destination]; ok && item.Type == Additional {
			continue // it is to be deleted as an additional image
		}
		if needed[i.Destination] == "" {
			needed[i.Destination] = "it was mirrored as an additional image"
		}
	}
	return needed, nil
}

// MarshalYAML returns the file. A list that is too large to be read is an error.
func (l *DeleteList) MarshalYAML() ([]byte, error) {
	text, err := json.Marshal(l)
	if err == nil {
		text, err = yamlout.AppendYAML(nil, text)
	}
	if err == nil && len(text) > maxDeleteList {
		err = fmt.Errorf("%w: a list of %d images has %d bytes (limit %d): delete fewer at once", fault.ErrLimit,
			len(l.Items)+len(l.Kept), len(text), maxDeleteList)
	}
	return text, err
}

// maxDeleteList is the limit of a list in bytes, when it is written and when it is read.
const maxDeleteList = 64 << 20

// ReadDeleteList reads the file of a list. What is wrong with its content is of the class [fault.ErrInvalid].
func ReadDeleteList(file string) (*DeleteList, error) {
	text, err := regularfile.ReadNamed(file, maxDeleteList)
	if err != nil {
		return nil, err
	}
	l, err := ParseDeleteList(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return l, err
}

// ParseDeleteList reads the text of a list.
func ParseDeleteList(text []byte) (*DeleteList, error) {
	var l DeleteList
	if err := yaml.UnmarshalStrict(text, &l); err != nil {
		text := err.Error()
		for _, prefix := range []string{"error unmarshaling JSON: ", "while decoding JSON: ", "json: "} {
			text = strings.TrimPrefix(text, prefix)
		}
		return nil, fmt.Errorf("%w: %s", fault.ErrInvalid, text)
	}
	if l.Kind != deleteKind {
		return nil, fmt.Errorf("%w: kind is %.100q, expected %s", fault.ErrInvalid, l.Kind, deleteKind)
	}
	return &l, nil
}
