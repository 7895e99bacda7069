package graph

import (
	"cmp"
	"slices"
	"sort"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/internal/versions"
)

// Tracks run parallel to the nodes of a lane: on its left for replaces that pass other bundles, on its right for the
// rails of skips and skipRanges. Their number is limited; a rail without a free track is only described in words, a
// replaces shares the last track.
const (
	maxLeftTracks  = 8
	maxRightTracks = 8
)

// maxInRanges is the maximum number of bundles in all skipRanges of a lane together; those of further entries have no
// rails.
const maxInRanges = 4 << 20

// geometry has the lines of a lane in terms of rows and tracks.
type geometry struct {
	edges       []edge
	rails       []rail
	left, right int // number of tracks
	outside     int // number of rails without a track
}

// edge is a replaces edge. Track 0 is a straight line; the others are on the left, counted outwards.
type edge struct {
	from, to *node // from is the newer one
	track    int
}

// rail represents what an entry skips: a line on the right of the nodes, with a dot for each skipped bundle.
type rail struct {
	from    *node
	to      []*node // from top to bottom
	tied    []bool  // which of them this rail is connected to: the outermost rail of a bundle is
	byRange bool    // from a skipRange
	track   int     // from 0, counted outwards
}

// span returns the first and last row of a rail.
func (r *rail) span() (int, int) {
	first, last := r.to[0].row.index, r.to[len(r.to)-1].row.index
	return min(first, r.from.row.index), max(last, r.from.row.index)
}

// measure lays out the tracks of a lane.
func (l *lane) measure() {
	l.placeEdges()
	l.placeRails()
}

// placeEdges routes replaces edges: straight if no other node is between, else on a track.
func (l *lane) placeEdges() {
	at := make(map[*node]int, len(l.nodes))
	for i, n := range l.nodes {
		at[n] = i
	}
	var bypasses []*edge
	l.edges = make([]edge, 0, len(l.nodes))
	for _, n := range l.nodes {
		if n.replaces == nil || n.replaces == n {
			continue
		}
		l.edges = append(l.edges, edge{from: n, to: n.replaces})
		if e := &l.edges[len(l.edges)-1]; at[e.to] != at[n]+1 {
			bypasses = append(bypasses, e)
		}
	}
	span := func(e *edge) (int, int) {
		return min(e.from.row.index, e.to.row.index), max(e.from.row.index, e.to.row.index)
	}
	shortestFirst(bypasses, span)
	var tracks trackSet
	for _, e := range bypasses {
		first, last := span(e)
		// a track can be reused from the row where an edge ends
		e.track = 1 + min(tracks.occupyTrack(first, last-1), maxLeftTracks-1)
		l.left = max(l.left, e.track)
	}
}

// placeRails assigns tracks to skips. If there are not enough, heads come first and then newer bundles, as current
// upgrades matter most.
func (l *lane) placeRails() {
	candidates := l.candidates()
	slices.SortStableFunc(candidates, func(a, b *rail) int { return compareBool(b.from.head, a.from.head) })
	var tracks trackSet
	var chosen []*rail
	for _, r := range candidates {
		first, last := r.span()
		if tracks.free(first, last) < maxRightTracks {
			tracks.occupyTrack(first, last)
			chosen = append(chosen, r)
		}
	}
	l.outside = len(candidates) - len(chosen)
	shortestFirst(chosen, (*rail).span)
	tracks = trackSet{}
	for _, r := range chosen {
		r.track = tracks.occupyTrack(r.span())
		l.rails = append(l.rails, *r)
		l.right = max(l.right, r.track+1)
	}
	outermost := map[*node]int{}
	for _, r := range l.rails {
		for _, n := range r.to {
			outermost[n] = max(outermost[n], r.track)
		}
	}
	for i := range l.rails {
		r := &l.rails[i]
		for _, n := range r.to {
			r.tied = append(r.tied, outermost[n] == r.track)
		}
	}
}

// candidates returns the rails of a lane without regard to the number of tracks, from top to bottom.
func (l *lane) candidates() []*rail {
	var out []*rail
	inRanges := 0
	for _, n := range l.nodes {
		if to := slices.DeleteFunc(slices.Clone(n.skips), func(m *node) bool { return m == n }); len(to) > 0 {
			out = append(out, &rail{from: n, to: to})
		}
		if inRanges > maxInRanges {
			continue
		}
		if to := l.inRange(n); len(to) > 0 {
			inRanges += len(to)
			out = append(out, &rail{from: n, to: to, byRange: true})
		}
	}
	return out
}

// readRanges finds out which bundles of a lane are in its skipRanges.
func (l *lane) readRanges() {
	var all []semver.Version
	for _, n := range l.nodes {
		if n.row.versioned {
			l.versioned = append(l.versioned, n)
			all = append(all, n.row.version.Version)
		}
	}
	sorted := versions.Sort(all)
	for _, n := range l.nodes {
		if n.entry == nil || n.entry.SkipRange == "" {
			continue
		}
		within, err := versions.ParseRange(n.entry.SkipRange)
		n.within, n.invalidRange = sorted.In(within), err != nil
	}
}

// inRange returns the other bundles of a lane in an entry's skipRange, from top to bottom.
func (l *lane) inRange(n *node) []*node {
	var to []*node
	for i := range n.within.All() {
		if m := l.versioned[i]; m != n {
			to = append(to, m)
		}
	}
	return to
}

// shortestFirst sorts items by the number of rows they span, so that shorter ones get inner tracks.
func shortestFirst[T any](all []T, span func(T) (int, int)) {
	slices.SortStableFunc(all, func(a, b T) int {
		a1, a2 := span(a)
		b1, b2 := span(b)
		return cmp.Or((a2-a1)-(b2-b1), a1-b1)
	})
}

// trackSet has the occupied spans of each track, which do not overlap, from top to bottom. Spans on the last possible
// track may overlap.
type trackSet [][][2]int

// lastTrack is the last track, counted from 0.
const lastTrack = 4 * maxRightTracks

// free returns the first track that is free between two rows.
func (t trackSet) free(first, last int) int {
	for i, taken := range t[:min(len(t), lastTrack)] {
		if at := reaching(taken, first); at == len(taken) || taken[at][0] > last {
			return i
		}
	}
	return min(len(t), lastTrack)
}

// reaching returns the index of the first span that does not end above a row.
func reaching(spans [][2]int, row int) int {
	return sort.Search(len(spans), func(i int) bool { return spans[i][1] >= row })
}

// occupyTrack occupies the first free track.
func (t *trackSet) occupyTrack(first, last int) int {
	i := t.free(first, last)
	if i == len(*t) {
		*t = append(*t, nil)
	}
	if i < lastTrack {
		(*t)[i] = slices.Insert((*t)[i], reaching((*t)[i], first), [2]int{first, last})
	}
	return i
}
