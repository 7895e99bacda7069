package diff

import (
	"cmp"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// propertyDiffs compares properties without regard to their order. An old and a current property of the same type that
// differ are paired as a change.
func propertyDiffs(old, current []property) []propertyDiff {
	count := make(map[property]int, len(old))
	for _, p := range old {
		count[p]--
	}
	for _, p := range current {
		count[p]++
	}
	gone, come := map[string][]value{}, map[string][]value{}
	types := map[string]bool{}
	for p, n := range count {
		for range max(n, -n) {
			types[p.typ] = true
			if n < 0 {
				gone[p.typ] = append(gone[p.typ], p.value)
			} else {
				come[p.typ] = append(come[p.typ], p.value)
			}
		}
	}
	var out []propertyDiff
	for _, typ := range slices.Sorted(maps.Keys(types)) {
		a, b := gone[typ], come[typ]
		slices.Sort(a)
		slices.Sort(b)
		for i := range max(len(a), len(b)) {
			d := propertyDiff{Type: typ, Change: Changed}
			switch {
			case i >= len(a):
				d.Change = Added
			case i >= len(b):
				d.Change = Removed
			}
			if i < len(a) {
				d.Old = a[i].json()
			}
			if i < len(b) {
				d.New = b[i].json()
			}
			out = append(out, d)
		}
	}
	return out
}

func relatedDiffs(old, current map[declcfg.RelatedImage]bool) []imageChange {
	var out []imageChange
	for r := range old {
		if !current[r] {
			out = append(out, imageChange{r.Name, r.Image, Removed})
		}
	}
	for r := range current {
		if !old[r] {
			out = append(out, imageChange{r.Name, r.Image, Added})
		}
	}
	slices.SortFunc(out, func(a, b imageChange) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Change, a.Change), cmp.Compare(a.Image, b.Image))
	})
	return out
}

func deprecationDiffs(old, current map[declcfg.Reference]string) []deprecationDiff {
	var out []deprecationDiff
	for ref, message := range old {
		now, kept := current[ref]
		switch {
		case !kept:
			out = append(out, deprecationDiff{ref.Schema, ref.Name, Removed, message, ""})
		case now != message:
			out = append(out, deprecationDiff{ref.Schema, ref.Name, Changed, message, now})
		}
	}
	for ref, message := range current {
		if _, kept := old[ref]; !kept {
			out = append(out, deprecationDiff{ref.Schema, ref.Name, Added, "", message})
		}
	}
	slices.SortFunc(out, func(a, b deprecationDiff) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// others compares blobs of unknown schemas and unknown fields. Those of the same name with different values are paired
// as a change.
func (c comparison) others(old, current map[blobKey]bool) []blobDiff {
	if !c.includes(Others) {
		return nil
	}
	type name struct{ schema, name, field string }
	gone, come := map[name]int{}, map[name]int{}
	for key := range old {
		if !current[key] {
			gone[name{key.schema, key.name, key.field}]++
		}
	}
	for key := range current {
		if !old[key] {
			come[name{key.schema, key.name, key.field}]++
		}
	}
	var out []blobDiff
	add := func(n name, times int, change Change) {
		for range times {
			out = append(out, blobDiff{n.schema, n.name, n.field, change})
		}
	}
	for n, lost := range gone {
		both := min(lost, come[n])
		add(n, both, Changed)
		add(n, lost-both, Removed)
	}
	for n, got := range come {
		add(n, got-min(gone[n], got), Added)
	}
	slices.SortFunc(out, func(a, b blobDiff) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Field, b.Field),
			cmp.Compare(a.Change, b.Change))
	})
	return out
}
