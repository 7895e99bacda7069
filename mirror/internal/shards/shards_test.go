package shards

import (
	"fmt"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Families of images that share large layers stay together although one small layer is in all images; the shards have
// about the same size, and each image is in one of them.
func TestDivide(t *testing.T) {
	layer := func(name string, size int64) v1.Descriptor {
		return v1.Descriptor{Digest: digest.FromString(name), Size: size}
	}
	var layers [][]v1.Descriptor
	for family := range 12 {
		for image := range 20 {
			layers = append(layers, []v1.Descriptor{layer("base", 1<<20), layer(fmt.Sprint("family", family), 100<<20),
				layer(fmt.Sprint("own", family, image), 1<<20)})
		}
	}
	of := Divide(layers, 4)
	load := map[int]int{}
	for family := range 12 {
		first := of[family*20]
		load[first] += 20
		for image := range 20 {
			if of[family*20+image] != first {
				t.Fatalf("image %d of family %d is in shard %d, the first one in %d", image, family,
					of[family*20+image], first)
			}
		}
	}
	for shard := range 4 {
		if load[shard] != 60 {
			t.Errorf("shard %d has %d images", shard, load[shard])
		}
	}
	if !slices.Equal(of, Divide(layers, 4)) {
		t.Error("the second division differs")
	}
}

// Families that are larger than a shard are divided, and their layer is in few shards nevertheless.
func TestDivideLargeFamilies(t *testing.T) {
	var layers [][]v1.Descriptor
	sizes := map[digest.Digest]int64{}
	var total int64
	add := func(name string, size int64) v1.Descriptor {
		d := v1.Descriptor{Digest: digest.FromString(name), Size: size}
		if sizes[d.Digest] == 0 {
			sizes[d.Digest] = size
			total += size
		}
		return d
	}
	for image := range 300 {
		layers = append(layers, []v1.Descriptor{add(fmt.Sprint("family", image%6), 1<<20),
			add(fmt.Sprint("own", image), int64(20_000+image%3*240_000))})
	}
	for _, count := range []int{1, 3, 7} {
		has := make([]map[digest.Digest]bool, count)
		load := make([]int64, count)
		var sum int64
		for n, s := range Divide(layers, count) {
			if has[s] == nil {
				has[s] = map[digest.Digest]bool{}
			}
			for _, l := range layers[n] {
				if !has[s][l.Digest] {
					has[s][l.Digest] = true
					load[s] += l.Size
					sum += l.Size
				}
			}
		}
		t.Logf("%d shards: %d bytes in all, %d in the largest, of %d", count, sum, slices.Max(load), total)
		if sum > total*5/4 || slices.Max(load) > sum/int64(count)*5/4 {
			t.Errorf("%d shards copy %d bytes of %d, the largest %d", count, sum, total, slices.Max(load))
		}
	}
}

// Images without layers that could be read are distributed, too.
func TestDivideUnreadable(t *testing.T) {
	of := Divide(make([][]v1.Descriptor, 10), 3)
	for shard := range 3 {
		if n := len(slices.DeleteFunc(slices.Clone(of), func(s int) bool { return s != shard })); n < 3 {
			t.Errorf("shard %d has %d of 10", shard, n)
		}
	}
}
