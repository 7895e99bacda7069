package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// finishArchive adds what oc-mirror looks for if the archive has its form, the sources of the catalogs, and the description,
// and writes the history of what was carried. An archive that would lack too much is not written.
func (r *run) finishArchive(ctx context.Context) error {
	out := r.places.output
	unpublished := r.o.Shard.Count == 0 && slices.ContainsFunc(r.found.catalogs,
		func(c *catalog) bool { return !c.account.Published })
	failed := slices.ContainsFunc(r.found.items.list, (*item).failed) || r.found.graph != nil && r.found.graph.cause != nil
	if unpublished || r.o.OnMissing == FailMissing && failed {
		// An older archive stays as it is, and what was fetched is there for the next run.
		r.report.problem(filter.Failure, r.o.Archive, "", "no archive is written, since not all that it is to hold is available")
		return nil
	}
	// The sources of catalogs never reach the target: a history that had them would leave them out of later archives.
	had := out.Had()
	for _, c := range r.found.catalogs {
		if c.asIs || c.digest == "" || r.o.Shard.Count > 0 {
			continue
		}
		if err := r.copyItem(ctx, r.sourceItem(c)); err != nil {
			return fmt.Errorf("source catalog %s: %w", c.name, err)
		}
	}
	if err := r.addKeptFiles(ctx); err != nil {
		return err
	}
	if err := r.addPinned(ctx); err != nil {
		return err
	}
	if r.o.Medium.Form == medium.OCMirror {
		if err := r.addOCMirrorFiles(ctx); err != nil {
			return err
		}
	}
	about, err := r.describeArchive()
	if err != nil {
		return err
	}
	done, err := out.Finish(ctx, *about)
	if err != nil {
		return err
	}
	if len(done.Kept) > 0 {
		r.report.log.info(fmt.Sprintf("the archive that was in %s stays, and the new segments follow it: carry it, too, unless the other side has "+
			"what is in it", r.o.Archive))
	}
	for _, s := range done.Segments {
		r.report.account.Archives = append(r.report.account.Archives, archiveAccount{s.Name, s.Bytes, s.SHA256})
	}
	if r.o.isPart() {
		return nil // an archive that is written again must not count on itself
	}
	_, err = r.places.other.history.WriteNext(r.o.Workspace.Dir(), r.o.Now, had)
	return err
}

func (r *run) describeArchive() (*medium.Contents, error) {
	about := &medium.Contents{Program: version.Program(), ImageSet: string(r.o.Set.PublicText()), Created: &r.o.Now,
		Parts: r.o.PublishOnly, TrustedRoot: string(r.o.TrustedRoot)}
	if r.o.Shard.Count > 0 {
		about.Part = r.o.Shard.String()
	}
	for _, i := range r.found.items.list {
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
			Attached: i.result().attached, AtTarget: r.places.other.hasImage(i)})
	}
	if g := r.found.graph; g != nil && g.isThere() {
		about.Images = append(about.Images, medium.Image{Source: "graph-data", Path: g.destination.Path, Tag: g.destination.Tag,
			Digest: g.account.Digest, Category: string(Graph)})
	}
	for _, c := range r.found.catalogs {
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
			Filter: c.account.FilterHash, Path: c.image.destination.Path, Tag: c.image.destination.Tag, Digest: c.account.DestinationDigest,
			Packages: packages, Missing: c.account.Missing})
	}
	slices.SortFunc(about.Images, func(a, b medium.Image) int {
		return strings.Compare(a.Path+":"+a.Tag+a.Source, b.Path+":"+b.Tag+b.Source)
	})
	account := *r.report.account
	account.Images = nil
	var err error
	about.Account, err = json.Marshal(account)
	return about, err
}

// addFile adds a file of the run to the archive.
func (r *run) addFile(ctx context.Context, name string, text []byte) error {
	return r.places.output.AddFile(ctx, name, int64(len(text)), bytes.NewReader(text))
}

// addPinned adds the pinned configurations, from which the other side deletes what the archive brings.
func (r *run) addPinned(ctx context.Context) error {
	if r.o.Shard.Count > 0 {
		return nil // the archive with the catalogs has them
	}
	files, err := r.pinnedFiles()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := r.addFile(ctx, path.Join(workingDir, f.name), f.text); err != nil {
			return err
		}
	}
	return nil
}
