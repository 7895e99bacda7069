package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// mediumTarget writes to a medium.
type mediumTarget struct{ writer *medium.Writer }

func (t mediumTarget) repository(ref imageset.Ref) (repository, error) {
	return t.writer.Repository(ref.Path), nil
}

// openWriter begins the medium, or goes on with one of the same image set and catalogs.
func (r *run) openWriter(ctx context.Context) (err error) {
	o := r.o.Medium
	o.Key = r.mediumKey(r.partName())
	o.Keep = true
	o.Beside = r.besideCounts()
	if o.SegmentBytes == 0 {
		o.SegmentBytes = r.o.Set.SegmentSize() << 30
	}
	if err := r.setHave(&o); err != nil {
		return err
	}
	if r.writer, err = medium.Create(ctx, r.o.Archive, o); err != nil {
		return err
	}
	if n := r.writer.Resumed(); n > 0 {
		r.log.info(fmt.Sprintf("going on with the unfinished archive: %d bytes are there", n))
	}
	r.to = mediumTarget{r.writer}
	return nil
}

// besideCounts tells whether the archive leaves out what the one in its directory has.
func (r *run) besideCounts() bool { return !r.o.All && r.o.Since.IsZero() && r.o.Against == nil }

// mediumKey identifies what the medium is to hold, so that an interrupted run is continued by the same only. A
// catalog that moved meanwhile leaves blobs that no image has any more; all else is there. The part is that of a
// divided image set; empty for all of it.
func (r *run) mediumKey(part string) string {
	h := digest.SHA256.Digester()
	h.Hash().Write(r.o.Set.Text)
	if r.o.Against != nil {
		fmt.Fprintf(h.Hash(), "\nagainst %s", r.o.AgainstDigest)
	}
	if part != "" {
		fmt.Fprintf(h.Hash(), "\npart %s with %v %s", part, r.o.With, r.o.Sparse)
	}
	return h.Digest().String()
}

// setHave says what the other side has: by the inventory, or by what earlier media carried.
func (r *run) setHave(o *medium.Options) error {
	switch {
	case r.o.Against != nil:
		o.Have, o.Where, r.have = r.o.Against.Have, r.hasAt, r.o.Against.Have
		return nil
	case r.o.All, r.divided():
		return nil
	}
	h, err := medium.ReadHistory(regularfile.FS(r.o.Workspace.Dir()), r.o.Since)
	if err != nil || h.Time.IsZero() {
		return err
	}
	r.log.info(fmt.Sprintf("leaving out what earlier archives carried, up to that of %s; with --all nothing is "+
		"left out",
		pinnedTime(h.Time)))
	r.earlier, o.Have, o.Where, o.Since, r.have = h, h.Has, h.Where, &h.Time, h.Has
	return nil
}

// known tells whether the target is known to have an image, so that the medium need not carry it.
func (r *run) known(i *item) bool {
	if r.writer == nil && !(r.o.DryRun && r.o.Mode == ToDisk) || r.o.Against == nil || i.source.Digest == "" ||
		i.kind == Catalog {
		return false
	}
	at := r.againstPlace().Image(i.source)
	if i.kind == Additional {
		at = i.destination
	}
	return r.o.Against.Tag(at.Path, at.Tag) == i.source.Digest
}

// againstPlace gives the names that an inventory has: those at its target, below its path.
func (r *run) againstPlace() imageset.Target {
	return imageset.Target{MaxNestedPaths: r.o.Target.MaxNestedPaths}
}

// finishMedium completes the medium: what the peer's form needs in addition, the description, the history.
func (r *run) finishMedium(ctx context.Context) error {
	if r.writer == nil {
		return nil
	}
	unpublished := r.o.Shard.Count == 0 && slices.ContainsFunc(r.catalogs,
		func(c *catalog) bool { return !c.account.Published })
	if unpublished || r.o.OnMissing == FailMissing && slices.ContainsFunc(r.items.list, (*item).failed) {
		// An older archive stays as it is, and what was fetched is there for the next run.
		r.problem(Fault, r.o.Archive, "", "no archive is written, since not all that it is to hold is available")
		return nil
	}
	// The sources of catalogs never reach the target: a history that had them would leave them out of later archives.
	had := r.writer.Had()
	for _, c := range r.catalogs {
		if c.asIs || c.digest == "" || r.o.Shard.Count > 0 {
			continue
		}
		if err := r.addSourceCatalog(ctx, c); err != nil {
			return fmt.Errorf("source catalog %s: %w", c.name, err)
		}
	}
	if r.o.Medium.Form == medium.OCMirror {
		if err := r.addPeerFiles(ctx); err != nil {
			return err
		}
	}
	about, err := r.contents()
	if err != nil {
		return err
	}
	done, err := r.writer.Finish(ctx, *about)
	if err != nil {
		return err
	}
	if len(done.Kept) > 0 {
		r.log.info(fmt.Sprintf("the archive that was in %s stays, and the new segments follow it: carry all of them",
			r.o.Archive))
	}
	for _, s := range done.Segments {
		r.account.Archives = append(r.account.Archives, ArchiveAccount{s.Name, s.Bytes, s.SHA256})
	}
	if r.divided() {
		return nil // an archive that is written again must not count on itself
	}
	_, err = medium.WriteHistory(r.o.Workspace.Dir(), r.o.Now, r.earlier, had)
	return err
}

// contents describes the medium.
func (r *run) contents() (*medium.Contents, error) {
	about := &medium.Contents{Program: version.Program(), ImageSet: string(r.o.Set.Text), Created: &r.o.Now,
		Parts: r.o.PublishOnly}
	if r.o.Shard.Count > 0 {
		about.Part = r.o.Shard.String()
	}
	for _, i := range r.items.list {
		if i.account.Status == Blocked {
			continue
		}
		if i.failed() {
			about.Lacking = append(about.Lacking, medium.Lack{Name: i.source.String(), Reason: i.account.Error,
				Needed: i.account.Bundles})
			continue
		}
		if r.o.PublishOnly && i.account.Status != Copied {
			continue // a part has it
		}
		about.Images = append(about.Images, medium.Image{Source: i.source.String(), Path: i.destination.Path,
			Tag: i.destination.Tag, Digest: i.account.Digest, Bytes: i.account.Bytes, Category: string(i.kind),
			Attached: i.state.attached, AtTarget: r.known(i)})
	}
	for _, c := range r.catalogs {
		if r.o.Shard.Count > 0 {
			break
		}
		packages := map[string]map[string][]string{}
		for name, p := range c.account.Packages {
			packages[name] = p.Channels
		}
		var leftOut []string
		for _, l := range c.account.LeftOut {
			leftOut = append(leftOut, l.Package+"/"+l.Bundle)
		}
		about.Catalogs = append(about.Catalogs, medium.Catalog{LeftOut: leftOut, Source: c.op.Written, SourceDigest: c.digest,
			Filter: c.account.FilterHash, Path: c.dest.Path, Tag: c.dest.Tag, Digest: c.account.DestinationDigest,
			Packages: packages, Missing: c.account.Missing})
	}
	slices.SortFunc(about.Images, func(a, b medium.Image) int {
		return strings.Compare(a.Path+":"+a.Tag+a.Source, b.Path+":"+b.Tag+b.Source)
	})
	account := *r.account
	account.Images = nil
	var err error
	about.Account, err = json.Marshal(account)
	return about, err
}

// addPeerFiles adds what oc-mirror looks for: the configuration, its version, and of each rebuilt catalog the digest.
func (r *run) addPeerFiles(ctx context.Context) error {
	for _, c := range r.catalogs {
		if c.asIs || c.digest == "" {
			continue
		}
		if err := r.addCatalogFiles(ctx, c, c.account.DestinationDigest); err != nil {
			return err
		}
	}
	add := func(name string, text []byte) error {
		return r.writer.AddFile(ctx, name, int64(len(text)), bytes.NewReader(text))
	}
	about, err := json.MarshalIndent(map[string]string{"gitVersion": version.Program(), "gitCommit": ""}, "", "  ")
	if err != nil {
		return err
	}
	if err := add("working-dir/internal/oc-mirror-version.json", append(about, '\n')); err != nil {
		return err
	}
	return add("isc_"+fileTime(r.o.Now), r.o.Set.Text)
}

// addSourceCatalog copies the image that a catalog was read from to the medium, with its signatures: the other side can
// verify it, and filter it again.
func (r *run) addSourceCatalog(ctx context.Context, c *catalog) (err error) {
	at := r.sourceOnMedium(c)
	from, err := r.o.Images.OpenUnverified(ctx, c.name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := r.to.repository(at)
	if err != nil {
		return err
	}
	_, err = store.CopyOne(ctx, from.Reader, from.Top, to, at.Tag, store.CopyOptions{
		Attach: func(ctx context.Context, to store.Writer, image store.Image) error {
			_, err := r.attach(ctx, from.Reader, to, image)
			return err
		}})
	return err
}

// addCatalogFiles adds what oc-mirror compares before it filters a catalog again: the digest of the rebuilt one.
func (r *run) addCatalogFiles(ctx context.Context, c *catalog, rebuilt digest.Digest) error {
	name := path.Join("working-dir", "operator-catalogs", path.Base(c.op.Catalog.Path), c.digest.Encoded(),
		"filtered-catalogs", c.account.FilterHash, "digest")
	text := rebuilt.Encoded()
	return r.writer.AddFile(ctx, name, int64(len(text)), strings.NewReader(text))
}

// hasAt returns a repository of the target, by the inventory, that has a blob or manifest.
func (r *run) hasAt(d digest.Digest) []string {
	for _, name := range r.o.Against.Repositories() {
		if r.o.Against.HaveBlob(name, d) || r.o.Against.HaveManifest(name, d) {
			return []string{name}
		}
	}
	return nil
}
