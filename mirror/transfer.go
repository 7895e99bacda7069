package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/outage"
	"github.com/operator-bindery/bindery/mirror/internal/taglists"
)

// copyAll copies the images, those of a kind together: related images, additional images, bundles. An image that cannot
// be copied is noted, and the others are copied. The error is one that ends the run. More is how many steps of the
// progress come after the images.
func (r *run) copyAll(ctx context.Context, list []*item, more int) error {
	r.tags = taglists.New(several(list, func(i *item) string { return i.source.Repository() }))
	if !r.writing() {
		r.targets = taglists.AtTarget(several(list, func(i *item) string { return i.destination.Repository() }))
	}
	r.report.progress.add(func(e *Event) { e.AllImages, e.Counting = len(list)+more, true })
	if err := r.keepTags(ctx, list); err != nil {
		return err
	}
	if err := r.markCarried(ctx, list); err != nil {
		return err
	}
	defer r.survey(ctx, list)()
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].kind == list[0].kind {
			n++
		}
		if err := r.copyKind(ctx, list[:n]); err != nil {
			return errors.Join(err, r.carried.Save())
		}
		list = list[n:]
	}
	return r.carried.Save()
}

// several counts the images of the repositories that have several.
func several(list []*item, repository func(*item) string) map[string]int {
	all, several := map[string]int{}, map[string]int{}
	for _, i := range list {
		name := repository(i)
		if all[name]++; all[name] > 1 {
			several[name] = all[name]
		}
	}
	return several
}

// copyKind copies images of one kind. A release or a bundle that lacks another image is not copied. Names of one image in
// a repository are written one after the other: the first one brings it.
func (r *run) copyKind(ctx context.Context, list []*item) error {
	var groups [][]*item // of what is written one after the other
	groupOf := map[string]int{}
	for _, i := range list {
		if i.account.Status == Blocked || i.account.Status == Present {
			continue
		}
		if why := i.lacking(r.o.PruneBlocked); why != "" {
			i.account.Error = why
			r.report.imageDone(i, nil)
			continue
		}
		key := i.destination.String()
		if i.byDigest() {
			key = i.destination.Repository() + "@" + i.source.Digest.String()
		}
		n, ok := groupOf[key]
		if !ok {
			n = len(groups)
			groupOf[key], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], i)
	}
	groupOf = nil // it is large, and not needed while images are copied
	return guard.Each(ctx, r.imagesAtOnce(), groups, func(gctx context.Context, _ int, together []*item) error {
		for _, i := range together {
			if gctx.Err() != nil {
				return context.Cause(gctx)
			}
			if err := r.copyOne(ctx, gctx, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// maxImagesAtOnce bounds how many images are begun to keep the uploads going.
const maxImagesAtOnce = 40

// imagesAtOnce is how many images are copied at once. What limits a copy to a registry is how many blobs are sent, those of
// as many images as there may be at once: most images have few that are new, wait for answers between them, and in the end
// until their signatures have lasted. Where an image has a limit of time, none waits for another.
func (r *run) imagesAtOnce() int {
	if r.writing() || r.o.ParallelImages == 1 || r.o.Timeout > 0 {
		return r.o.ParallelImages
	}
	return max(r.o.ParallelImages, min(2*cap(r.uploads), maxImagesAtOnce))
}

// copyOne copies an image and notes what became of it. The error is one that ends the run; run is the context of the run,
// and ctx that of the images that are copied together.
func (r *run) copyOne(run, ctx context.Context, i *item) error {
	err := r.copyItem(ctx, i)
	if run.Err() != nil {
		return context.Cause(run)
	}
	if err != nil && ctx.Err() != nil {
		return err // another image has ended the run, for a reason of its own
	}
	if err != nil {
		r.report.imageFailed(i, "is not copied", err)
		r.adviseSparse(err)
	}
	r.report.imageDone(i, err)
	if outage.Fatal(err) {
		return fmt.Errorf("%s: %w", i.name(), err)
	}
	return r.outages.Count(outage.Outcome{Source: i.source.Host, Target: i.destination.Host,
		Read: i.account.Status == Copied, Err: err})
}

// adviseSparse says once what to do about indexes that the target does not take.
func (r *run) adviseSparse(err error) {
	var sparse *store.SparseError
	if !errors.As(err, &sparse) || sparse.Err == nil {
		return
	}
	r.sparse.Do(func() {
		r.report.problem(filter.Warning, r.report.account.Destination, "mirror all platforms of such images, without "+
			"\"platforms\" in the image set; --sparse trim writes an index of the platforms that are kept, for images "+
			"that are not named by digest", "the registry takes no index without its images for other platforms")
	})
}

// copyItem copies one image, with what is attached to it, if that is to be done.
func (r *run) copyItem(ctx context.Context, i *item) (err error) {
	i.moving.Begin()
	defer i.moving.End()
	if r.o.Timeout > 0 && i.build == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.o.Timeout,
			fmt.Errorf("not copied within %s, the time for one image", r.o.Timeout))
		defer cancel()
	}
	d, err := r.decide(ctx, i)
	if err != nil || d.from == nil {
		return err
	}
	return errors.Join(r.copyFrom(ctx, i, d), d.from.close())
}

// copyFrom copies an image as it was decided.
func (r *run) copyFrom(ctx context.Context, i *item, d decision) error {
	to, err := r.places.to.repository(i.destination)
	if err != nil {
		return err
	}
	from, built := d.from, i.build != nil
	beside := from.Reader // has what is attached to the image
	switch {
	case built:
		beside = from.carrier
	case r.tags != nil:
		beside = r.tags.Reader(i.source.Repository(), beside)
	}
	var attached referrers.Account
	done, err := store.CopyOne(ctx, from.Reader, from.top, to, i.destination.Tag, store.CopyOptions{
		Platforms: i.platforms, Sparse: r.o.Sparse, ByDigest: i.byDigest(), Jobs: r.o.ParallelLayers, Uploads: r.uploads, Named: !built,
		Absent: i.there != nil && d.there.Digest == "" && !(built && r.writing()), Elsewhere: r.places.input.reposElsewhere,
		Attach: func(ctx context.Context, to store.Writer, image store.Image) (err error) {
			if image.Name = i.destination.Name(); r.writing() {
				image.Name = "" // signatures for policies need the name that it gets at a registry
			}
			if beside != nil {
				attached, err = copyAttached(ctx, r.o.With, beside, to, image)
			}
			for _, s := range from.sign {
				if err == nil {
					err = s.Attach(ctx, to, image)
				}
			}
			return err
		},
		Moved: i.moving.Event,
	})
	if err != nil {
		return err
	}
	i.account.Digest, i.account.Bytes, i.account.Sent = done.Digest, done.Bytes, done.Sent
	i.account.Status = Copied
	if done.Present && !built {
		i.account.Status = Present
	}
	for _, a := range attached.Copied {
		i.account.Signatures = append(i.account.Signatures, a.Digest)
		i.result().attached = append(i.result().attached, cmp.Or(a.Tag, a.Digest.String()))
	}
	lost := attached.Problems
	for _, u := range attached.Unread {
		lost = append(lost, u.Answer)
	}
	if len(lost) > 0 {
		const text = "not all signatures could be read: "
		i.account.Unsigned = strings.Join(lost[:min(len(lost), 5)], "; ")
		if i.kind == Catalog { // the account lists no images of catalogs
			r.report.problem(filter.Warning, i.destination.Name(), "", "%s", text+i.account.Unsigned)
		} else {
			r.report.log.warn(i.name() + ": " + text + i.account.Unsigned)
		}
	}
	if done.Digest == from.top.Digest && i.account.Unsigned == "" && i.kind != Catalog && i.kind != Graph {
		r.carried.Add(r.carriedLine(i, from.top.Digest))
	}
	return nil
}

// checkOtherEntries returns an error unless the policy accepts what the target has of an index and this run does not
// copy: the index serves it.
func checkOtherEntries(ctx context.Context, i *item, from *opened, to store.Reader) error {
	if from.judged == nil || len(i.platforms) == 0 {
		return nil
	}
	image, err := from.judged.Entries(ctx)
	if err != nil {
		return err
	}
	_, others := store.Select(image.Entries, i.platforms)
	for _, d := range others {
		if _, err := to.Head(ctx, d.Digest.String()); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if _, _, err := from.Manifest(ctx, d.Digest.String()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &store.SourceError{Opening: true,
				Err: fmt.Errorf("what the destination has of it already: %w", err)}
		}
	}
	return nil
}

// checkAttachmentTag returns an error for an image whose destination is the tag of signatures or the like of another
// one.
func checkAttachmentTag(ctx context.Context, i *item, from *opened) error {
	if !reflist.Belongs(i.destination.Tag) || i.destination.Tag == imageset.DigestTag(from.top.Digest) {
		return nil
	}
	text, _, err := from.Manifest(ctx, from.top.Digest.String())
	if err != nil {
		return &store.SourceError{Err: err, Opening: true}
	}
	if err := referrers.CheckTagged(i.destination.Tag, text); err != nil {
		return fmt.Errorf("%s is a tag for what is attached to an image: %w", i.destination.Name(), err)
	}
	return nil
}

// copyAttached copies what is attached to an image. What the source does not show is no reason to leave the image out:
// some registries answer 403 for tags that do not exist.
func copyAttached(ctx context.Context, with referrers.Kinds, from store.Reader, to store.Writer,
	image store.Image) (referrers.Account, error) {
	if with == (referrers.Kinds{}) {
		return referrers.Account{}, nil
	}
	var subjects []digest.Digest
	for _, d := range image.Subjects() {
		subjects = append(subjects, d.Digest)
	}
	return referrers.CopyReadable(ctx, from, to, subjects, with, store.Limits{})
}
