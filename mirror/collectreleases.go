package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/releases"
	"github.com/operator-bindery/bindery/mirror/releases/payload"
)

// collectReleases finds out which releases are wanted, verifies them, and lists the images of each. What is wrong with
// one is in it.
func (r *run) collectReleases(ctx context.Context) error {
	p := &r.o.Set.Platform
	r.found.files = newReleaseFiles(r.o, r.places.input)
	if p.Graph {
		r.found.graph = &item{destination: r.o.destination().GraphImage(), kind: Graph, build: r.openGraph}
		r.found.graph.startAccount(r.report.moved)
	}
	if len(p.Channels) == 0 && p.Release.IsZero() {
		return nil
	}
	chosen, err := r.chooseReleases(ctx)
	if err != nil {
		return err
	}
	r.found.releases = chosen
	names := make([]*payload.Payload, len(chosen))
	err = guard.Each(ctx, r.o.ParallelImages, chosen, func(ctx context.Context, n int, one *release) error {
		if one.failed == nil {
			names[n], one.failed = r.readRelease(ctx, one)
		}
		return context.Cause(ctx)
	})
	if err != nil {
		return err
	}
	for n, one := range chosen {
		if one.failed == nil {
			one.failed = r.addComponents(ctx, one, names[n])
		}
		if one.failed != nil {
			one.account.Error = one.failed.Error()
		}
	}
	return r.checkKubeVirt()
}

// releaseFailures are the errors of the releases that cannot be had.
func (f *collection) releaseFailures() (errs []error) {
	for _, one := range f.releases {
		if one.failed != nil {
			if one.account.Name() == "" {
				errs = append(errs, one.failed)
			} else {
				errs = append(errs, fmt.Errorf("release %s: %w", one.account.Name(), one.failed))
			}
		}
	}
	return errs
}

// chooseReleases asks the graphs, or resolves the one release that the image set names.
func (r *run) chooseReleases(ctx context.Context) ([]*release, error) {
	p := &r.o.Set.Platform
	if !p.Release.IsZero() {
		one := &release{chosen: releases.Release{Image: p.Release.Name(), Why: "the image set names it"}}
		one.account = ReleaseAccount{Source: p.Release.String(), Why: one.chosen.Why}
		d, err := r.resolveRelease(ctx, p.Release)
		if err != nil {
			one.failed = err
		}
		one.chosen.Image = p.Release.Repository() + "@" + d.String()
		return []*release{one}, ctx.Err()
	}
	choice, err := r.o.Releases.request(r.o).Choose(ctx, r.graphs())
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var out []*release
	for _, c := range choice.Releases {
		out = append(out, &release{chosen: c, account: ReleaseAccount{Version: c.Version, Architecture: c.Architecture,
			Why: c.Why, Source: "docker://" + c.Image}})
	}
	for _, text := range choice.Warnings {
		r.report.problem(filter.Warning, "", "", "%s", text)
	}
	var failed *releases.Error
	if errors.As(err, &failed) {
		for _, one := range failed.Problems {
			out = append(out, &release{failed: one, account: ReleaseAccount{Architecture: one.Architecture, Error: one.Error()}})
		}
		err = nil
	}
	return out, err
}

// resolveRelease returns the digest of a release that is named by its tag, as it was when the archive was written.
func (r *run) resolveRelease(ctx context.Context, ref imageset.Ref) (digest.Digest, error) {
	if ref.Digest != "" {
		return ref.Digest, nil
	}
	d, err := digest.Digest(""), error(nil)
	if r.places.input == nil {
		d, err = r.o.Images.UnverifiedDigest(ctx, ref.PullName())
	} else if d = r.found.files.resolved(ref); d == "" {
		at := onMedium.ReleaseImages(ref.Tag)
		var top v1.Descriptor
		if top, err = r.places.input.reader.Repository(at.Path).Head(ctx, at.Tag); errors.Is(err, fs.ErrNotExist) {
			return "", absentError("the archive has no release " + ref.Name())
		}
		d = top.Digest
	}
	if err == nil && d == "" {
		return "", absentError("there is no release " + ref.Name())
	}
	if err == nil {
		err = r.found.files.resolve(ref, d)
	}
	return d, err
}

// readRelease verifies a release, and reads what it names.
func (r *run) readRelease(ctx context.Context, one *release) (*payload.Payload, error) {
	ref, err := imageset.ParseRef(one.chosen.Image)
	if err != nil {
		return nil, fmt.Errorf("%w: the graph names the image %s: %w", fault.ErrInvalid, fault.Quote(one.chosen.Image), err)
	}
	if ref.Digest == "" || ref.Host == "" {
		return nil, fmt.Errorf("%w: the graph names the image %s, expected HOST/NAME@sha256:HEX", fault.ErrInvalid,
			fault.Quote(one.chosen.Image))
	}
	tag, unsigned := ref.Digest.Encoded(), false
	if !r.o.Set.Platform.Release.IsZero() {
		if unsigned, err = r.found.files.acceptUnsigned(r.o, ref.Digest); err != nil {
			return nil, err
		}
	}
	if !unsigned {
		if one.signature, err = r.verifyRelease(ctx, ref); err != nil {
			return nil, err
		}
		if ref.Tag = one.signature.Reference.Tag; ref.Tag != "" {
			tag = ref.Tag
		}
		if asked := r.o.Set.Platform.Release.Tag; asked != "" && ref.Tag != "" && asked != ref.Tag {
			r.report.problem(filter.Warning, r.o.Set.Platform.Release.Name(), "",
				"the tag stands for the release that is signed as %s", ref.Tag)
		}
	}
	one.image = &item{source: ref, destination: r.o.destination().ReleaseImages(tag), kind: Release}
	one.image.nameOnMedium(onMedium.ReleaseImages(tag))
	one.account.Source, one.account.Destination = ref.String(), one.image.destination.String()
	one.account.Digest = ref.Digest
	at, err := openSource(ctx, r.places.from, one.image)
	if err != nil {
		return nil, err
	}
	content, err := payload.Read(ctx, at, at.top)
	if err = errors.Join(err, at.close()); err != nil {
		return nil, err
	}
	if said := one.chosen.Version; said != "" && said != content.Version {
		is := "no version"
		if content.Version != "" {
			is = "the version " + fault.Clip(content.Version, fault.MaxShort)
		}
		return nil, fmt.Errorf("%w: the graph of the channel %s says that %s is %s, and the signed image gives itself %s", fault.ErrIntegrity,
			one.chosen.Channel, ref.Name(), said, is)
	}
	if asked := one.chosen.Architecture; !content.IsFor(asked) {
		const text = "the graph of the channel %s names %s for %s, and the image is for %s"
		is := fault.Clip(strings.Join(content.Architectures, ", "), fault.MaxShort)
		if !r.o.Compat {
			return nil, fmt.Errorf("%w: "+text, fault.ErrIntegrity, one.chosen.Channel, ref.Name(), asked, is)
		}
		r.report.problem(filter.Warning, "release "+one.account.Name(), "", text, one.chosen.Channel, ref.Name(), asked, is)
	}
	if r.places.input == nil && ref.Tag != "" {
		if is := contentOf(ctx, r.places.from, one.image.withTag()); is != "" && is != ref.Digest {
			r.report.problem(filter.Warning, ref.Repository()+":"+ref.Tag, "", "the tag stands for %s now; %s is mirrored, which "+
				"the graph names and the signature is for", is, ref.Digest)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(content.Files)) {
		if err := r.found.files.put(path.Join(releaseDir(ref), name), content.Files[name]); err != nil {
			return nil, err
		}
	}
	return content, nil
}

// maxTag is the length of a tag.
const maxTag = 128

// addComponents lists the images of a release.
func (r *run) addComponents(ctx context.Context, one *release, names *payload.Payload) error {
	tag := one.image.destination.Tag
	list, hasKubeVirt := componentsOf(&r.o.Set.Platform, one.chosen.Architecture, names)
	one.hasKubeVirt = hasKubeVirt
	if r.o.Set.Platform.KubeVirt && names.BootImagesError != nil {
		return names.BootImagesError
	}
	for _, c := range list { // before any is added: a release that cannot be had leaves no images
		if len(tag)+1+len(c.Name) > maxTag {
			return fmt.Errorf("%w: component %s: its tag at the destination, %s-%s, has more than %d bytes", fault.ErrLimit,
				fault.Quote(c.Name), tag, c.Name, maxTag)
		}
		if _, err := imageset.ParseRef(r.o.destination().ReleaseContent(tag, c.Name).String()); err != nil {
			return fmt.Errorf("component %s: %w: %w", fault.Quote(c.Name), fault.ErrInvalid, err)
		}
	}
	for _, c := range list {
		dest := r.o.destination().ReleaseContent(tag, c.Name)
		source := c.Image
		if source.Digest == "" {
			i := &item{source: source, destination: dest}
			i.nameOnMedium(onMedium.ReleaseContent(tag, c.Name))
			source.Digest = contentOf(ctx, r.places.from, i) // if it is not there, copying says why
			r.report.problem(filter.Warning, "release "+one.account.Name(), "", "component %s is named by the tag %s, which may "+
				"stand for another image tomorrow; it is copied as it is now %s", c.Name, source.Tag, source.Digest)
		}
		i := r.found.items.add(source, dest, ReleaseContent, r.o.Set.Platform.Platforms)
		i.nameOnMedium(onMedium.ReleaseContent(tag, c.Name))
		i.release = one
		one.components = append(one.components, i)
	}
	image := r.found.items.add(one.image.source, one.image.destination, Release, r.o.Set.Platform.Platforms)
	image.named, image.release = one.image.named, one
	one.image, one.account.Components = image, len(list)
	return nil
}

// checkKubeVirt says which releases have no boot images. It is an error if none has.
func (r *run) checkKubeVirt() error {
	if !r.o.Set.Platform.KubeVirt {
		return nil
	}
	var without []string
	for _, one := range r.found.releases {
		if one.failed != nil || one.hasKubeVirt {
			continue
		}
		without = append(without, one.account.Name())
	}
	if len(without) == 0 {
		return nil
	}
	text := "kubeVirtContainer: no boot image of virtual machines in " + strings.Join(without, ", ")
	if len(without) == len(r.found.releases) {
		return &CollectError{Releases: len(without), Err: fmt.Errorf("%w: %s", fault.ErrInvalid, text)}
	}
	r.report.problem(filter.Warning, "", "", "%s", text)
	return nil
}

// addKeptFiles adds what the other side needs to choose and verify the releases again, and to read the charts.
func (r *run) addKeptFiles(ctx context.Context) error {
	files := r.found.files.written
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err := r.places.output.AddFile(ctx, "working-dir/"+name, int64(len(files[name])), bytes.NewReader(files[name]))
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.found.files.kept)) {
		if err := r.addKeptFile(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// addKeptFile adds a file of the workspace.
func (r *run) addKeptFile(ctx context.Context, name string) (err error) {
	f, err := r.found.files.own.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return r.places.output.AddFile(ctx, workingDir+"/"+name, info.Size(), f)
}
