package mirror

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/images/store"
)

// shardOf returns the images of this run's shard. Every run of the same image set divides the images in the same way,
// without talking to others: by their layers, so that what images share is copied by one run.
func (r *run) shardOf(ctx context.Context, list []*item) ([]*item, error) {
	if r.o.Shard.Count <= 1 {
		return list, nil
	}
	parts := make([][]v1.Descriptor, len(list))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(r.o.Jobs, 8))
	for n, i := range list {
		g.Go(func() error {
			parts[n] = r.layersOf(gctx, i)
			return context.Cause(ctx)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	of := divide(list, parts, r.o.Shard.Count)
	var mine []*item
	for n, i := range list {
		if of[n] == r.o.Shard.Index-1 {
			mine = append(mine, i)
		}
	}
	r.items.list = mine
	return mine, nil
}

// layersOf returns the layers of an image and of the entries of an index. An image that cannot be read has none: the
// run that it falls to reports it.
func (r *run) layersOf(ctx context.Context, i *item) []v1.Descriptor {
	from, err := r.from.open(ctx, i)
	if err != nil {
		return nil
	}
	defer from.close()
	image, err := store.ReadImage(ctx, from.Reader, from.top)
	if err != nil {
		return nil
	}
	var out []v1.Descriptor
	for _, d := range image.Subjects() {
		text, _, err := from.Manifest(ctx, d.Digest.String())
		if errors.Is(err, context.Canceled) {
			return nil
		}
		var m v1.Manifest
		if err != nil || json.Unmarshal(text, &m) != nil {
			continue
		}
		out = append(out, m.Layers...)
	}
	return out
}

// divide distributes images over shards, and returns the shard of each. Images that share layers are put together,
// those that share most first, as long as they fit into one shard; layers that nearly all images have do not pull them
// all into one. The groups are then distributed by size. The result depends on the images alone.
func divide(list []*item, layers [][]v1.Descriptor, count int) []int {
	sizes := map[digest.Digest]int64{}
	users := map[digest.Digest][]int{}
	for n := range list {
		for _, l := range layers[n] {
			if at := users[l.Digest]; len(at) == 0 || at[len(at)-1] != n {
				users[l.Digest] = append(at, n)
			}
			sizes[l.Digest] = l.Size
		}
	}
	var total int64
	shared := make([]digest.Digest, 0, len(users))
	for d, by := range users {
		total += sizes[d]
		if len(by) > 1 {
			shared = append(shared, d)
		}
	}
	slices.SortFunc(shared, func(a, b digest.Digest) int {
		saved := func(d digest.Digest) int64 { return sizes[d] * int64(len(users[d])-1) }
		return cmp.Or(cmp.Compare(saved(b), saved(a)), strings.Compare(string(a), string(b)))
	})
	groups := newGroups(list, layers, sizes)
	most := max(total/int64(count), 1)
	for _, d := range shared {
		for _, n := range users[d][1:] {
			groups.join(users[d][0], n, most)
		}
	}
	return groups.distribute(count)
}

// groups are sets of images, with the layers of each set.
type groups struct {
	list   []*item
	parent []int
	layers []map[digest.Digest]bool
	bytes  []int64
	sizes  map[digest.Digest]int64
}

// perImage is what an image counts beside its layers, in bytes: its requests take time, too.
const perImage = 64 << 10

func newGroups(list []*item, layers [][]v1.Descriptor, sizes map[digest.Digest]int64) *groups {
	g := &groups{list: list, sizes: sizes, parent: make([]int, len(list)),
		layers: make([]map[digest.Digest]bool, len(list)), bytes: make([]int64, len(list))}
	for n := range list {
		g.parent[n], g.bytes[n], g.layers[n] = n, perImage, map[digest.Digest]bool{}
		for _, l := range layers[n] {
			if !g.layers[n][l.Digest] {
				g.layers[n][l.Digest] = true
				g.bytes[n] += l.Size
			}
		}
	}
	return g
}

func (g *groups) root(n int) int {
	for g.parent[n] != n {
		g.parent[n] = g.parent[g.parent[n]]
		n = g.parent[n]
	}
	return n
}

// join puts two groups together unless they are too large for that.
func (g *groups) join(a, b int, most int64) {
	a, b = g.root(a), g.root(b)
	if a == b {
		return
	}
	if len(g.layers[a]) < len(g.layers[b]) {
		a, b = b, a
	}
	together := g.bytes[a] + g.bytes[b]
	for d := range g.layers[b] {
		if g.layers[a][d] {
			together -= g.sizes[d]
		}
	}
	if together > most {
		return
	}
	for d := range g.layers[b] {
		g.layers[a][d] = true
	}
	g.parent[b], g.bytes[a], g.layers[b] = a, together, nil
}

// distribute gives each group to the shard that then has least, the largest groups first: layers that a shard has
// already do not count again.
func (g *groups) distribute(count int) []int {
	members := map[int][]int{}
	for n := range g.list {
		at := g.root(n)
		members[at] = append(members[at], n)
	}
	order := make([]int, 0, len(members))
	for at := range members {
		order = append(order, at)
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(g.bytes[b], g.bytes[a]), cmp.Compare(members[a][0], members[b][0]))
	})
	load := make([]int64, count)
	has := make(map[digest.Digest][]int) // the shards that have a layer
	of := make([]int, len(g.list))
	then := make([]int64, count)
	for _, at := range order {
		for s := range load {
			then[s] = load[s] + g.bytes[at]
		}
		for d := range g.layers[at] {
			for _, s := range has[d] {
				then[s] -= g.sizes[d]
			}
		}
		least := 0
		for s := range then {
			if then[s] < then[least] {
				least = s
			}
		}
		load[least] = then[least]
		for d := range g.layers[at] {
			if !slices.Contains(has[d], least) {
				has[d] = append(has[d], least)
			}
		}
		for _, n := range members[at] {
			of[n] = least
		}
	}
	return of
}
