package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/indeximage"
	"github.com/operator-bindery/bindery/mirror/imageset"
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

// catalogAt returns the bundles of a catalog at the target; none if there is no such catalog.
func (r *run) catalogAt(ctx context.Context, at imageset.Ref) (_ []declcfg.Bundle, err error) {
	to, err := r.to.repository(at)
	if err != nil {
		return nil, err
	}
	if _, err := to.Head(ctx, at.Tag); absent(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	c := &catalog{name: at.Name(), selects: imageset.Operator{Full: true}}
	if c.index, err = indeximage.Open(ctx, c.name, indeximage.Options{Render: r.o.Render}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.apply(ctx, r.o.Filter, nil); err != nil {
		return nil, err
	}
	return c.result.Catalog.Bundles, nil
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
	top, err := to.Head(ctx, pulledBy(ref))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	image, err := referrers.ReadImage(ctx, to, top)
	if err != nil {
		return nil, err
	}
	source, err := imageset.ParseRef(i.Name)
	if err != nil {
		return nil, err
	}
	var out []DeleteItem
	for _, d := range image.Subjects() {
		for _, end := range []string{referrers.Signatures, referrers.Attestations, referrers.SBOM} {
			tag := referrers.TagOf(d.Digest, end)
			if _, err := to.Head(ctx, tag); errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return nil, err
			}
			out = append(out, DeleteItem{source.Repository() + ":" + tag, "docker://" + ref.Repository() + ":" + tag,
				i.Type})
		}
		list := imageset.DigestTag(d.Digest) // of referrers, where a registry has no API for them
		if list == ref.Tag {
			continue
		}
		if is, err := to.Head(ctx, list); err == nil && is.Digest != d.Digest {
			out = append(out, DeleteItem{source.Repository() + ":" + list, "docker://" + ref.Repository() + ":" + list,
				i.Type})
		}
	}
	return out, nil
}

// DeletionOptions configure [Delete].
type DeletionOptions struct {
	Remote *images.Remote
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
	Error  string `json:"error,omitempty"`
}

// Delete deletes the images of a list at a target. An image that is not there is done. A manifest that an image to keep
// has as well, under another tag, stays, and only its tag is lost where registries delete tags alone. Entries of a
// deleted index are deleted with it unless another tag of the repository has them. The registry frees the space of
// blobs by its own garbage collection.
//
// An item that is not below the target makes the whole list an error, before anything is deleted. The error
// [images.ErrNoDelete] ends the work; others are in the result, and joined.
func Delete(ctx context.Context, list *DeleteList, target imageset.Target, o DeletionOptions) (*Deletion, error) {
	prefix := "docker://" + target.String() + "/"
	var outside []error
	for _, i := range list.Items {
		if !strings.HasPrefix(i.Reference, prefix) {
			outside = append(outside, fmt.Errorf("%s is not below %s", fault.Quote(i.Reference), target))
		}
	}
	for _, k := range list.Kept { // they are asked for
		if ref, err := imageset.ParseRef(k.Reference); err != nil || !isAt(ref, target) {
			outside = append(outside, fmt.Errorf("%s is not at %s", fault.Quote(k.Reference), target.Host))
		}
	}
	if len(outside) > 0 {
		return nil, errOutside{errors.Join(outside...)}
	}
	if err := o.Remote.Ping(ctx, target.String()); err != nil {
		return nil, err // it names the registry
	}
	d := &deletion{DeletionOptions: o, gone: map[string]bool{}}
	if err := d.keep(ctx, list.Kept); err != nil {
		return nil, err
	}
	out := &Deletion{Images: []Deleted{}}
	var errs []error
	for _, i := range list.Items {
		one := Deleted{DeleteItem: i}
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
		if errors.Is(err, images.ErrNoDelete) {
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
	var answer *images.StatusError
	return errors.Is(err, fs.ErrNotExist) && !(errors.As(err, &answer) &&
		(answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden))
}

// deletion is one call of [Delete].
type deletion struct {
	DeletionOptions
	kept    map[string]bool // REPOSITORY@DIGEST of images to keep, with the entries of indexes
	gone    map[string]bool
	weights weights // in a dry run
}

// keep finds out which manifests must stay.
func (d *deletion) keep(ctx context.Context, kept []KeptItem) error {
	d.kept = map[string]bool{}
	for _, k := range kept {
		ref, err := imageset.ParseRef(k.Reference)
		if err != nil {
			return err
		}
		at, err := d.Remote.Repository(ref.Repository())
		if err != nil {
			return err
		}
		top, err := at.Head(ctx, pulledBy(ref))
		if absent(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s, which is to stay: %w", k.Reference, err)
		}
		image, err := referrers.ReadImage(ctx, at, top)
		if err != nil {
			return fmt.Errorf("%s, which is to stay: %w", k.Reference, err)
		}
		for _, s := range image.Subjects() {
			d.kept[ref.Repository()+"@"+s.Digest.String()] = true
		}
	}
	return nil
}

func (d *deletion) delete(ctx context.Context, i DeleteItem, out *Deleted) error {
	ref, err := imageset.ParseRef(i.Reference)
	if err != nil {
		return err
	}
	at, err := d.Remote.Repository(ref.Repository())
	if err != nil {
		return err
	}
	out.Status = "absent"
	name := pulledBy(ref)
	err = d.deleteManifest(ctx, at, ref.Repository(), name, out)
	if err != nil || name == ref.Tag || ref.Tag == "" || out.Status == "kept" {
		return err
	}
	// The tag of an image that is named by digest may have the list of what is attached to it instead.
	var list Deleted
	err = d.deleteManifest(ctx, at, ref.Repository(), ref.Tag, &list)
	if out.Status == "absent" && list.Status != "" {
		out.Status, out.Digest = list.Status, list.Digest
	}
	return err
}

// deleteManifest deletes what a tag or digest stands for, with the entries of an index. Where there is nothing it leaves
// the status as it is.
func (d *deletion) deleteManifest(ctx context.Context, at *images.RemoteRepository, repository, tag string,
	out *Deleted) error {
	top, err := at.Head(ctx, tag)
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	name := repository + "@" + top.Digest.String()
	if d.gone[name] {
		return nil
	}
	out.Digest = top.Digest
	if d.kept[name] {
		out.Status, out.Error = "kept", "an image that stays is the same manifest under another tag"
		return nil
	}
	if d.DryRun {
		out.Status = "planned"
		sizes, err := measure(ctx, at, top, nil)
		if err == nil {
			d.weights.add(repository, sizes.blobs)
		}
		return err
	}
	children, err := entries(ctx, at, top)
	if err != nil {
		return err
	}
	if err := d.remove(ctx, at, name, top.Digest); err != nil {
		return err
	}
	out.Status = "deleted"
	if len(children) == 0 {
		return nil
	}
	used, err := stillUsed(ctx, at)
	if err != nil {
		return fmt.Errorf("its entries stay, since other tags cannot be read: %w", err)
	}
	for _, child := range children {
		name := repository + "@" + child.String()
		if used[child] || d.kept[name] {
			continue
		}
		if err := d.remove(ctx, at, name, child); err != nil {
			return fmt.Errorf("entry %s: %w", child, err)
		}
	}
	return nil
}

func (d *deletion) remove(ctx context.Context, at *images.RemoteRepository, name string, of digest.Digest) error {
	if d.gone[name] {
		return nil
	}
	if err := at.Delete(ctx, of); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.gone[name] = true
	return nil
}

// entries returns the digests of the entries of an index.
func entries(ctx context.Context, at referrers.Reader, top v1.Descriptor) ([]digest.Digest, error) {
	if !manifest.MIMETypeIsMultiImage(top.MediaType) {
		return nil, nil
	}
	image, err := referrers.ReadImage(ctx, at, top)
	var out []digest.Digest
	for _, d := range image.Instances {
		out = append(out, d.Digest)
	}
	return out, err
}

// maxTagsRead is how many tags of a repository are read to find out what else has an entry of an index.
const maxTagsRead = 2000

// stillUsed returns the digests that the tags of a repository stand for, with the entries of indexes.
func stillUsed(ctx context.Context, at *images.RemoteRepository) (map[digest.Digest]bool, error) {
	tags, err := at.Tags(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(tags) > maxTagsRead {
		return nil, fmt.Errorf("%w: %d tags, more than %d", fault.ErrLimit, len(tags), maxTagsRead)
	}
	used := map[digest.Digest]bool{}
	for _, tag := range slices.Sorted(slices.Values(tags)) {
		text, _, err := at.Manifest(ctx, tag)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		used[digest.FromBytes(text)] = true
		var index v1.Index
		if json.Unmarshal(text, &index) == nil {
			for _, m := range index.Manifests {
				used[m.Digest] = true
			}
		}
	}
	return used, nil
}
