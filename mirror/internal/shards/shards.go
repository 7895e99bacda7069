// Package shards divides the images of a mirror into parts of about the same size, so that several machines can each
// copy one. Every machine finds the same division without talking to the others.
package shards

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Divide distributes images over shards by the layers of each image, and returns the shard of each, counted from 0.
// Images that share layers are put together,
// those that share most first, as long as they fit into one shard; layers that nearly all images have do not pull them
// all into one. The groups are then distributed by size. The result depends on the images alone.
func Divide(layers [][]v1.Descriptor, count int) []int {
	sizes := map[digest.Digest]int64{}
	users := map[digest.Digest][]int{}
	for n := range layers {
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
	groups := newGroups(layers, sizes)
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
	parent []int
	layers []map[digest.Digest]bool
	bytes  []int64
	sizes  map[digest.Digest]int64
}

// perImage is what an image counts beside its layers, in bytes: its requests take time, too.
const perImage = 64 << 10

func newGroups(layers [][]v1.Descriptor, sizes map[digest.Digest]int64) *groups {
	g := &groups{sizes: sizes, parent: make([]int, len(layers)),
		layers: make([]map[digest.Digest]bool, len(layers)), bytes: make([]int64, len(layers))}
	for n := range layers {
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
	for n := range g.parent {
		at := g.root(n)
		members[at] = append(members[at], n)
	}
	order := slices.SortedFunc(maps.Keys(members), func(a, b int) int {
		return cmp.Or(cmp.Compare(g.bytes[b], g.bytes[a]), cmp.Compare(members[a][0], members[b][0]))
	})
	load := make([]int64, count)
	has := make(map[digest.Digest][]int) // the shards that have a layer
	of := make([]int, len(g.parent))
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
