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
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
)

// presence finds out which images the target has already.
type presence struct {
	o       *Options
	report  *report
	places  *places
	carried *workdir.Carried
}

// writing tells whether the target is an archive that is being written.
func (p *presence) writing() bool { return p.places.output != nil }

// requestsAtOnce is how many images the target is asked for at once: an answer has no body, and costs less than its
// way.
const requestsAtOnce = 16

// markCarried asks the target for the images that earlier runs have copied, and marks those that are as they were. That
// is one request for each, and one to the source of an image without a digest, many at once, so that a run with nothing
// new is short. What cannot be asked is left to the copying, which says why.
func (p *presence) markCarried(ctx context.Context, list []*item) error {
	if p.writing() {
		return nil
	}
	return guard.Each(ctx, max(p.o.Jobs, requestsAtOnce), list, func(ctx context.Context, _ int, i *item) error {
		was := p.isCarried(i, i.source.Digest)
		if !i.byDigest() {
			was = i.source.InRegistry() && p.carried.HasPlace(p.line(i, ""))
		}
		if !was || i.account.Status == Blocked || p.o.Recheck {
			return nil
		}
		if demanded, err := p.o.policyDemands(ctx, i.source); demanded || err != nil {
			return context.Cause(ctx) // the source is judged first
		}
		to, err := p.places.to.repository(i.destination)
		if err != nil {
			return nil
		}
		there, err := to.Head(ctx, i.destination.Tag)
		want := i.source.Digest
		if err == nil && !i.byDigest() && p.isCarried(i, there.Digest) {
			var is v1.Descriptor
			is, err = p.places.from.head(ctx, i)
			want = is.Digest
		}
		if err == nil && there.Digest == want && p.markIfComplete(i, there) {
			p.report.imageDone(i, nil)
		}
		return context.Cause(ctx)
	})
}

// keepTags looks at the tags of images that are named by a tag and a digest: where one stands for another image, of an
// earlier run, it is moved only if it stands for this one at the source. Else the image gets the tag of its digest.
func (p *presence) keepTags(ctx context.Context, list []*item) error {
	return guard.Each(ctx, max(p.o.Jobs, requestsAtOnce), list, func(ctx context.Context, _ int, i *item) error {
		if !i.byDigest() || i.source.Tag == "" || i.destination.Tag == imageset.DigestTag(i.source.Digest) ||
			i.account.Status == Blocked || i.ofRelease() {
			return nil
		}
		if is := p.tagAt(ctx, i); is == "" || is == i.source.Digest {
			return context.Cause(ctx)
		}
		if contentOf(ctx, p.places.from, i.withTag()) != i.source.Digest {
			useDigestTag(p.report, i)
		}
		return context.Cause(ctx)
	})
}

// tagAt is what the tag of an image stands for at the destination; empty if that is nothing, or cannot be found out.
func (p *presence) tagAt(ctx context.Context, i *item) digest.Digest {
	if p.writing() {
		return p.places.output.KeptTag(i.destination.Path, i.destination.Tag)
	}
	there, err := p.head(ctx, i)
	if err != nil {
		return ""
	}
	return there.Digest
}

// head asks the target, once, for the manifest under the name of an image; it is empty if there is none.
func (p *presence) head(ctx context.Context, i *item) (v1.Descriptor, error) {
	i.asking.Lock()
	defer i.asking.Unlock()
	if i.asked || p.writing() && !i.byDigest() {
		if i.there == nil {
			return v1.Descriptor{}, nil
		}
		return *i.there, nil
	}
	to, err := p.places.to.repository(i.destination)
	if err != nil {
		return v1.Descriptor{}, err
	}
	there, err := to.Head(ctx, i.destination.Tag)
	if err == nil && i.byDigest() && there.Digest != i.source.Digest && p.isCarried(i, i.source.Digest) {
		// The tag may be the list of what is attached to the image.
		there, err = to.Head(ctx, i.source.Digest.String())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return v1.Descriptor{}, fmt.Errorf("%s: %w", i.destination.Name(), err)
	}
	if i.asked = true; err != nil {
		return v1.Descriptor{}, nil
	}
	i.there = &there
	return there, nil
}

// markIfComplete marks an image that the target has and that needs no more work: what is attached to it was copied
// before, or none is wanted, and so were the images of an index.
func (p *presence) markIfComplete(i *item, there v1.Descriptor) bool {
	i.result().digest, i.account.Digest = there.Digest, there.Digest
	attached := p.o.With == (referrers.Kinds{}) || !p.o.Recheck && p.isCarried(i, there.Digest)
	if !attached {
		return false
	}
	// An index may be there without its images for other platforms.
	single := there.MediaType != "" && !manifest.MIMETypeIsMultiImage(there.MediaType)
	if !single && !p.isCarried(i, there.Digest) {
		return false
	}
	i.account.Status = Present
	return true
}

// isCarried tells whether an earlier run has copied an image with a digest whole.
func (p *presence) isCarried(i *item, d digest.Digest) bool { return p.carried.Has(p.line(i, d)) }

// line is the line of [workdir.Carried] about an image at its destination, with the kinds of attachments and the
// platforms that are copied.
func (p *presence) line(i *item, d digest.Digest) string {
	kinds := ""
	if p.o.With.Tags {
		kinds += "s"
	}
	if p.o.With.Referrers {
		kinds += "r"
	}
	for _, of := range i.platforms {
		kinds += " " + platform.Name(of)
	}
	return d.String() + " " + i.destination.Name() + " " + kinds
}
