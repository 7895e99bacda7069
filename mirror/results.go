package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/yamlout"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
	"github.com/operator-bindery/bindery/mirror/resources"
)

// writeResults writes the files for clusters, the pinned configurations, the list of errors and the record of what was
// mirrored.
func (r *run) writeResults(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if r.o.Mode != ToDisk && r.o.Shard.Count == 0 {
		dir, err := r.o.Workspace.Resources()
		if err != nil {
			return err
		}
		if err := r.writeResources(ctx, dir); err != nil {
			return err
		}
		if err := r.writeRecord(); err != nil {
			return err
		}
	}
	if err := r.writePinned(); err != nil {
		return err
	}
	return r.writeErrors()
}

// mirrored lists what is at the target, for the files for clusters.
func (r *run) mirrored() []resources.Copied {
	var out []resources.Copied
	for _, i := range r.found.items.list {
		if !i.isThere() && !(r.o.DryRun && i.account.Status != Blocked) {
			continue
		}
		if i.ofRelease() && i.release.isLeftOut(r.o.DryRun) {
			continue // what it names may be there, but no cluster can be installed with it
		}
		one := resources.Copied{Source: i.source, Destination: i.destination, Additional: i.kind == Additional || i.kind == ChartImage,
			Release: i.ofRelease()}
		out = append(out, one)
		if i.kind == Release && i.release.signature != nil && !i.release.signature.Reference.IsZero() {
			// A release that is read elsewhere is pulled by the name that the vendor has given it.
			if one.Source = i.release.signature.Reference; one.Source.Repository() != i.source.Repository() {
				one.Source.Digest = i.source.Digest
				out = append(out, one)
			}
		}
	}
	for _, c := range r.found.catalogs {
		if !c.account.Published && !r.o.DryRun {
			continue
		}
		out = append(out, resources.Copied{Source: c.op.Catalog, Destination: c.image.destination, Catalog: true,
			Digest: c.account.DestinationDigest, ByDigest: c.tagKept, Template: c.template})
	}
	return out
}

// writeResources writes the files for clusters. Unless all catalogs are published, files of earlier runs stay: those of
// a catalog that is not published are about the one that is at the target.
func (r *run) writeResources(ctx context.Context, dir string) error {
	o := r.o.Resources
	o.CreatedAt, o.Nested = r.o.Now, r.o.Target.MaxNestedPaths > 0
	r.addReleaseResources(&o)
	made, warnings, err := o.Make(r.mirrored())
	if err != nil {
		return err
	}
	for _, text := range warnings {
		r.report.problem(filter.Warning, "", "", "%s", text)
	}
	keep := !r.o.DryRun && (slices.ContainsFunc(slices.Concat(r.found.catalogs, r.found.absent),
		func(c *catalog) bool { return !c.account.Published }) || slices.ContainsFunc(r.found.releases,
		func(one *release) bool { return !one.account.Published }) || r.found.graph != nil && r.found.graph.cause != nil)
	if _, err := resources.Write(ctx, dir, made, keep); err != nil {
		return err
	}
	for _, f := range made {
		r.report.account.Resources = append(r.report.account.Resources, filepath.Join(dir, f.Name))
	}
	return nil
}

// addReleaseResources adds the signatures of the releases that are at the target, and the graph image.
func (r *run) addReleaseResources(o *resources.Options) {
	there := 0
	for _, one := range r.found.releases {
		if one.isLeftOut(r.o.DryRun) || one.isBlocked() {
			continue
		}
		there++
		if s := one.signature; s != nil {
			if o.Signatures == nil {
				o.Signatures = map[digest.Digest][][]byte{}
			}
			o.Signatures[s.Digest] = [][]byte{s.Text}
		}
	}
	g := r.found.graph
	switch {
	case g == nil || !g.isThere() && !r.o.DryRun:
	case there == 0 && len(r.found.releases) > 0:
	case there == 0:
		r.report.problem(filter.Warning, "", "", "no UpdateService is written: the image set names no release beside the graph")
	default:
		o.Releases, o.GraphData = r.o.Target.ReleaseImages(""), g.destination
		if r.o.Releases.PinGraph && g.account.Digest != "" {
			o.GraphData.Tag, o.GraphData.Digest = "", g.account.Digest
		}
	}
}

// pinnedReleases are the versions that channels are pinned to: of those that have chosen one version only.
func (r *run) pinnedReleases() map[string]string {
	out := map[string]string{}
	if !r.o.Releases.Pin {
		return out
	}
	for _, one := range r.found.releases {
		c := one.chosen
		if was, again := out[c.Channel]; again && was != c.Version {
			c.Version = ""
		}
		out[c.Channel] = c.Version
	}
	return out
}

// pinnedChart returns the function that gives the version of a chart that its rule has chosen; nil where rules stay as they are,
// as oc-mirror leaves them.
func (r *run) pinnedChart() func(*imageset.ChartRepository, *imageset.Chart) string {
	if r.o.Charts.Compat {
		return nil
	}
	return func(of *imageset.ChartRepository, asked *imageset.Chart) string {
		for _, c := range r.found.charts {
			if c.failed == nil && c.repository == of.URL && c.asked.Name == asked.Name && c.asked.Version == asked.Version {
				return c.account.Version
			}
		}
		return ""
	}
}

// writeFile writes a file of the workspace and adds it to the account.
func (r *run) writeFile(text []byte, parts ...string) error {
	path, err := r.o.Workspace.Write(text, parts...)
	if err == nil {
		r.report.account.Files = append(r.report.account.Files, path)
	}
	return err
}

// namedText is a file of the workspace.
type namedText struct {
	name string
	text []byte
}

// pinnedFiles are the image set with the digests that the catalogs had, for later runs and for deleting, and which
// releases were chosen, by channel.
func (r *run) pinnedFiles() (out []namedText, err error) {
	if r.o.Set.Kind != imageset.Image || len(r.o.Set.Text) == 0 {
		return nil, nil
	}
	if out, err = r.chosenReleases(); err != nil {
		return nil, err
	}
	digests := func(op imageset.Operator) digest.Digest {
		for _, c := range r.found.catalogs {
			if c.op.Line == op.Line && c.op.Written == op.Written {
				return c.digest
			}
		}
		return ""
	}
	for _, of := range []struct {
		name string
		kind imageset.Kind
	}{{"isc", imageset.Image}, {"disc", imageset.Delete}} {
		text, file := r.o.Set.Pinned(of.kind, digests, r.pinnedReleases(), r.pinnedChart()), of.name+"_pinned_"+fileTime(r.o.Now)+".yaml"
		if len(text) > imageset.MaxConfig {
			r.report.problem(filter.Warning, r.o.Config, "divide the image set", "%s is not written: with digests it has %d "+
				"bytes, more than are read of an image set (%d)", file, len(text), imageset.MaxConfig)
			continue
		}
		out = append(out, namedText{file, text})
	}
	return out, nil
}

// chosenReleases is a file with the releases that were chosen, by channel; none if there are none.
func (r *run) chosenReleases() ([]namedText, error) {
	type pinned struct {
		Version      string        `json:"version"`
		Architecture string        `json:"architecture"`
		Digest       digest.Digest `json:"digest"`
	}
	channels := map[string][]pinned{}
	for _, one := range r.found.releases {
		if c := one.chosen; c.Channel != "" && one.failed == nil {
			channels[c.Channel] = append(channels[c.Channel], pinned{c.Version, c.Architecture, one.account.Digest})
		}
	}
	if len(channels) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(map[string]any{"channels": channels})
	if err == nil {
		text, err = yamlout.AppendYAML(nil, text)
	}
	return []namedText{{"releases_pinned_" + fileTime(r.o.Now) + ".yaml", text}}, err
}

// writePinned writes the pinned configurations to the workspace: those of the run, or those that an archive has.
func (r *run) writePinned() error {
	if r.o.Mode == FromDisk {
		return r.copyPinned(r.places.input.reader.Files())
	}
	files, err := r.pinnedFiles()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := r.writeFile(f.text, f.name); err != nil {
			return err
		}
	}
	slices.Sort(r.report.account.Files)
	return nil
}

// maxPinned is how many pinned configurations of an archive are copied to the workspace.
const maxPinned = 200

// copyPinned copies the pinned configurations in an archive to the workspace. A file that is there stays.
func (r *run) copyPinned(files fs.FS) error {
	names, err := fs.Glob(files, path.Join(workingDir, "*_pinned_*.yaml"))
	if err != nil {
		return err
	}
	if len(names) > maxPinned {
		return fmt.Errorf("the archive has %d pinned configurations, %w: more than %d", len(names), fault.ErrLimit, maxPinned)
	}
	for _, name := range names {
		base := path.Base(name)
		if kind, _, _ := strings.Cut(base, "_"); !slices.Contains([]string{"isc", "disc", "releases"}, kind) {
			continue
		}
		info, err := fs.Stat(files, name)
		if err != nil {
			return err
		}
		if info.Size() > imageset.MaxConfig {
			return fmt.Errorf("%s in the archive: %w: more than %d bytes", name, fault.ErrLimit, imageset.MaxConfig)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		there, err := r.o.Workspace.files().Read(base)
		switch {
		case err != nil:
			return err
		case there == nil:
			err = r.writeFile(text, base)
		case !bytes.Equal(there, text):
			r.report.problem(filter.Warning, base, "", "it is in the workspace with other content than in the archive, and stays")
		}
		if err != nil {
			return err
		}
	}
	slices.Sort(r.report.account.Files)
	return nil
}

// writeErrors writes the list of images that failed, if there are any, where oc-mirror writes it.
func (r *run) writeErrors() error {
	if !slices.ContainsFunc(r.found.items.list, (*item).failed) {
		return nil
	}
	path, err := r.o.Workspace.dir.WriteLines(func(yield func([]byte) bool) {
		for _, i := range r.found.items.list {
			if i.failed() && !yield(i.errorLine()) {
				return
			}
		}
	}, "logs", "mirroring_errors_"+logTime(r.o.Now)+".txt")
	if err == nil {
		r.report.account.Files = append(r.report.account.Files, path)
	}
	return err
}

// errorLine says why an image failed, as oc-mirror does.
func (i *item) errorLine() []byte {
	name := i.source.String()
	if i.kind == Additional || i.kind == ChartImage {
		name = strings.TrimPrefix(name, "docker://") // as oc-mirror names what the configuration names
	}
	line := "error mirroring image " + name
	if len(i.account.Bundles) > 0 {
		line += fmt.Sprintf(" (Operator bundles: [%s] - Operators: [%s])", strings.Join(i.account.Bundles, " "),
			strings.Join(i.account.Packages, " "))
	}
	line += " error: " + strings.ReplaceAll(i.account.Error, "\n", "; ")
	return append([]byte(redact.Text(line)), '\n')
}

// writeRecord adds what is published to the record.
func (r *run) writeRecord() error {
	rec, err := workdir.ReadRecord(r.o.Workspace.files(), r.o.Target)
	if err != nil {
		return err
	}
	rec.MaxNestedPaths = r.o.Target.MaxNestedPaths
	for _, c := range r.found.catalogs {
		if !c.account.Published {
			continue
		}
		rec.Catalogs = workdir.Put(rec.Catalogs, workdir.Published{Source: c.op.Catalog.Name(),
			Destination: c.image.destination, Digest: c.account.DestinationDigest})
	}
	for _, one := range r.found.releases {
		if one.account.Published {
			rec.Releases = workdir.Put(rec.Releases, workdir.Published{Source: one.account.Source,
				Destination: one.image.destination, Digest: one.account.Digest})
		}
	}
	for _, c := range r.found.charts {
		if one := c.record(); one != nil {
			rec.Charts = workdir.PutChart(rec.Charts, *one)
		}
	}
	for _, i := range r.found.items.list {
		if i.kind != Additional || !i.isThere() {
			continue
		}
		one := workdir.RecordedImage{Source: i.source, Destination: i.destination}
		if !slices.Contains(rec.Images, one) {
			rec.Images = append(rec.Images, one)
		}
	}
	slices.SortFunc(rec.Images, func(a, b workdir.RecordedImage) int {
		return strings.Compare(a.Destination.String(), b.Destination.String())
	})
	return rec.Write(r.o.Workspace.files(), r.o.Target)
}
