package mirror

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/internal/shape"
	"github.com/operator-bindery/bindery/internal/yamlout"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/atmirror"
	"github.com/operator-bindery/bindery/mirror/internal/staying"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
)

// deleteKind is the kind of the file that "oc-mirror delete --generate" writes.
const deleteKind = "DeleteImageList"

// DeleteList are images to delete at a target. Its YAML form is that of oc-mirror, with what
// [DeleteOptions.Delete] compares again.
type DeleteList struct {
	APIVersion string `json:"apiVersion"`
	// Catalogs are those of the image set, with the bundles that are deleted from each.
	Catalogs []deleteCatalog `json:"catalogs,omitempty"`
	// Charts are those whose images are deleted.
	Charts []deleteChart `json:"charts,omitempty"`
	Items  []DeleteItem  `json:"items"`
	// Kept are images that the image set names and that something else at the target needs.
	Kept []keptItem `json:"keptItems,omitempty"`
	Kind string     `json:"kind"`
	// Shared tells that the list has images that others need, too.
	Shared bool `json:"shared,omitempty"`
	// Workspace is the directory with the record that was compared.
	Workspace string `json:"workspace,omitempty"`
}

// deleteCatalog is a catalog at the target of which bundles are deleted.
type deleteCatalog struct {
	Reference string `json:"imageReference"`
	// Digest is that of the catalog when the list was made. A catalog that was published since keeps all images that it
	// names.
	Digest digest.Digest `json:"digest"`
	// Bundles are PACKAGE/NAME, sorted.
	Bundles []string `json:"bundles"`
}

// DeleteItem is an image to delete.
type DeleteItem struct {
	// Name is the source of the image, Reference where it is.
	Name      string `json:"imageName"`
	Reference string `json:"imageReference"`
	Type      Kind   `json:"type"`
	// Digest is what the reference stood for when the list was made; empty if it was not there.
	Digest digest.Digest `json:"digest,omitempty"`
}

// keptItem is an image that is not deleted, and why.
type keptItem struct {
	Name      string `json:"imageName"`
	Reference string `json:"imageReference"`
	Reason    string `json:"reason"`
	// Untag says that its tag is deleted where the registry deletes tags: nothing needs it but other tags.
	Untag bool `json:"untag,omitempty"`
}

// DeleteOptions configure a deletion and the list that it takes. Of [Options], the list needs Set, Target, Remote, Workspace, Render
// and Filter; deleting needs Remote, Render, for the catalogs whose images must stay, and Workspace, which has the record
// of what was mirrored. DryRun looks for the images and measures them, and deletes nothing.
type DeleteOptions struct {
	Options
	// Shared, if empty, is KeepShared for a list, and what its list says for a deletion.
	Shared Shared
	// Signatures lists the signatures of the images, too.
	Signatures bool
	// WithoutRecord goes on where the workspace has no record of what was mirrored to the target.
	WithoutRecord bool
	// Done, unless nil, is called after each image that is deleted.
	Done func(Deleted)
}

// Shared says what becomes of images that other bundles and catalogs need.
type Shared string

// What becomes of images that others need.
const (
	KeepShared   Shared = "keep"
	DeleteShared Shared = "delete"
)

// Check returns an error that names the fields, of the class [fault.Usage], for options with a value that they cannot have.
func (o *DeleteOptions) Check() error {
	if !slices.Contains([]Shared{"", KeepShared, DeleteShared}, o.Shared) {
		return fault.Fieldf("invalid {Shared} value %q, expected (keep|delete)", o.Shared)
	}
	return o.Target.Check()
}

// ListDeletions lists the images that an image set of the kind DeleteImageSetConfiguration names and that nothing else
// at the target needs. The catalogs are read at the target, as they were published. Nothing is changed.
//
// Needed are, by digest, the images of all bundles that are not to be deleted, in all catalogs that the registry has as
// far as it lists them or the workspace has a record of them; additional images that were mirrored from the workspace;
// and what tags stand for that the image set does not name. With an index its entries are needed, and with each image
// what is attached to it. A catalog that cannot be read is an error, and so is [ErrNoRecord]. Problems of the level
// [filter.Failure] are about names that a catalog does not have.
func (o DeleteOptions) ListDeletions(ctx context.Context) (_ *DeleteList, problems []Problem, err error) {
	o.Render.Opened = nil // the list says what becomes of a catalog
	if err := o.Remote.Ping(ctx, o.Target.String()); err != nil {
		return nil, nil, err // the error names the registry
	}
	rec, err := workdir.ReadRecord(o.Workspace.files(), o.Target)
	if err != nil {
		return nil, nil, err
	}
	o.Target.MaxNestedPaths = cmp.Or(o.Target.MaxNestedPaths, rec.MaxNestedPaths)
	list := &DeleteList{APIVersion: imageset.APIVersion, Kind: deleteKind, Items: []DeleteItem{}, Shared: o.Shared == DeleteShared,
		Catalogs: []deleteCatalog{}}
	if o.Workspace != nil && !list.Shared {
		if list.Workspace, err = filepath.Abs(o.Workspace.Dir()); err != nil {
			return nil, nil, err
		}
	}
	report := newReport(&o.Options)
	wanted := map[string]DeleteItem{}
	for _, op := range o.Set.Operators {
		if err := list.addCatalog(ctx, &o.Options, report, op, rec, wanted); err != nil {
			return nil, nil, fmt.Errorf("catalog %s: %w", op.Catalog.Name(), err)
		}
	}
	if err := addReleases(ctx, &o, rec, wanted); err != nil {
		return nil, nil, err
	}
	for _, a := range o.Set.AdditionalImages {
		at, err := o.Target.Additional(a)
		if err != nil {
			return nil, nil, err
		}
		// The name of an additional image stands as it is written.
		wanted[at.String()+"@"+a.Name.Digest.String()] = DeleteItem{Name: a.Written, Reference: at.String(),
			Type: Additional}
	}
	list.addCharts(&o, report, rec, wanted)
	items := slices.Collect(maps.Values(wanted))
	if o.Signatures {
		for _, i := range slices.Clone(items) {
			found, err := listAttachments(ctx, o.Remote, i)
			if err != nil {
				return nil, nil, err
			}
			items = append(items, found...)
		}
	}
	slices.SortFunc(items, func(a, b DeleteItem) int {
		return cmp.Or(strings.Compare(a.Reference, b.Reference), strings.Compare(a.Name, b.Name),
			strings.Compare(string(a.Type), string(b.Type)))
	})
	items = slices.CompactFunc(items, func(a, b DeleteItem) bool { return a.Reference == b.Reference && a.Name == b.Name })
	decisions, err := decideAll(ctx, items, list, staying.Options{Remote: o.Remote, Target: o.Target,
		Workspace: o.Workspace.files(), Render: o.Render, WithoutRecord: o.WithoutRecord, Warn: report.log.warn})
	if err != nil {
		return nil, nil, err
	}
	for n, d := range decisions {
		switch i := items[n]; {
		case d.Err != nil:
			return nil, nil, fmt.Errorf("%s: %w", i.Reference, d.Err)
		case d.Why != "":
			list.Kept = append(list.Kept, keptItem{i.Name, i.Reference, d.Why, i.Type == ReleaseContent && d.TagAlone})
		default:
			i.Digest = cmp.Or(d.Top.Digest, i.Digest)
			list.Items = append(list.Items, i)
		}
	}
	for _, c := range list.Catalogs {
		if len(c.Bundles) > 0 && len(list.Items) > 0 {
			report.problem(filter.Warning, strings.TrimPrefix(c.Reference, "docker://"), "mirror the image set without them again to "+
				"publish a catalog without them", "the catalog still names what is to be deleted: %s",
				bundlesText(len(c.Bundles)))
		}
	}
	return list, report.account.Problems, nil
}

// decideAll finds out what must stay of the images, with the catalogs and the kept images of a list.
func decideAll(ctx context.Context, items []DeleteItem, list *DeleteList,
	o staying.Options) ([]staying.Decision, error) {
	var all []staying.Item
	for _, i := range items {
		all = append(all, i.staying())
	}
	o.Shared = list.Shared
	for _, c := range list.Charts {
		o.GoneCharts = append(o.GoneCharts, c.recorded())
	}
	if list.Catalogs != nil {
		o.Gone = []staying.Catalog{}
	}
	for _, c := range list.Catalogs {
		o.Gone = append(o.Gone, staying.Catalog(c))
	}
	for _, k := range list.Kept {
		if !k.Untag {
			o.Kept = append(o.Kept, staying.Kept{Source: k.Name, Reference: k.Reference, Reason: k.Reason})
		}
	}
	needs, err := staying.Read(ctx, o, all)
	if err != nil {
		return nil, err
	}
	return needs.Decide(ctx)
}

// staying is what decides on whether an image stays.
func (i DeleteItem) staying() staying.Item {
	return staying.Item{Source: i.Name, Reference: i.Reference, Digest: i.Digest, Bundle: i.Type == Bundle,
		Additional: i.Type == Additional}
}

// addCatalog adds the images of the bundles that an entry selects in the catalog at the target.
func (l *DeleteList) addCatalog(ctx context.Context, o *Options, report *report, op imageset.Operator,
	rec *workdir.Record, wanted map[string]DeleteItem) (err error) {
	at, err := publishedAt(o.Target, op, rec)
	if err != nil {
		return err
	}
	to, err := o.Remote.Repository(at.Repository())
	if err != nil {
		return err
	}
	_, top, err := atmirror.Head(ctx, to, at)
	if err != nil {
		return err
	}
	c := &catalog{op: op, selects: op, name: at.Repository() + "@" + top.Digest.String()}
	defer func() { err = errors.Join(err, c.close()) }()
	if c.index, err = indeximage.Open(ctx, c.name, indeximage.Options{Render: o.Render}); err != nil {
		return err
	}
	if err := c.filter(ctx, o.Filter, nil); err != nil {
		return err
	}
	for _, p := range c.result.Problems {
		if p.Absent() {
			report.addProblem(Problem{Level: filter.Failure, Object: "catalog " + at.Name(), Message: p.String()})
		}
	}
	n := slices.IndexFunc(l.Catalogs, func(c deleteCatalog) bool { return c.Reference == at.String() })
	if n < 0 {
		n = len(l.Catalogs)
		l.Catalogs = append(l.Catalogs, deleteCatalog{Reference: at.String(), Digest: top.Digest})
	}
	of := &l.Catalogs[n]
	for i := range c.result.Catalog.Bundles {
		b := &c.result.Catalog.Bundles[i]
		of.Bundles = append(of.Bundles, b.Package+"/"+b.Name)
		for image, own := range atmirror.ImagesOf(b) {
			ref, err := imageset.ParseRef(image)
			if err != nil {
				continue // an image with such a name cannot have been mirrored
			}
			kind := Related
			if own {
				kind = Bundle
			}
			to := o.Target.Image(ref).String()
			key := to + "@" + ref.Digest.String() // a tag and a digest may be of two images
			if old, ok := wanted[key]; !ok || old.Type == Related {
				wanted[key] = DeleteItem{Name: ref.String(), Reference: to, Type: kind}
			}
		}
	}
	slices.Sort(of.Bundles)
	of.Bundles = slices.Compact(of.Bundles)
	return nil
}

// listAttachments lists the tagged attachments of an image and of the entries of an index that the target has.
func listAttachments(ctx context.Context, remote *registries.Client, i DeleteItem) ([]DeleteItem, error) {
	ref, err := imageset.ParseRef(i.Reference)
	if err != nil {
		return nil, err
	}
	to, err := remote.Repository(ref.Repository())
	if err != nil {
		return nil, err
	}
	name := ref.Tag
	if means := i.staying().Means(ref); means != "" {
		name = means.String()
	}
	top, err := to.Head(ctx, name)
	if atmirror.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	image, err := store.ReadImage(ctx, to, top)
	if err != nil {
		return nil, err
	}
	source, err := atmirror.ParseSource(i.Name)
	if err != nil {
		return nil, err
	}
	var out []DeleteItem
	for _, d := range image.Subjects() {
		for _, end := range referrers.TagEnds() {
			tag := referrers.TagOf(d.Digest, end)
			if _, err := to.Head(ctx, tag); atmirror.IsAbsent(err) {
				continue
			} else if err != nil {
				return nil, err
			}
			out = append(out, DeleteItem{Name: source.Repository() + ":" + tag,
				Reference: "docker://" + ref.Repository() + ":" + tag, Type: i.Type})
		}
		list := imageset.DigestTag(d.Digest) // of referrers, where a registry has no API for them
		if list == ref.Tag {
			continue
		}
		if is, err := to.Head(ctx, list); err == nil && is.Digest != d.Digest {
			out = append(out, DeleteItem{Name: source.Repository() + ":" + list,
				Reference: "docker://" + ref.Repository() + ":" + list, Type: i.Type})
		}
	}
	return out, nil
}

// publishedAt is where the catalog of an entry is at the target. A rebuilt catalog that is named by digest has its own
// digest in its tag, which the record knows.
func publishedAt(t imageset.Target, op imageset.Operator, rec *workdir.Record) (imageset.Ref, error) {
	known := !op.Catalog.InRegistry() || op.Catalog.Tag != "" || op.TargetTag != "" || op.WholeCatalog()
	at := t.Catalog(op, !op.WholeCatalog(), "", "")
	if known {
		return at, nil
	}
	for _, c := range rec.Catalogs {
		if c.Source == op.Catalog.Name() && c.Destination.Repository() == at.Repository() {
			return c.Destination, nil
		}
	}
	return at, fmt.Errorf("%w: it is named by digest, and the workspace has no record of where it went; set targetTag "+
		"to the tag at %s", fault.ErrInvalid, at.Repository())
}

// openWorkspace opens the workspace with which the list was made; nil if it is not here, or has no record of the
// target. Nothing is made: the list may have been carried here.
func (l *DeleteList) openWorkspace(t imageset.Target) (*Workspace, error) {
	if !filepath.IsAbs(l.Workspace) || filepath.Base(l.Workspace) != workingDir {
		return nil, nil
	}
	if rec, err := workdir.ReadRecord(workdir.Dir(l.Workspace), t); err != nil || !rec.Found {
		return nil, nil // there is no such directory, or it is a file
	}
	return OpenWorkspace(l.Workspace)
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
func ReadDeleteList(ctx context.Context, file string) (*DeleteList, error) {
	text, err := regularfile.ReadNamed(ctx, file, maxDeleteList)
	if err != nil {
		return nil, err
	}
	return parseDeleteList(text, file)
}

var deleteListShape = shape.Strict[DeleteList]()

// parseDeleteList reads the text of a list; file is its name in messages.
func parseDeleteList(text []byte, file string) (*DeleteList, error) {
	doc, err := shape.Read(bytes.NewReader(text), deleteListShape,
		shape.Options{File: file, Limits: canon.Limits{MaxDocument: maxDeleteList}})
	if err != nil {
		return nil, err
	}
	var l DeleteList
	if err := doc.Decode(&l); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", file, fault.ErrInvalid, err)
	}
	if l.Kind != deleteKind {
		return nil, fmt.Errorf("%s: %w: kind is %.100q, expected %s", doc.At("kind"), fault.ErrInvalid, l.Kind, deleteKind)
	}
	return &l, nil
}
