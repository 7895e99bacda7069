package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// transfer copies the images, those of a kind together: related images, additional images, bundles. An image that
// cannot be copied is noted, and the others are copied. The error is one that ends the run.
func (r *run) transfer(ctx context.Context, list []*item) error {
	list, err := r.shardOf(ctx, list)
	if err != nil {
		return err
	}
	r.lists = newTagLists(list)
	r.progress.add(func(e *Event) { e.AllImages, e.Counting = len(list)+r.toPublish(), true })
	if err := r.placeTagged(ctx, list); err != nil {
		return err
	}
	if err := r.skipCarried(ctx, list); err != nil {
		return err
	}
	defer r.surveyAhead(ctx, list)()
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].kind == list[0].kind {
			n++
		}
		if err := r.transferAll(ctx, list[:n]); err != nil {
			return errors.Join(err, r.state.save())
		}
		list = list[n:]
	}
	return r.state.save()
}

func (r *run) transferAll(ctx context.Context, list []*item) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(r.o.Jobs)
	for _, i := range list {
		if i.account.Status == Blocked || i.account.Status == Present || gctx.Err() != nil {
			continue
		}
		if why := r.lacking(i); why != "" {
			i.account.Error = why
			r.done(i, nil)
			continue
		}
		g.Go(func() error {
			i.moving.begin()
			err := r.copyItem(gctx, i)
			i.moving.end()
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil && gctx.Err() != nil {
				return err // another image has ended the run, for a reason of its own
			}
			if err != nil {
				i.fail(err)
				r.log.warn(i.name() + " is not copied")
				r.log.debug(fmt.Sprintf("%s: %v", i.name(), err))
				r.adviseSparse(err)
			}
			r.done(i, err)
			if fatal(err) {
				return fmt.Errorf("%s: %w", i.name(), err)
			}
			return r.troubles.note(i, i.destination.Host, err)
		})
	}
	return g.Wait()
}

// adviseSparse says once what to do about indexes that the target does not take.
func (r *run) adviseSparse(err error) {
	var sparse *store.SparseError
	if !errors.As(err, &sparse) || sparse.Err == nil {
		return
	}
	r.sparse.Do(func() {
		r.problem(Warning, r.account.Destination, "mirror all platforms of such images, without \"platforms\" in the "+
			"image set; --sparse trim writes an index of the platforms that are kept, for images that are not named "+
			"by digest", "the registry takes no index without its images for other platforms")
	})
}

// done reports an image that is done.
func (r *run) done(i *item, err error) {
	r.progress.add(func(e *Event) {
		e.Image, e.Status, e.Err = i.name(), i.account.Status, err
		e.Images++
	})
}

// lacking tells why a bundle's image is not copied: the bundle is left out of every catalog that has it.
func (r *run) lacking(i *item) string {
	if i.kind != Bundle {
		return ""
	}
	why := ""
	for _, u := range i.users {
		lack := r.lackOf(u)
		if lack == "" {
			return ""
		}
		why = lack
	}
	return why
}

// copyItem copies one image with what is attached to it.
func (r *run) copyItem(ctx context.Context, i *item) (err error) {
	if r.o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.o.Timeout,
			fmt.Errorf("not copied within %s, the time for one image", r.o.Timeout))
		defer cancel()
	}
	to, err := r.to.repository(i.destination)
	if err != nil {
		return err
	}
	there, err := r.askFor(ctx, to, i)
	if err != nil {
		return err
	}
	demanded, err := r.demands(ctx, i.source)
	if err != nil {
		return err
	}
	if !demanded && i.byDigest() && there.Digest == i.source.Digest && r.settled(i, there) {
		return nil
	}
	if !demanded && r.known(i) {
		i.account.Status = Present
		return nil
	}
	from, err := r.openJudged(ctx, i)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	if i.source.Digest != "" && from.top.Digest != i.source.Digest {
		return fmt.Errorf("the source has %s", from.top.Digest)
	}
	i.state.digest, i.state.top, i.account.Digest = from.top.Digest, from.top, from.top.Digest
	if err := checkTagged(ctx, i, from); err != nil {
		return err
	}
	if err := checkThere(ctx, i, from, to); err != nil {
		return err
	}
	if there.Digest == from.top.Digest && r.settled(i, from.top) {
		return nil
	}
	if r.known(i) {
		i.account.Status = Present
		return nil
	}
	var attached referrers.Account
	done, err := store.CopyOne(ctx, from.Reader, from.top, to, i.destination.Tag, store.CopyOptions{
		Platforms: i.platforms, Sparse: r.o.Sparse, ByDigest: i.byDigest(), Jobs: r.o.Layers,
		Absent: i.asked && there.Digest == "", Named: true, Elsewhere: r.otherPlaces,
		Attach: func(ctx context.Context, to store.Writer, image store.Image) (err error) {
			attached, err = r.attach(ctx, r.lists.reader(i, from.Reader), to, image)
			return err
		},
		Moved: i.moving.event,
	})
	if err != nil {
		return err
	}
	i.account.Digest, i.account.Bytes, i.account.Sent = done.Digest, done.Bytes, done.Sent
	i.account.Status = Copied
	if done.Present {
		i.account.Status = Present
	}
	for _, a := range attached.Copied {
		i.account.Signatures = append(i.account.Signatures, a.Digest)
		i.state.attached = append(i.state.attached, cmp.Or(a.Tag, a.Digest.String()))
	}
	lost := attached.Problems
	for _, u := range attached.Unread {
		lost = append(lost, u.Answer)
	}
	if len(lost) > 0 {
		i.account.Unsigned = strings.Join(lost[:min(len(lost), 5)], "; ")
		r.log.warn(fmt.Sprintf("%s: not all signatures could be read: %s", i.name(), i.account.Unsigned))
	}
	if done.Digest == from.top.Digest && i.account.Unsigned == "" {
		r.state.add(r.carriedKey(i, from.top.Digest))
	}
	return nil
}

// checkThere returns an error unless the policy accepts what the target has of an index and this run does not copy: the
// index serves it.
func checkThere(ctx context.Context, i *item, from *opened, to repository) error {
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
			return &originError{fmt.Errorf("what the destination has of it already: %w", err)}
		}
	}
	return nil
}

// checkTagged returns an error for an image whose destination is the tag of signatures or the like of another one.
func checkTagged(ctx context.Context, i *item, from *opened) error {
	if !reflist.Belongs(i.destination.Tag) || i.destination.Tag == imageset.DigestTag(from.top.Digest) {
		return nil
	}
	text, _, err := from.Manifest(ctx, from.top.Digest.String())
	if err != nil {
		return &originError{err}
	}
	if err := referrers.CheckTagged(i.destination.Tag, text); err != nil {
		return fmt.Errorf("%s is a tag for what is attached to an image: %w", i.destination.Name(), err)
	}
	return nil
}

// attach copies what is attached to an image. What the source does not show is no reason to leave the image out:
// registries answer 403 for tags that do not exist (MIRROR 8.5).
func (r *run) attach(ctx context.Context, from store.Reader, to store.Writer,
	image store.Image) (referrers.Account, error) {
	if r.o.With == (referrers.Kinds{}) {
		return referrers.Account{}, nil
	}
	var subjects []digest.Digest
	for _, d := range image.Subjects() {
		subjects = append(subjects, d.Digest)
	}
	return referrers.CopyReadable(ctx, from, to, subjects, r.o.With, store.Limits{})
}

// settled tells whether an image that the target has needs no more work: what is attached to it was carried before, or
// none is wanted, and so were the images of an index.
func (r *run) settled(i *item, there v1.Descriptor) bool {
	i.state.digest, i.account.Digest = there.Digest, there.Digest
	attached := r.o.With == (referrers.Kinds{}) || !r.o.Recheck && r.state.has(r.carriedKey(i, there.Digest))
	if !attached {
		return false
	}
	// An index may be there without its images for other platforms.
	single := there.MediaType != "" && !manifest.MIMETypeIsMultiImage(there.MediaType)
	if !single && !r.state.has(r.carriedKey(i, there.Digest)) {
		return false
	}
	i.account.Status = Present
	return true
}

// carriedKey identifies an image at its destination with the kinds of attachments and the platforms that were
// carried.
func (r *run) carriedKey(i *item, d digest.Digest) string {
	kinds := ""
	if r.o.With.Tags {
		kinds += "s"
	}
	if r.o.With.Referrers {
		kinds += "r"
	}
	for _, p := range i.platforms {
		kinds += " " + p.OS + "/" + p.Architecture
	}
	return d.String() + " " + i.destination.Name() + " " + kinds
}

// errNoImages is the error about an image set without images.
var errNoImages = fault.New(fault.Input, "no images to copy: the image set names no operators and no additional images")

// block notes that an image is left out by a rule of the image set.
func (r *run) block(i *item) {
	b, blocked := r.o.Set.Blocked(i.source, "", i.destination, r.place())
	if !blocked {
		return
	}
	i.account.Status = Blocked
	if b.ByDestination {
		r.problem(Warning, i.name(), "", "blocked, as %q matches its name at the destination", b.Rule.Name)
	}
	if r.o.PruneBlocked {
		return
	}
	for _, u := range i.users {
		r.problem(Warning, i.name(), "--prune-blocked takes the bundle out of the catalog",
			"blocked, and bundle %s of package %s names it", u.bundle, u.pkg)
	}
}
