package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
)

// listReleases lists the releases that were mirrored from the workspace, and those of the image set.
func (o *targetCheck) listReleases(ctx context.Context) ([]targetRelease, error) {
	rec, err := workdir.ReadRecord(o.Workspace.files(), o.Target)
	if err != nil {
		return nil, err
	}
	var out []targetRelease
	if o.Set != nil {
		of := Options{Set: o.Set, Target: o.Target, Workspace: o.Workspace, Releases: o.Releases}
		if out, err = knownReleases(ctx, &of, rec); err != nil {
			return nil, fmt.Errorf("which releases the image set names is known by the workspace of its runs: %w", err)
		}
		if o.Set.Platform.Graph {
			o.expect(o.Target.GraphImage(), o.Target.GraphImage(), nil, "graph: true")
		}
	}
	for _, one := range rec.Releases {
		at := one.Destination
		from, err := imageset.ParseRef(one.Source)
		if err != nil {
			return nil, err
		}
		from.Digest = one.Digest
		if !slices.ContainsFunc(out, func(r targetRelease) bool { return r.dest == at }) {
			out = append(out, targetRelease{name: at.Tag, source: from, dest: at})
		}
	}
	return out, nil
}

// checkRelease reads a release at the target, and adds what it names to what should be there. The error is about what
// cannot be asked.
func (o *targetCheck) checkRelease(ctx context.Context, one targetRelease) (verifiedRelease, error) {
	out := verifiedRelease{Name: one.dest.Name(), Digest: one.source.Digest}
	o.expectUnlessBlocked(one.dest, one.source, one)
	names, err := one.read(ctx, o.Remote, o.Workspace)
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("the target has no such release")
	}
	if err != nil {
		out.Error = err.Error()
		return out, nil
	}
	list := names.Components
	if o.Set != nil {
		list, _ = componentsOf(&o.Set.Platform, one.architecture, names)
	}
	out.Components = len(list)
	for _, c := range list {
		o.expectUnlessBlocked(o.Target.ReleaseContent(one.dest.Tag, c.Name), c.Image, one)
	}
	return out, nil
}

// expectUnlessBlocked adds an image of a release to what should be there, unless the image set leaves it out.
func (o *targetCheck) expectUnlessBlocked(to, from imageset.Ref, of targetRelease) {
	if o.Set != nil {
		if _, _, blocked := o.Set.Blocked(from, "", to, o.Target); blocked {
			return
		}
	}
	o.expect(to, from, o.platforms(), "release "+of.name)
}

// platforms are those of releases that are at the target; none means all.
func (o *targetCheck) platforms() []v1.Platform {
	if o.Set == nil {
		return nil
	}
	return o.Set.Platform.Platforms
}
