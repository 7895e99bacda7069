package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/resources"
)

// writeResults writes what a run leaves in the workspace: the files for clusters, the pinned configurations, the list
// of errors and the record of what was mirrored.
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
	if r.o.Mode != FromDisk && r.o.Set.Kind == imageset.Image && len(r.o.Set.Text) > 0 {
		if err := r.writePinned(); err != nil {
			return err
		}
	}
	return r.writeErrors()
}

// mirrored lists what is at the target, for the files for clusters.
func (r *run) mirrored() []resources.Copied {
	var out []resources.Copied
	for _, i := range r.items.list {
		if i.account.Status != Copied && i.account.Status != Present && !(r.o.DryRun && i.account.Status != Blocked) {
			continue
		}
		category := resources.Operator
		if i.kind == Additional {
			category = resources.Generic
		}
		out = append(out, resources.Copied{Source: i.source, Destination: i.destination, Category: category})
	}
	for _, c := range r.catalogs {
		if !c.account.Published && !r.o.DryRun {
			continue
		}
		out = append(out, resources.Copied{Source: c.op.Catalog, Destination: c.dest, Category: resources.Operator,
			Catalog: true, Digest: c.account.DestinationDigest, ByDigest: c.tagKept, Template: c.template})
	}
	return out
}

// writeResources writes the files for clusters. Unless all catalogs are published, files of earlier runs stay: those of
// a catalog that is not published are about the one that is at the target.
func (r *run) writeResources(ctx context.Context, dir string) error {
	o := r.o.Resources
	o.CreatedAt, o.Nested = r.o.Now, r.o.Target.MaxNestedPaths > 0
	set, err := resources.Make(r.mirrored(), o)
	if err != nil {
		return err
	}
	for _, text := range set.Warnings {
		r.problem(Warning, "", "", "%s", text)
	}
	files := set.Files
	if !r.o.DryRun && slices.ContainsFunc(slices.Concat(r.catalogs, r.absent), func(c *catalog) bool { return !c.account.Published }) {
		stale, err := resources.Stale(dir, files)
		if err != nil {
			return err
		}
		for _, name := range stale {
			text, err := regularfile.Read(filepath.Join(dir, name), resources.MaxFile)
			if err != nil {
				return err
			}
			files = append(files, resources.File{Name: name, Data: text})
		}
	}
	if _, err := resources.Write(ctx, dir, files); err != nil {
		return err
	}
	for _, f := range set.Files {
		r.account.Resources = append(r.account.Resources, filepath.Join(dir, f.Name))
	}
	return nil
}

// writePinned writes the image set with the digests that the catalogs had, for later runs and for deleting.
func (r *run) writePinned() error {
	digests := func(op imageset.Operator) digest.Digest {
		for _, c := range r.catalogs {
			if c.op.Line == op.Line && c.op.Written == op.Written {
				return c.digest
			}
		}
		return ""
	}
	for name, kind := range map[string]imageset.Kind{"isc": imageset.Image, "disc": imageset.Delete} {
		text, file := r.o.Set.Pinned(kind, digests), name+"_pinned_"+fileTime(r.o.Now)+".yaml"
		if len(text) > imageset.MaxConfig {
			r.problem(Warning, r.o.Config, "divide the image set", "%s is not written: with digests it has %d bytes, more "+
				"than are read of an image set (%d)", file, len(text), imageset.MaxConfig)
			continue
		}
		path, err := r.o.Workspace.Write(text, file)
		if err != nil {
			return err
		}
		r.account.Files = append(r.account.Files, path)
	}
	slices.Sort(r.account.Files)
	return nil
}

// writeErrors writes the list of images that failed, if there are any (MIRROR 13.3).
func (r *run) writeErrors() error {
	var b strings.Builder
	for _, i := range r.items.list {
		if !i.failed() {
			continue
		}
		name := i.source.String()
		if i.kind == Additional {
			name = strings.TrimPrefix(name, "docker://") // as oc-mirror names what the configuration names
		}
		fmt.Fprintf(&b, "error mirroring image %s", name)
		if len(i.account.Bundles) > 0 {
			fmt.Fprintf(&b, " (Operator bundles: [%s] - Operators: [%s])", strings.Join(i.account.Bundles, " "),
				strings.Join(i.account.Packages, " "))
		}
		fmt.Fprintf(&b, " error: %s\n", strings.ReplaceAll(i.account.Error, "\n", "; "))
	}
	if b.Len() == 0 {
		return nil
	}
	path, err := r.o.Workspace.Write([]byte(redact.Text(b.String())), "logs", "mirroring_errors_"+stamp(r.o.Now)+".txt")
	if err == nil {
		r.account.Files = append(r.account.Files, path)
	}
	return err
}

// record is what runs have mirrored to a target, by catalog: what deleting compares with. It is kept in the workspace.
type record struct {
	Version  int             `json:"version"`
	Target   string          `json:"target"`
	Catalogs []recordCatalog `json:"catalogs"`
	Images   []recordImage   `json:"additionalImages,omitempty"`
	found    bool            // it was read
}

type recordCatalog struct {
	Source      string        `json:"source"`
	Destination string        `json:"destination"`
	Digest      digest.Digest `json:"digest"`
}

type recordImage struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
}

const recordVersion = 1

// recordName is the file of a target's record.
func recordName(target string) string {
	return ".mirrored-" + digest.FromString(target).Encoded()[:16] + ".json"
}

// recordNames match the files of records.
const recordNames = ".mirrored-*.json"

// ErrNoRecord is the class of errors about a workspace from which nothing was mirrored to a target.
var ErrNoRecord = fault.New(fault.Usage, "no record")

// readRecords reads what was mirrored from a workspace to a registry. Whatever name the registry had then, it has that of
// host in the result. Records of other registries are left out.
func readRecords(w *Workspace, host string) (out []*record, err error) {
	if w == nil {
		return nil, nil
	}
	files, err := os.ReadDir(w.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no run has used it
	}
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		name := file.Name()
		if ok, _ := filepath.Match(recordNames, name); !ok {
			continue
		}
		text, err := w.read(name)
		if err != nil {
			return nil, err
		}
		rec := &record{}
		if err := json.Unmarshal(text, rec); err != nil || rec.Version != recordVersion {
			return nil, fmt.Errorf("%s: not a record of this program's version: %v; remove it to go on without it",
				filepath.Join(w.dir, name), err)
		}
		of, path, slash := strings.Cut(rec.Target, "/")
		if name != recordName(rec.Target) {
			return nil, fmt.Errorf("%s: %w: it is of %s, which is not at %s, by its content, and of another target by its "+
				"name; remove it to go on without it", filepath.Join(w.dir, name), fault.ErrInvalid,
				fault.Quote(rec.Target), host)
		}
		if !imageset.SameHost(of, host) {
			continue
		}
		called := rec.Target
		if rec.Target = host; slash {
			rec.Target += "/" + path
		}
		if err := rec.moveTo(host); err != nil {
			return nil, fmt.Errorf("%s: %w; remove it to go on without it", filepath.Join(w.dir, name), err)
		}
		if called == rec.Target {
			out = slices.Insert(out, 0, rec) // it is the one that runs with this name write
		} else {
			out = append(out, rec)
		}
	}
	return out, nil
}

// moveTo gives what is recorded the name by which a command knows the registry. The error is about a record that names
// another one: a workspace may come from elsewhere, and no host is asked because it names it.
func (rec *record) moveTo(host string) error {
	move := func(at *string) error {
		here, ok := atHost(*at, host)
		if !ok {
			return fmt.Errorf("%w: it names %s, which is not at %s", fault.ErrInvalid, fault.Quote(*at), host)
		}
		*at = here
		return nil
	}
	var errs []error
	for i := range rec.Catalogs {
		errs = append(errs, move(&rec.Catalogs[i].Destination))
	}
	for i := range rec.Images {
		errs = append(errs, move(&rec.Images[i].Destination))
	}
	return errors.Join(errs...)
}

// atHost gives a reference the name by which a command knows the registry. It is false for another registry.
func atHost(reference, host string) (string, bool) {
	ref, err := imageset.ParseRef(reference)
	if err != nil || !ref.InRegistry() || !imageset.SameHost(ref.Host, host) {
		return "", false
	}
	ref.Host = host
	return ref.String(), true
}

// readRecord returns what was mirrored from the workspace to a target; an empty record if there is nothing.
func readRecord(w *Workspace, t imageset.Target) (*record, error) {
	all, err := readRecords(w, t.Host)
	if err != nil {
		return nil, err
	}
	out := &record{Version: recordVersion, Target: t.String()}
	for _, rec := range all {
		if rec.Target != out.Target {
			continue
		}
		out.found = true
		for _, c := range rec.Catalogs {
			if !slices.ContainsFunc(out.Catalogs, func(o recordCatalog) bool { return o.Destination == c.Destination }) {
				out.Catalogs = append(out.Catalogs, c)
			}
		}
		for _, i := range rec.Images {
			if !slices.Contains(out.Images, i) {
				out.Images = append(out.Images, i)
			}
		}
	}
	return out, nil
}

func (rec *record) write(w *Workspace, t imageset.Target) error {
	text, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'), recordName(t.String()))
	return err
}

// writeRecord adds what is published to the record.
func (r *run) writeRecord() error {
	rec, err := readRecord(r.o.Workspace, r.o.Target)
	if err != nil {
		return err
	}
	for _, c := range r.catalogs {
		if !c.account.Published {
			continue
		}
		rec.Catalogs = slices.DeleteFunc(rec.Catalogs, func(o recordCatalog) bool {
			return o.Destination == c.account.Destination
		})
		rec.Catalogs = append(rec.Catalogs, recordCatalog{c.op.Catalog.Name(), c.account.Destination,
			c.account.DestinationDigest})
	}
	for _, i := range r.items.list {
		if i.kind != Additional || i.account.Status != Copied && i.account.Status != Present {
			continue
		}
		one := recordImage{i.source.String(), i.destination.String()}
		if !slices.Contains(rec.Images, one) {
			rec.Images = append(rec.Images, one)
		}
	}
	slices.SortFunc(rec.Catalogs, func(a, b recordCatalog) int { return strings.Compare(a.Destination, b.Destination) })
	slices.SortFunc(rec.Images, func(a, b recordImage) int { return strings.Compare(a.Destination, b.Destination) })
	return rec.write(r.o.Workspace, r.o.Target)
}
