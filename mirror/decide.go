package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// decision is what there is to do for an image.
type decision struct {
	// there is what the destination has under the name of the image; empty if that is nothing.
	there v1.Descriptor
	// from is the image to copy, which the policy accepts; nil if nothing is to be done. The caller closes it.
	from *opened
}

// decide finds out whether an image is to be copied, for a run and for its dry run alike. One that is there, with all
// that belongs to it, is noted as present. An error is the reason why it cannot be copied.
func (r *run) decide(ctx context.Context, i *item) (d decision, err error) {
	defer func() {
		if d.from != nil && (err != nil || i.account.Status == Present) {
			err = errors.Join(err, d.from.close())
			d.from = nil
		}
	}()
	if i.build != nil {
		if d.from, err = i.build(ctx); err != nil {
			return d, err
		}
		i.note(d.from.top)
	}
	if d.there, err = r.head(ctx, i); err != nil {
		return d, err
	}
	if i.build != nil {
		if d.there.Digest == d.from.top.Digest && len(d.from.sign) == 0 {
			i.account.Status = Present
		}
		return d, nil
	}
	demanded, err := r.o.policyDemands(ctx, i.source)
	if err != nil {
		return d, err
	}
	if !demanded && (i.byDigest() && d.there.Digest == i.source.Digest && r.markIfComplete(i, d.there) || r.markElsewhere(i)) {
		return d, nil
	}
	if d.from, err = openSource(ctx, r.places.from, i); err != nil {
		return d, err
	}
	top := d.from.top
	if i.source.Digest != "" && top.Digest != i.source.Digest {
		return d, fmt.Errorf("the source has %s", top.Digest)
	}
	i.note(top)
	if err := checkAttachmentTag(ctx, i, d.from); err != nil {
		return d, err
	}
	if demanded && r.places.to != nil {
		to, err := r.places.to.repository(i.destination)
		if err == nil {
			err = checkOtherEntries(ctx, i, d.from, to)
		}
		if err != nil {
			return d, err
		}
	}
	if d.there.Digest != top.Digest || !r.markIfComplete(i, top) {
		r.markElsewhere(i)
	}
	return d, nil
}

// markElsewhere marks an image that the target of an archive is known to have.
func (r *run) markElsewhere(i *item) bool {
	has := r.places.other.hasImage(i)
	if has {
		i.account.Status = Present
	}
	return has
}

// writing tells whether the target is an archive that is being written.
func (r *run) writing() bool { return r.places.output != nil }

// requestsAtOnce is how many images the target is asked for at once: an answer has no body, and costs less than its
// way.
const requestsAtOnce = 16

// markCarried asks the target for the images that earlier runs have copied, and marks those that are as they were. That
// is one request for each, and one to the source of an image without a digest, many at once, so that a run with nothing
// new is short. What cannot be asked is left to the copying, which says why.
func (r *run) markCarried(ctx context.Context, list []*item) error {
	if r.writing() {
		return nil
	}
	return guard.Each(ctx, max(r.o.ParallelImages, requestsAtOnce), list, func(ctx context.Context, _ int, i *item) error {
		was := r.isCarried(i, i.source.Digest)
		if !i.byDigest() {
			was = i.source.InRegistry() && r.carried.HasPlace(r.carriedLine(i, ""))
		}
		if !was || i.account.Status == Blocked || r.o.Recheck {
			return nil
		}
		if demanded, err := r.o.policyDemands(ctx, i.source); demanded || err != nil {
			return context.Cause(ctx) // the source is judged first
		}
		to, err := r.places.to.repository(i.destination)
		if err != nil {
			return nil
		}
		there, err := to.Head(ctx, i.destination.Tag)
		want := i.source.Digest
		if err == nil && !i.byDigest() && r.isCarried(i, there.Digest) {
			var is v1.Descriptor
			is, err = r.places.from.head(ctx, i)
			want = is.Digest
		}
		if err == nil && there.Digest == want && r.markIfComplete(i, there) {
			r.report.imageDone(i, nil)
		}
		return context.Cause(ctx)
	})
}

// keepTags looks at the tags of images that are named by a tag and a digest: where one stands for another image, of an
// earlier run, it is moved only if it stands for this one at the source. Else the image gets the tag of its digest.
func (r *run) keepTags(ctx context.Context, list []*item) error {
	return guard.Each(ctx, max(r.o.ParallelImages, requestsAtOnce), list, func(ctx context.Context, _ int, i *item) error {
		if !i.byDigest() || i.source.Tag == "" || i.destination.Tag == imageset.DigestTag(i.source.Digest) ||
			i.account.Status == Blocked || i.ofRelease() {
			return nil
		}
		if is := r.tagAt(ctx, i); is == "" || is == i.source.Digest {
			return context.Cause(ctx)
		}
		if contentOf(ctx, r.places.from, i.withTag()) != i.source.Digest {
			useDigestTag(r.report, i)
		}
		return context.Cause(ctx)
	})
}

// tagAt is what the tag of an image stands for at the destination; empty if that is nothing, or cannot be found out.
func (r *run) tagAt(ctx context.Context, i *item) digest.Digest {
	if r.writing() {
		return r.places.output.KeptTag(i.destination.Path, i.destination.Tag)
	}
	there, err := r.head(ctx, i)
	if err != nil {
		return ""
	}
	return there.Digest
}

// head asks the target, once, for the manifest under the name of an image; it is empty if there is none. Where a list of
// tags shows that, or the registry has no such repository, the image is not asked for.
func (r *run) head(ctx context.Context, i *item) (v1.Descriptor, error) {
	i.asking.Lock()
	defer i.asking.Unlock()
	if i.there != nil {
		return *i.there, nil
	}
	if r.places.to == nil || r.writing() && !i.byDigest() && i.build == nil {
		return v1.Descriptor{}, nil
	}
	to, err := r.places.to.repository(i.destination)
	if err != nil {
		return v1.Descriptor{}, err
	}
	if r.targets != nil && i.build == nil && !r.isCarried(i, i.source.Digest) &&
		r.targets.Lacks(ctx, i.destination.Repository(), to, i.destination.Tag) {
		i.there = absent
		return *i.there, nil
	}
	there, err := to.Head(ctx, i.destination.Tag)
	if err == nil && i.byDigest() && there.Digest != i.source.Digest && r.isCarried(i, i.source.Digest) {
		// The tag may be the list of what is attached to the image.
		there, err = to.Head(ctx, i.source.Digest.String())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return v1.Descriptor{}, fmt.Errorf("%s: %w", i.destination.Name(), err)
	}
	if i.there = absent; err == nil {
		i.there = &there
	}
	return *i.there, nil
}

// absent stands for an image that the destination does not have.
var absent = &v1.Descriptor{}

// markIfComplete marks an image that the target has and that needs no more work: what is attached to it was copied
// before, or none is wanted, and so were the images of an index. A dry run leaves out what is attached.
func (r *run) markIfComplete(i *item, there v1.Descriptor) bool {
	i.result().digest, i.account.Digest = there.Digest, there.Digest
	attached := r.o.DryRun || r.o.With == (referrers.Kinds{}) || !r.o.Recheck && r.isCarried(i, there.Digest)
	if !attached {
		return false
	}
	// An index may be there without its images for other platforms.
	single := there.MediaType != "" && !manifest.MIMETypeIsMultiImage(there.MediaType)
	if !single && !r.isCarried(i, there.Digest) {
		return false
	}
	i.account.Status = Present
	return true
}

// isCarried tells whether an earlier run has copied an image with a digest whole.
func (r *run) isCarried(i *item, d digest.Digest) bool { return r.carried.Has(r.carriedLine(i, d)) }

// carriedLine is the line of [workdir.Carried] about an image at its destination, with the kinds of attachments and the
// platforms that are copied.
func (r *run) carriedLine(i *item, d digest.Digest) string {
	kinds := ""
	if r.o.With.Tags {
		kinds += "s"
	}
	if r.o.With.Referrers {
		kinds += "r"
	}
	for _, of := range i.platforms {
		kinds += " " + platform.Name(of)
	}
	return d.String() + " " + i.destination.Name() + " " + kinds
}
