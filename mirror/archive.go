package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/delta"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// archive is a medium that images come from. What it leaves out is read at the target, which has it.
type archive struct {
	reader *medium.Reader
	about  *medium.Contents // the archive's description; nil for archives of oc-mirror
	// described are the digests of its images by PATH:TAG, as the description has them.
	described map[string][]digest.Digest
	// elsewhere are repositories of the target that have what is left out.
	elsewhere map[digest.Digest][]string
	to        target
	remote    *registries.Client
	client    *images.Client // has the policy
}

// newArchive returns an archive whose images go to a target.
func newArchive(reader *medium.Reader, o *Options, to target) *archive {
	a := &archive{reader: reader, about: reader.Contents(), described: map[string][]digest.Digest{},
		elsewhere: map[digest.Digest][]string{}, to: to, remote: o.Remote, client: o.Images}
	if a.about == nil {
		return a
	}
	add := func(path, tag string, d digest.Digest) {
		if name := path + ":" + tag; d != "" {
			a.described[name] = append(a.described[name], d)
		}
	}
	for _, i := range a.about.Images {
		add(i.Path, i.Tag, i.Digest)
	}
	for _, c := range a.about.Catalogs {
		add(c.Path, c.Tag, c.Digest)
	}
	if o.Remote == nil {
		return a // nothing is copied
	}
	for _, l := range a.about.LeftOut {
		for _, name := range l.Repositories {
			at := o.Target.Image(imageset.Ref{Path: name})
			a.elsewhere[l.Digest] = append(a.elsewhere[l.Digest], at.Repository())
		}
	}
	return a
}

// checkName returns an error if a name stands for another image than the description of the archive says.
func (a *archive) checkName(path, tag string, d digest.Digest) error {
	if known := a.described[path+":"+tag]; len(known) > 0 && !slices.Contains(known, d) {
		return fmt.Errorf("%w: the archive has %s as %s:%s, and its description says %s: it was changed after it was "+
			"written", fault.ErrIntegrity, d, path, tag, known[0])
	}
	return nil
}

// reposElsewhere are the repositories of the target from which a blob that the archive leaves out can be mounted.
func (a *archive) reposElsewhere(d digest.Digest) []string {
	if a == nil {
		return nil
	}
	return a.elsewhere[d]
}

// repository reads a repository of the archive, with what the target has of it in another repository.
func (a *archive) repository(path string, to store.Reader) *delta.Reader {
	return &delta.Reader{Medium: a.reader.Repository(path), Target: to, Elsewhere: a.reposElsewhere,
		Open: func(name string) (store.Reader, error) { return a.remote.Repository(name) }}
}

// open opens the image of an item.
func (a *archive) open(ctx context.Context, i *item) (*opened, error) {
	at := i.onMedium()
	to, err := a.to.repository(i.destination)
	if err != nil {
		return nil, err
	}
	from := a.repository(at.Path, to)
	top, err := from.Head(ctx, at.Tag)
	if err == nil {
		err = a.checkName(at.Path, at.Tag, top.Digest)
	}
	if i.source.Digest != "" && (errors.Is(err, fs.ErrNotExist) || err == nil && top.Digest != i.source.Digest) {
		// The tag may be that of another image of the archive.
		top, err = from.Head(ctx, i.source.Digest.String())
		if errors.Is(err, fs.ErrNotExist) {
			top, err = to.Head(ctx, i.source.Digest.String())
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("neither the archive nor the registry has %s:%s: %w", at.Path, at.Tag, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	out := &opened{Reader: from, top: top, close: func() error { return nil }}
	demanded, err := a.client.Demands(ctx, i.source.PullName())
	if demanded {
		out.judged, err = a.client.At(ctx, i.source.PullName(), from, top, i.platforms)
		if err == nil {
			out.Reader, out.top = out.judged, out.judged.Top
		}
	}
	return out, err
}

// head returns what the tag of an item stands for in the archive.
func (a *archive) head(ctx context.Context, i *item) (v1.Descriptor, error) {
	at := i.onMedium()
	return a.reader.Repository(at.Path).Head(ctx, at.Tag)
}

// LackError is the error of a medium that counts on content which the target does not have.
type LackError struct {
	// Lacking is how much is not there, of All that the medium leaves out. First is one of it.
	Lacking, All int
	First        medium.LeftOut
}

func (e *LackError) Error() string {
	text := fmt.Sprintf("the archive leaves out %d manifests and blobs that the target was to have, and %d of them "+
		"are not there, such as %s", e.All, e.Lacking, e.First.Digest)
	if e.First.Since != nil {
		text += ", which an archive before " + e.First.Since.Format(time.RFC3339) + " carried"
	}
	return text
}

// checkLeftOut looks whether the target has what the archive leaves out, before anything is copied. What
// the archive names no repository for is found out while it is copied.
func (a *archive) checkLeftOut(ctx context.Context, o *Options) error {
	if a.about == nil || o.DryRun || o.PublishOnly {
		return nil
	}
	e := &LackError{All: len(a.about.LeftOut)}
	var mu sync.Mutex
	catalogs := map[string]bool{}
	for _, c := range a.about.Catalogs {
		catalogs[c.Path] = true
	}
	jobs := max(o.ParallelImages, requestsAtOnce)
	err := guard.Each(ctx, jobs, a.about.LeftOut, func(ctx context.Context, _ int, l medium.LeftOut) error {
		// Of catalogs the sources may be on media, and are never at a target.
		if len(l.Repositories) == 0 || slices.ContainsFunc(l.Repositories,
			func(name string) bool { return catalogs[name] }) {
			return nil
		}
		there, err := a.targetHas(ctx, o.Target, l)
		if err == nil && !there {
			mu.Lock()
			defer mu.Unlock()
			if e.Lacking == 0 {
				e.First = l
			}
			e.Lacking++
		}
		return err
	})
	if err != nil {
		return err
	}
	if e.Lacking > 0 {
		return e
	}
	return nil
}

// targetHas tells whether one of the repositories that the archive names has what it leaves out.
func (a *archive) targetHas(ctx context.Context, t imageset.Target, l medium.LeftOut) (bool, error) {
	for _, name := range l.Repositories {
		at, err := a.remote.Repository(t.Image(imageset.Ref{Path: name}).Repository())
		if err != nil {
			return false, err
		}
		if l.MediaType != "" {
			_, err = at.Head(ctx, l.Digest.String())
		} else {
			var has bool
			has, err = at.HasBlob(ctx, v1.Descriptor{Digest: l.Digest, Size: l.Size})
			if err == nil && !has {
				err = fs.ErrNotExist
			}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}
