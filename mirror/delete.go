package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/render"
)

// imagesOf yields the images that a bundle names, with what each is.
func imagesOf(b *declcfg.Bundle) iter.Seq2[string, Kind] {
	return func(yield func(string, Kind) bool) {
		if b.Image != "" && !yield(b.Image, Bundle) {
			return
		}
		for _, r := range b.RelatedImages {
			if r.Image != "" && r.Image != b.Image && !yield(r.Image, Related) {
				return
			}
		}
	}
}

// signaturesOf lists the tagged attachments of an image and of the entries of an index that the target has.
func (r *run) signaturesOf(ctx context.Context, i DeleteItem) ([]DeleteItem, error) {
	ref, err := imageset.ParseRef(i.Reference)
	if err != nil {
		return nil, err
	}
	to, err := r.to.repository(ref)
	if err != nil {
		return nil, err
	}
	name := ref.Tag
	if means := i.means(ref); means != "" {
		name = means.String()
	}
	top, err := to.Head(ctx, name)
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	image, err := store.ReadImage(ctx, to, top)
	if err != nil {
		return nil, err
	}
	source, err := recorded(i.Name)
	if err != nil {
		return nil, err
	}
	var out []DeleteItem
	for _, d := range image.Subjects() {
		for _, end := range attachmentEnds {
			tag := referrers.TagOf(d.Digest, end)
			if _, err := to.Head(ctx, tag); absent(err) {
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

// DeletionOptions configure [Delete].
type DeletionOptions struct {
	Remote *registries.Client
	// Workspace has the record of what was mirrored to the target, and Render reads the catalogs there: what they need is
	// not deleted. WithoutRecord goes on where there is no record.
	Workspace     *Workspace
	Render        render.Options
	WithoutRecord bool
	// Shared deletes what other bundles and catalogs need, too.
	Shared bool
	// Log, unless nil, receives what cannot be compared.
	Log *slog.Logger
	// DryRun looks for the images and measures them, and deletes nothing.
	DryRun bool
	// Done, unless nil, is called after each image.
	Done func(Deleted)
}

// Deletion is what [Delete] did.
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
	// Status is deleted, absent, kept or failed; planned in a dry run, where it would be deleted.
	Status string `json:"status"`
	// Error is why an image is kept or failed.
	Error string `json:"error,omitempty"`
}

// Delete deletes the images of a list at a target. An image that is not there is done. What is listed by a tag is what
// the tag stood for when the list was made. Before anything is deleted, the target is compared again as [ListDeletions]
// does it: what has come to be needed since is kept. Entries of a deleted index are deleted with it unless they must
// stay. The registry frees the space of blobs by its own garbage collection.
//
// An item that is not below the target makes the whole list an error, before anything is deleted, as do a catalog that
// cannot be read and [ErrNoRecord]. The error [registries.ErrNoDelete] ends the work; others are in the result, and joined.
func Delete(ctx context.Context, list *DeleteList, target imageset.Target, o DeletionOptions) (*Deletion, error) {
	prefix := "docker://" + target.String() + "/"
	var outside []error
	items := slices.Clone(list.Items)
	for n, i := range items {
		at, ok := atHost(i.Reference, target.Host)
		if !ok || !strings.HasPrefix(at, prefix) {
			outside = append(outside, fmt.Errorf("%s is not below %s", fault.Quote(i.Reference), target))
		}
		items[n].Reference = at
	}
	for _, k := range list.Kept { // they are asked for
		if _, ok := atHost(k.Reference, target.Host); !ok {
			outside = append(outside, fmt.Errorf("%s is not at %s", fault.Quote(k.Reference), target.Host))
		}
	}
	if len(outside) > 0 {
		return nil, errOutside{errors.Join(outside...)}
	}
	if err := o.Remote.Ping(ctx, target.String()); err != nil {
		return nil, err // it names the registry
	}
	needs, err := newNeeds(ctx, needsOptions{Remote: o.Remote, Target: target, Workspace: o.Workspace, Render: o.Render,
		WithoutRecord: o.WithoutRecord, Shared: o.Shared, Gone: list.Catalogs, Kept: list.Kept}, logger{o.Log}, items)
	if err != nil {
		return nil, err
	}
	decisions, err := needs.decide(ctx)
	if err != nil {
		return nil, err
	}
	d := &deletion{DeletionOptions: o, gone: map[string]bool{}}
	out := &Deletion{Images: []Deleted{}}
	var errs []error
	for _, i := range decisions {
		one := Deleted{DeleteItem: i.DeleteItem}
		err := d.delete(ctx, i, &one)
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		if err != nil {
			one.Status, one.Error = "failed", err.Error()
			errs = append(errs, fmt.Errorf("%s: %w", i.Reference, err))
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
		out.Repositories = d.weights.repositories()
	}
	return out, errors.Join(errs...)
}

// errOutside is the error about items of another target.
type errOutside struct{ error }

// ErrorClass says that the list is wrong.
func (errOutside) ErrorClass() fault.Class { return fault.Input }

// absent tells whether an error says that something is not there. Refused answers count as that where images are
// copied; here they say nothing, for what they are about may be what others need.
func absent(err error) bool {
	var answer *registries.StatusError
	return errors.Is(err, fs.ErrNotExist) && !(errors.As(err, &answer) &&
		(answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden))
}

// deletion is one call of [Delete].
type deletion struct {
	DeletionOptions
	gone    map[string]bool // REPOSITORY@DIGEST
	weights weights         // in a dry run
}

func (d *deletion) delete(ctx context.Context, i decision, out *Deleted) error {
	out.Status, out.Digest = "absent", i.top.Digest
	if i.err != nil {
		return i.err
	}
	if i.top.Digest != "" && i.why != "" {
		out.Status, out.Error = "kept", i.why
		return nil
	}
	if i.top.Digest != "" {
		if err := d.deleteManifest(ctx, i.in, i.top, i.entries, out); err != nil {
			return err
		}
	}
	if i.ref.Tag == "" || pulledBy(i.ref) == i.ref.Tag {
		return nil
	}
	// The tag of an image that is named by digest may have the list of what is attached to it instead.
	text, kind, err := i.in.at.Manifest(ctx, i.ref.Tag)
	list := v1.Descriptor{MediaType: kind, Digest: digest.FromBytes(text), Size: int64(len(text))}
	if absent(err) || err == nil && list.Digest == i.top.Digest {
		return nil
	}
	if err != nil {
		return err
	}
	if why, err := i.in.stays(ctx, list.Digest, text); why != "" || err != nil {
		return err
	}
	entries, err := entriesIn(text)
	if err != nil {
		return err
	}
	var of Deleted
	err = d.deleteManifest(ctx, i.in, list, entries, &of)
	if out.Status == "absent" && of.Status != "" {
		out.Status, out.Digest = of.Status, list.Digest
	}
	return err
}

// deleteManifest deletes a manifest, with the entries of an index that need not stay.
func (d *deletion) deleteManifest(ctx context.Context, s *staying, top v1.Descriptor, entries []v1.Descriptor,
	out *Deleted) error {
	if d.gone[s.at.Name()+"@"+top.Digest.String()] {
		return nil
	}
	if d.DryRun {
		out.Status = "planned"
		sizes, err := measure(ctx, s.at, top, nil)
		if err == nil {
			d.weights.add(s.at.Name(), sizes.blobs)
		}
		return err
	}
	below, err := s.below(ctx, top.Digest, entries)
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

func (d *deletion) remove(ctx context.Context, s *staying, of digest.Digest) error {
	name := s.at.Name() + "@" + of.String()
	if d.gone[name] {
		return nil
	}
	if err := s.at.Delete(ctx, of); err != nil && !absent(err) {
		return err
	}
	d.gone[name] = true
	return nil
}
