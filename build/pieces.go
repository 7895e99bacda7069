package build

import (
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// heldWeight limits the blobs in memory while a catalog is validated, besides those of one package: approximately in
// bytes, without manifests, which are not validated.
const heldWeight = 8 << 20

// verdict is the state of a package after the first pass over all files. Its zero value is a package without anything
// to validate.
type verdict int

const (
	isValid   verdict = iota + 1 // unless it is split
	isInvalid                    // unless it is split
	isSplit                      // more of its blobs appeared after the earlier ones had been released
)

// pieces validates packages in a stream of blobs. It releases packages when they take too much memory: the blobs of a
// package are usually adjacent, so that the package is complete by then. Otherwise it is marked as split. The validity
// of a package does not depend on other packages or on blobs of unknown schemas.
type pieces struct {
	limit    int
	held     map[string]*declcfg.Catalog
	weight   int
	last     string // the most recent package
	verdicts map[string]verdict
}

func newPieces(limit int) *pieces {
	return &pieces{limit: limit, held: map[string]*declcfg.Catalog{}, verdicts: map[string]verdict{}}
}

// add takes the next blob.
func (p *pieces) add(b declcfg.Blob) {
	pkg := packageOf(b)
	if declcfg.Rank(b.BlobSchema()) == declcfg.RankOther {
		return
	}
	if p.weight > p.limit && pkg != p.last {
		p.letGo()
	}
	p.last = pkg
	if _, gone := p.verdicts[pkg]; gone {
		p.verdicts[pkg] = isSplit
		return
	}
	c := p.held[pkg]
	if c == nil {
		c = &declcfg.Catalog{}
		p.held[pkg] = c
	}
	c.Add(b)
	p.weight += blobWeight(b)
}

// letGo validates the held packages and releases them.
func (p *pieces) letGo() {
	for pkg, c := range p.held {
		p.verdicts[pkg] = isValid
		if c.Validate() != nil {
			p.verdicts[pkg] = isInvalid
		}
	}
	clear(p.held)
	p.weight = 0
}

// blobWeight is the approximate memory of a blob in bytes.
func blobWeight(b declcfg.Blob) int {
	n := 500
	properties := func(ps []declcfg.Property) {
		for _, p := range ps {
			n += 50 + len(p.Value)
		}
	}
	unknown := func(fs []declcfg.Field) {
		for _, f := range fs {
			n += 50 + len(f.Value)
		}
	}
	switch b := b.(type) {
	case *declcfg.Package:
		properties(b.Properties)
		unknown(b.Unknown)
		n += len(b.Description)
		if b.Icon != nil {
			n += len(b.Icon.Data)
		}
	case *declcfg.Channel:
		properties(b.Properties)
		unknown(b.Unknown)
		for _, e := range b.Entries {
			n += 150 + len(e.SkipRange) + 50*len(e.Skips)
		}
	case *declcfg.Bundle:
		properties(b.Properties)
		unknown(b.Unknown)
		for _, i := range b.RelatedImages {
			n += 50 + len(i.Name) + len(i.Image)
		}
	case *declcfg.Deprecations:
		unknown(b.Unknown)
		for _, e := range b.Entries {
			n += 100 + len(e.Message)
		}
	}
	return n
}

// first is the first pass over files: it determines their packages and validates them.
func (r *reading) first(which []int) (map[string]verdict, error) {
	p := newPieces(r.held)
	of := make([]map[string]bool, len(r.files))
	err := r.walk(which, func(f *sourceFile, b declcfg.Blob) error {
		i := r.index[f.name]
		if of[i] == nil {
			of[i] = map[string]bool{}
		}
		of[i][packageOf(b)] = true
		p.add(b)
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.letGo()
	for _, i := range which {
		r.files[i].read = true
		r.files[i].packages = slices.Sorted(maps.Keys(of[i]))
	}
	return p.verdicts, nil
}

// second is the second pass over the files of some packages, and validates these in parts. A file is read once per part
// that shares it: the number of parts is bounded so that this is at most twice the work.
func (r *reading) second(packages []string, in map[string][]int) error {
	for _, part := range r.parts(packages, in) {
		wanted := map[string]bool{}
		var which []int
		for _, pkg := range part {
			wanted[pkg] = true
			which = append(which, in[pkg]...)
		}
		slices.Sort(which)
		c := &declcfg.Catalog{}
		err := r.walk(slices.Compact(which), func(_ *sourceFile, b declcfg.Blob) error {
			if declcfg.Rank(b.BlobSchema()) != declcfg.RankOther && wanted[packageOf(b)] {
				c.Add(b)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if c.Validate() != nil {
			return errReadAll
		}
	}
	return nil
}

// partBytes is the total size of files that are read together in the second pass if they share little with others.
// About a fifth of it is in memory.
const partBytes = 64 << 20

// parts groups packages for the second pass.
func (r *reading) parts(packages []string, in map[string][]int) [][]string {
	uses := map[int]int64{}
	for _, pkg := range packages {
		for _, i := range in[pkg] {
			uses[i]++
		}
	}
	var all, shared int64
	for i, n := range uses {
		all += r.files[i].size
		if n > 1 {
			shared += r.files[i].size
		}
	}
	n := min(1+all/partBytes, max(1, all/max(1, shared)), int64(len(packages)))
	if n <= 1 {
		if len(packages) == 0 {
			return nil
		}
		return [][]string{packages}
	}
	// Split by the bytes of a package, including its part of a shared file.
	var out [][]string
	var part []string
	var size int64
	for _, pkg := range packages {
		part = append(part, pkg)
		for _, i := range in[pkg] {
			size += r.files[i].size / uses[i]
		}
		if size*n >= all {
			out, part, size = append(out, part), nil, 0
		}
	}
	if len(part) > 0 {
		out = append(out, part)
	}
	return out
}
