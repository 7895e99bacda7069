package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
	"github.com/operator-bindery/bindery/mirror/releases"
	"github.com/operator-bindery/bindery/mirror/releases/payload"
)

// targetRelease is a release as it is, or was, at a target.
type targetRelease struct {
	name, architecture string
	// source has the digest, and the tag if it is known; dest has the tag.
	source, dest imageset.Ref
}

// knownReleases finds the releases that the image set names by what runs have left in the workspace: graphs, signatures
// and the record of what was mirrored. No server is asked.
func knownReleases(ctx context.Context, o *Options, rec *workdir.Record) (out []targetRelease, err error) {
	p := &o.Set.Platform
	if len(p.Channels) == 0 && p.Release.IsZero() {
		return nil, nil
	}
	files := newReleaseFiles(o, nil)
	if !p.Release.IsZero() {
		ref := p.Release
		if ref.Digest == "" {
			ref.Digest = files.resolved(ref)
		}
		for _, one := range rec.Releases {
			if ref.Digest == "" && one.Destination.Tag == ref.Tag {
				ref.Digest = one.Digest
			}
		}
		if ref.Digest == "" {
			ref.Digest = files.signedAs(ref.Tag) // it may have been deleted, and be in no record
		}
		if ref.Digest == "" {
			return nil, absentError("the workspace does not know the digest of the release " + ref.Name())
		}
		return []targetRelease{newTargetRelease(o.Target, ref.Name(), "", ref, rec, files)}, nil
	}
	choice, err := o.Releases.request(o).Choose(ctx, releases.Stored{Files: files.sub(graphsDir), Place: "the workspace"})
	if err != nil {
		return nil, err
	}
	for _, c := range choice.Releases {
		ref, err := imageset.ParseRef(c.Image)
		if err != nil {
			return nil, fmt.Errorf("release %s: %w", c.Version, err)
		}
		out = append(out, newTargetRelease(o.Target, c.Version+" ("+c.Architecture+")", c.Architecture, ref, rec, files))
	}
	return out, nil
}

// newTargetRelease finds the tag of a release: the one that was recorded, else that of its signature, else its digest.
func newTargetRelease(t imageset.Target, name, architecture string, source imageset.Ref, rec *workdir.Record,
	files *releaseFiles) targetRelease {
	source.Tag = cmp.Or(tagOfRecord(rec, source.Digest), files.tagOfSignature(source.Digest))
	tag := source.Tag
	if tag == "" || tag == source.Digest.Encoded() {
		source.Tag, tag = "", source.Digest.Encoded()
	}
	return targetRelease{name, architecture, source, t.ReleaseImages(tag)}
}

func tagOfRecord(rec *workdir.Record, d digest.Digest) string {
	for _, one := range rec.Releases {
		if one.Digest == d {
			return one.Destination.Tag
		}
	}
	return ""
}

// tagOfSignature returns the tag in the name of the file with a signature; empty if there is none.
func (f *releaseFiles) tagOfSignature(d digest.Digest) string {
	entries, err := fs.ReadDir(f.sub(signaturesDir), ".")
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if tag, ok := strings.CutSuffix(e.Name(), "-"+imageset.DigestTag(d)); ok {
			return tag
		}
	}
	return ""
}

// signedAs returns the digest in the name of the file with the signature of a tag; empty unless there is one.
func (f *releaseFiles) signedAs(tag string) (found digest.Digest) {
	entries, err := fs.ReadDir(f.sub(signaturesDir), ".")
	if err != nil {
		return ""
	}
	for _, e := range entries {
		hex, ok := strings.CutPrefix(e.Name(), tag+"-"+digest.SHA256.String()+"-")
		if d := digest.NewDigestFromEncoded(digest.SHA256, hex); ok && d.Validate() == nil {
			if found != "" {
				return ""
			}
			found = d
		}
	}
	return found
}

// read returns what a release names: as its image at the target says, else as the workspace has it.
func (r *targetRelease) read(ctx context.Context, remote *registries.Client, w *Workspace) (*payload.Payload, error) {
	to, err := remote.Repository(r.dest.Repository())
	if err != nil {
		return nil, err
	}
	top, err := to.Head(ctx, r.source.Digest.String())
	if err == nil {
		return payload.Read(ctx, to, top)
	}
	if !errors.Is(err, fs.ErrNotExist) || w == nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, name := range []string{payload.References, payload.BootImages} {
		text, err := w.files().Read(append(strings.Split(releaseDir(r.source), "/"), name)...)
		if err == nil && text != nil {
			files[name] = text
		}
	}
	if files[payload.References] == nil {
		return nil, err
	}
	return payload.Parse(files)
}

// releaseDir is the directory of a workspace with the files of a release image.
func releaseDir(source imageset.Ref) string {
	if source.Tag == "" {
		return path.Join("hold-release", path.Base(source.Path)+"@sha256", source.Digest.Encoded(), payload.Dir)
	}
	return path.Join("hold-release", path.Base(source.Path), source.Tag, payload.Dir)
}

// addReleases adds the releases that an image set names, with their components.
func addReleases(ctx context.Context, o *DeleteOptions, rec *workdir.Record,
	wanted map[string]DeleteItem) error {
	p := &o.Set.Platform
	all, err := knownReleases(ctx, &o.Options, rec)
	if err != nil {
		return fmt.Errorf("releases: %w", err)
	}
	for _, one := range all {
		name := one.source
		if name.Tag != "" {
			name.Digest = "" // as oc-mirror names it
		}
		wanted[one.dest.String()] = DeleteItem{Name: name.String(), Reference: one.dest.String(), Type: Release,
			Digest: one.source.Digest}
		names, err := one.read(ctx, o.Remote, o.Workspace)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("release %s: it is not at %s, and the workspace does not have what it names: %w", one.name,
				one.dest.Name(), err)
		}
		if err != nil {
			return fmt.Errorf("release %s: %w", one.name, err)
		}
		list, _ := componentsOf(p, one.architecture, names)
		for _, c := range list {
			to := o.Target.ReleaseContent(one.dest.Tag, c.Name).String()
			wanted[to] = DeleteItem{Name: strings.TrimPrefix(c.Image.String(), "docker://"), Reference: to, Type: ReleaseContent}
		}
	}
	if p.Graph {
		at := o.Target.GraphImage().String()
		wanted[at] = DeleteItem{Name: onMedium.GraphImage().String(), Reference: at, Type: Graph}
	}
	return nil
}
