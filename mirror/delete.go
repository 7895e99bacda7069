package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/atmirror"
	"github.com/operator-bindery/bindery/mirror/internal/sizes"
	"github.com/operator-bindery/bindery/mirror/internal/staying"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
)

// Deletion is what [DeleteOptions.Delete] did.
type Deletion struct {
	Images []Deleted `json:"images"`
	// Repositories has the size of the images that would be deleted from each repository; only in dry runs. The
	// garbage collection of the registry frees less if other images have the same blobs.
	Repositories []RepositoryBytes `json:"repositories,omitempty"`
}

// Deleted is what became of an image to delete.
type Deleted struct {
	DeleteItem
	Digest digest.Digest `json:"digest,omitempty"`
	// Status is deleted, absent, kept or failed; planned in a dry run, where it would be deleted; untagged or tagged for
	// an image that the list keeps, whose tag is deleted or, since the registry deletes none, is not.
	Status string `json:"status"`
	// Error is why an image is kept or failed.
	Error string `json:"error,omitempty"`

	tagAlone bool // nothing but its tag is to be deleted
}

// Delete deletes the images of a list at a target. An image that is not there is done. What is listed by a tag is what
// the tag stood for when the list was made. Before anything is deleted, the target is compared again as
// [DeleteOptions.ListDeletions] does it: what has come to be needed since is kept. Entries of a deleted index are deleted with it unless they must
// stay. The registry frees the space of blobs by its own garbage collection.
//
// An item that is not below the target makes the whole list an error, before anything is deleted, as do a catalog that
// cannot be read and [ErrNoRecord]. The error [registries.ErrNoDelete] ends the work; others are in the result, and
// joined. Without a workspace the list names it.
func (o DeleteOptions) Delete(ctx context.Context, list *DeleteList, target imageset.Target) (_ *Deletion, err error) {
	shared := o.Shared == DeleteShared || o.Shared == "" && list.Shared
	if o.Workspace == nil && !shared {
		if o.Workspace, err = list.openWorkspace(target); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, o.Workspace.Close()) }()
	}
	prefix := "docker://" + target.String() + "/"
	var outside []error
	items := slices.Clone(list.Items)
	for _, k := range list.Kept {
		if k.Untag && !shared { // with Shared it is not asked whether tags stay
			items = append(items, DeleteItem{Name: k.Name, Reference: k.Reference, Type: ReleaseContent})
		}
	}
	for n, i := range items {
		at, ok := atmirror.WithHost(i.Reference, target.Host)
		if !ok || !strings.HasPrefix(at, prefix) {
			outside = append(outside, fmt.Errorf("%s is not below %s", fault.Quote(i.Reference), target))
		}
		items[n].Reference = at
	}
	for _, k := range list.Kept { // requests are sent about them
		if _, ok := atmirror.WithHost(k.Reference, target.Host); !ok {
			outside = append(outside, fmt.Errorf("%s is not at %s", fault.Quote(k.Reference), target.Host))
		}
	}
	if len(outside) > 0 {
		return nil, errOutside{errors.Join(outside...)}
	}
	if err := o.Remote.Ping(ctx, target.String()); err != nil {
		return nil, err // the error names the registry
	}
	// Release images go first: a release that is there is whole.
	slices.SortStableFunc(items, func(a, b DeleteItem) int { return cmp.Compare(deleteRank(a), deleteRank(b)) })
	decisions, err := decideAll(ctx, items, &DeleteList{Catalogs: list.Catalogs, Charts: list.Charts, Kept: list.Kept, Shared: shared},
		staying.Options{Remote: o.Remote, Target: target, Workspace: o.Workspace.files(), Render: o.Render,
			WithoutRecord: o.WithoutRecord, Warn: newLogger(o.Log).warn})
	if err != nil {
		return nil, err
	}
	d := &deletion{DeleteOptions: o, gone: map[string]bool{}}
	out := &Deletion{Images: []Deleted{}}
	var errs []error
	for n, i := range items {
		one := Deleted{DeleteItem: i, tagAlone: n >= len(list.Items)}
		err := d.checkRelease(i)
		if err == nil {
			err = d.delete(ctx, decisions[n], &one)
		}
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		if err != nil {
			one.Status, one.Error = "failed", err.Error()
			errs = append(errs, fmt.Errorf("%s: %w", i.Reference, err))
		}
		if i.Type == Release && (one.Status == "failed" || one.Status == "kept") {
			d.staying = append(d.staying, decisions[n].Ref.Tag)
		}
		out.Images = append(out.Images, one)
		if o.Done != nil {
			o.Done(one)
		}
		if errors.Is(err, registries.ErrNoDelete) {
			return out, fmt.Errorf("%s: %w", target.Host, err)
		}
	}
	if o.DryRun {
		out.Repositories = ByRepository(d.total.ByRepository())
	} else {
		errs = append(errs, o.updateRecord(target, list.Charts, out.Images))
	}
	return out, errors.Join(errs...)
}

// deleteRank is the order in which images are deleted.
func deleteRank(i DeleteItem) int {
	if i.Type == Release {
		return 0
	}
	return 1
}

// updateRecord takes the releases and charts that are no longer at the target out of the record.
func (o *DeleteOptions) updateRecord(target imageset.Target, charts []deleteChart, images []Deleted) error {
	rec, err := workdir.ReadRecord(o.Workspace.files(), target)
	if err != nil || !rec.Found {
		return err
	}
	n := len(rec.Releases) + len(rec.Charts)
	if !slices.ContainsFunc(images, func(i Deleted) bool { return i.Status == "failed" }) {
		rec.Charts = slices.DeleteFunc(rec.Charts, func(c workdir.RecordedChart) bool {
			return slices.ContainsFunc(charts, func(gone deleteChart) bool { return c.Is(gone.recorded()) })
		})
	}
	rec.Releases = slices.DeleteFunc(rec.Releases, func(p workdir.Published) bool {
		return slices.ContainsFunc(images, func(i Deleted) bool {
			return i.Type == Release && i.Reference == p.Destination.String() && (i.Status == "deleted" || i.Status == "absent")
		})
	})
	if len(rec.Releases)+len(rec.Charts) == n {
		return nil
	}
	return rec.Write(o.Workspace.files(), target)
}

// errOutside is the error about items of another target.
type errOutside struct{ error }

// ErrorClass says that the list is wrong.
func (errOutside) ErrorClass() fault.Class { return fault.Input }

// deletion is one call of [DeleteOptions.Delete].
type deletion struct {
	DeleteOptions
	gone  map[string]bool // REPOSITORY@DIGEST
	total sizes.Total     // in a dry run
	// staying are the tags of the releases that are not deleted.
	staying []string
}

// checkRelease returns an error for a component of a release that is not deleted: the release would not be whole.
func (d *deletion) checkRelease(i DeleteItem) error {
	at, err := imageset.ParseRef(i.Reference)
	if i.Type != ReleaseContent || err != nil {
		return err
	}
	for _, tag := range d.staying {
		if strings.HasPrefix(at.Tag, tag+"-") {
			return fmt.Errorf("the release %s is not deleted, which names it", tag)
		}
	}
	return nil
}

// delete deletes an image, and the list of what is attached to it.
func (d *deletion) delete(ctx context.Context, i staying.Decision, out *Deleted) error {
	out.Status, out.Digest = "absent", i.Top.Digest
	if i.Err != nil {
		return i.Err
	}
	if i.Top.Digest != "" && (i.Why != "" || out.tagAlone) {
		out.Status, out.Error = "kept", i.Why
		if out.tagAlone && i.TagAlone {
			return d.untag(ctx, i, out)
		}
		return nil
	}
	if i.Top.Digest != "" {
		if err := d.deleteManifest(ctx, i.In, i.Top, i.Entries, out); err != nil {
			return err
		}
	}
	if i.Ref.Tag == "" || atmirror.PullName(i.Ref) == i.Ref.Tag {
		return nil
	}
	// The tag of an image that is named by digest may have the list of what is attached to it instead.
	text, kind, err := i.In.Manifest(ctx, i.Ref.Tag)
	list := v1.Descriptor{MediaType: kind, Digest: digest.FromBytes(text), Size: int64(len(text))}
	if atmirror.IsAbsent(err) || err == nil && list.Digest == i.Top.Digest {
		return nil
	}
	if err != nil {
		return err
	}
	if why, err := i.In.Stays(ctx, list.Digest, text); why != "" || err != nil {
		return err
	}
	entries, err := staying.Entries(text)
	if err != nil {
		return err
	}
	var of Deleted
	err = d.deleteManifest(ctx, i.In, list, entries, &of)
	if out.Status == "absent" && of.Status != "" {
		out.Status, out.Digest = of.Status, list.Digest
	}
	return err
}

// untag deletes the tag of an image that stays, as others need it, if the tag stands for it.
func (d *deletion) untag(ctx context.Context, i staying.Decision, out *Deleted) error {
	there, err := i.In.Head(ctx, i.Ref.Tag)
	switch {
	case atmirror.IsAbsent(err):
		out.Status, out.Error = "absent", ""
		return nil
	case err != nil || there.Digest != i.Top.Digest:
		return err
	case d.DryRun:
		out.Status = "planned"
		return nil
	}
	out.Status = "untagged"
	if err = i.In.Untag(ctx, i.Ref.Tag); errors.Is(err, registries.ErrNoDelete) {
		out.Status, out.Error, err = "tagged", "the registry deletes no tags; "+i.Why, nil
	}
	return err
}

// deleteManifest deletes a manifest, with the entries of an index that need not stay.
func (d *deletion) deleteManifest(ctx context.Context, s *staying.Repository, top v1.Descriptor,
	entries []v1.Descriptor, out *Deleted) error {
	if d.gone[s.Name()+"@"+top.Digest.String()] {
		return nil
	}
	if d.DryRun {
		out.Status = "planned"
		image, err := sizes.Measure(ctx, s, top, nil)
		if err == nil {
			d.total.Add(s.Name(), image.Blobs)
		}
		return err
	}
	below, err := s.Below(ctx, top.Digest, entries)
	if err != nil {
		return err
	}
	if err := d.remove(ctx, s, top.Digest); err != nil {
		return err
	}
	out.Status = "deleted"
	for _, child := range below {
		if err := d.remove(ctx, s, child); err != nil {
			return fmt.Errorf("entry %s: %w", child, err)
		}
	}
	return nil
}

// remove deletes a manifest, once.
func (d *deletion) remove(ctx context.Context, s *staying.Repository, of digest.Digest) error {
	name := s.Name() + "@" + of.String()
	if d.gone[name] {
		return nil
	}
	if err := s.Delete(ctx, of); err != nil && !atmirror.IsAbsent(err) {
		return err
	}
	d.gone[name] = true
	return nil
}
