package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// forecast finds out what a run would do, and copies nothing (MIRROR 11.1): the mapping of all images, and how many
// bytes would be sent to each repository.
func (r *run) forecast(ctx context.Context, list []*item) (err error) {
	if list, err = r.shardOf(ctx, list); err != nil {
		return err
	}
	if err := r.o.Workspace.removeAll("dry-run"); err != nil {
		return err
	}
	if r.o.Mode == ToDisk {
		if err := r.setHave(&medium.Options{}); err != nil {
			return err
		}
		var closeBeside func() error
		if closeBeside, err = r.openBeside(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeBeside()) }()
	}
	r.progress.add(func(e *Event) { e.AllImages = len(list) })
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(r.o.Jobs)
	for _, i := range list {
		if i.account.Status == Blocked {
			continue
		}
		g.Go(func() error {
			err := r.survey(gctx, i)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				i.fail(err)
				r.log.warn(i.name() + " cannot be copied")
				r.log.debug(fmt.Sprintf("%s: %v", i.name(), err))
			}
			r.done(i, err)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, c := range r.catalogs {
		err := r.weigh(ctx, c)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case diskFull(err):
			return err
		case err != nil:
			c.account.Error, c.failed = err.Error(), err
			r.unpublished(c, err)
		}
	}
	r.account.Repositories = r.weights.repositories()
	if r.o.Mode == ToDisk && r.o.Archive != "" {
		var sum int64
		for _, of := range r.account.Repositories {
			sum += of.Bytes
		}
		r.account.Free = r.checkSpace(sum + int64(len(r.weights.seen))*blobOverhead)
	}
	if err := r.writeMapping(list); err != nil {
		return err
	}
	for _, c := range r.catalogs {
		c.describe()
		if r.o.Shard.Count == 0 && r.o.OnMissing == SkipBundle {
			c.account.LeftOut = r.lackingBundles(c)
		}
	}
	if r.o.Mode != ToDisk {
		dir, err := r.o.Workspace.path("dry-run", "cluster-resources")
		if r.o.Compat {
			dir, err = r.o.Workspace.Resources()
		}
		if err != nil {
			return err
		}
		if err := r.writeResources(ctx, dir); err != nil {
			return err
		}
	}
	return r.outcome()
}

// openBeside counts what the archive that is in the directory has as left out, too, as a run does.
func (r *run) openBeside(ctx context.Context) (end func() error, err error) {
	if !r.besideCounts() {
		return func() error { return nil }, nil
	}
	reader, err := medium.Open(ctx, r.o.Archive, medium.ReadOptions{})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return func() error { return nil }, nil // there is none; another one ends the run
	}
	had := r.have
	r.have = func(d digest.Digest) bool { return had != nil && had(d) || reader.Has(d) }
	return reader.Close, nil
}

// survey reads the manifests of an image and compares them with the target.
func (r *run) survey(ctx context.Context, i *item) error {
	var there v1.Descriptor
	demanded, err := r.demands(ctx, i.source)
	if err != nil {
		return err
	}
	if demanded {
		from, err := r.openJudged(ctx, i)
		if err != nil {
			return err
		}
		if err := from.close(); err != nil {
			return err
		}
	}
	if r.to != nil {
		to, err := r.to.repository(i.destination)
		if err != nil {
			return err
		}
		there, err = to.Head(ctx, i.destination.Tag)
		if err == nil && there.Digest == i.source.Digest {
			i.account.Status, i.account.Digest = Present, there.Digest
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.problem(Warning, i.destination.Name(), "", "cannot be asked: %v", err)
		}
	}
	if r.known(i) {
		i.account.Status = Present
		return nil
	}
	sizes, err := r.measureItem(ctx, i, there)
	if err != nil {
		return err
	}
	if sizes == nil {
		i.account.Status, i.account.Digest = Present, there.Digest
		return nil
	}
	i.state.digest, i.state.top, i.state.kept = sizes.top.Digest, sizes.top, sizes.instances
	i.account.Digest, i.account.Bytes, i.account.Status = sizes.top.Digest, sizes.all, Planned
	r.weights.add(i.destination.Repository(), sizes.blobs)
	return nil
}

// weights are the bytes that a dry run finds, by repository.
type weights struct {
	sync.Mutex
	of   map[string]int64
	seen map[digest.Digest]bool
}

// add adds the blobs of an image to a repository. A blob that several repositories have counts once in the total: the
// target mounts it, and a medium has it once.
func (w *weights) add(repository string, blobs map[digest.Digest]int64) {
	w.Lock()
	defer w.Unlock()
	if w.of == nil {
		w.of, w.seen = map[string]int64{}, map[digest.Digest]bool{}
	}
	for d, size := range blobs {
		if !w.seen[d] {
			w.seen[d] = true
			w.of[repository] += size
		}
	}
}

// repositories lists the bytes by repository.
func (w *weights) repositories() []RepositoryBytes { return ByRepository(w.of) }

// ByRepository lists sizes by the names of repositories, sorted.
func ByRepository(of map[string]int64) []RepositoryBytes {
	out := []RepositoryBytes{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, RepositoryBytes{name, of[name]})
	}
	return out
}

// Planned is the status of images that a dry run would copy.
const Planned Status = "planned"

// writeMapping writes SOURCE=DESTINATION for each image, sorted.
func (r *run) writeMapping(list []*item) error {
	var pairs []imageset.Pair
	for _, c := range r.catalogs {
		source := c.op.Catalog
		if source.InRegistry() {
			source.Digest, source.Tag = c.digest, ""
		}
		pairs = append(pairs, imageset.Pair{Source: source, Destination: c.dest})
	}
	var missing []imageset.Pair
	for _, i := range list {
		if i.account.Status == Blocked {
			continue
		}
		source := i.source
		if source.Digest != "" {
			source.Tag = ""
		}
		p := imageset.Pair{Source: source, Destination: i.destination}
		pairs = append(pairs, p)
		if i.account.Status == Planned || i.account.Status == Failed {
			missing = append(missing, p)
		}
		if !r.o.ManifestLists {
			continue
		}
		for _, d := range i.state.kept {
			child, at := source, i.destination
			child.Digest, at.Digest, at.Tag = d.Digest, d.Digest, ""
			pairs = append(pairs, imageset.Pair{Source: child, Destination: at})
		}
	}
	write := func(name string, pairs []imageset.Pair) error {
		var b strings.Builder
		for _, line := range mappingLines(pairs) {
			b.WriteString(line)
			b.WriteByte('\n')
		}
		if b.Len() > limit.MaxMapping {
			return fmt.Errorf("%s: %w: %d bytes (limit %d): mirror fewer images at once", name, fault.ErrLimit, b.Len(),
				limit.MaxMapping)
		}
		path, err := r.o.Workspace.Write([]byte(b.String()), "dry-run", name)
		if err == nil {
			r.account.Files = append(r.account.Files, path)
			r.log.info(fmt.Sprintf("wrote %s", filepath.Clean(path)))
		}
		return err
	}
	if err := write("mapping.txt", pairs); err != nil {
		return err
	}
	if r.o.Mode == ToDisk && len(missing) > 0 {
		return write("missing.txt", missing)
	}
	return nil
}

// mappingLines are the lines of a mapping, sorted.
func mappingLines(pairs []imageset.Pair) []string {
	var lines []string
	for _, p := range pairs {
		lines = append(lines, p.Source.String()+"="+p.Destination.String())
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
