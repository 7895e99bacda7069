package graph

import (
	"cmp"
	"slices"
	"sort"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/declcfg"
)

// Beside the nodes of a lane run tracks: on its left what is replaced past other bundles, on its right the rails of skips
// and skipRanges. A lane has at most so many of them; what finds none is not drawn as a line and only described in words, but
// for replaces, which share the last track.
const (
	maxLeftTracks  = 8
	maxRightTracks = 8
)

// maxRangeChecks bounds how often the skipRanges of one lane are compared with its bundles.
const maxRangeChecks = 4 << 20

// geometry is what a lane consists of, in rows and tracks.
type geometry struct {
	edges       []edge
	rails       []rail
	left, right int // how many tracks there are
	outside     int // how many rails found no track
}

// edge is a replaces. Track 0 is the straight way; the others are on the left, from the inside out.
type edge struct {
	from, to *node // from is the newer one
	track    int
}

// rail is what an entry skips: a line on the right of the nodes, with a dot beside each of the skipped ones.
type rail struct {
	from    *node
	to      []*node // from the top
	tied    []bool  // which of them are tied to this rail: of all that skip a bundle, the outermost is
	byRange bool    // a skipRange
	track   int     // from 0, from the inside out
}

// span is the first and last row of a rail.
func (r *rail) span() (int, int) {
	first, last := r.to[0].row.index, r.to[len(r.to)-1].row.index
	return min(first, r.from.row.index), max(last, r.from.row.index)
}

// measure lays out the tracks of a lane.
func (l *lane) measure() {
	l.placeEdges()
	l.placeRails()
}

// placeEdges finds the ways of replaces: straight where no other node is between, or else past them.
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
		e.track = 1 + min(tracks.place(first, last-1), maxLeftTracks-1) // where one ends the next may begin
		l.left = max(l.left, e.track)
	}
}

// placeRails finds tracks for what is skipped. Where there are not enough, heads come first and then newer bundles: what
// can be upgraded to today matters most.
func (l *lane) placeRails() {
	candidates := l.candidates()
	slices.SortStableFunc(candidates, func(a, b *rail) int { return compareBool(b.from.head, a.from.head) })
	var tracks trackSet
	var chosen []*rail
	for _, r := range candidates {
		first, last := r.span()
		if tracks.free(first, last) < maxRightTracks {
			tracks.place(first, last)
			chosen = append(chosen, r)
		}
	}
	l.outside = len(candidates) - len(chosen)
	shortestFirst(chosen, (*rail).span)
	tracks = trackSet{}
	for _, r := range chosen {
		r.track = tracks.place(r.span())
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

// candidates are the rails that a lane would have with room for all of them, from the top.
func (l *lane) candidates() []*rail {
	var out []*rail
	checks := 0
	for _, n := range l.nodes {
		if to := slices.DeleteFunc(slices.Clone(n.skips), func(m *node) bool { return m == n }); len(to) > 0 {
			out = append(out, &rail{from: n, to: to})
		}
		if n.entry == nil || n.entry.SkipRange == "" || checks > maxRangeChecks {
			continue
		}
		checks += len(l.nodes)
		if to := l.inRange(n); len(to) > 0 {
			out = append(out, &rail{from: n, to: to, byRange: true})
		}
	}
	return out
}

// inRange are the other bundles of a lane that are in an entry's skipRange.
func (l *lane) inRange(n *node) []*node {
	within, err := semver.ParseRange(n.entry.SkipRange)
	if err != nil {
		return nil
	}
	var to []*node
	for _, m := range l.nodes {
		if m != n && m.row.versioned && within(m.row.version.Version) {
			to = append(to, m)
		}
	}
	return to
}

// shortestFirst sorts what spans rows so that the shorter ones come inside.
func shortestFirst[T any](all []T, span func(T) (int, int)) {
	slices.SortStableFunc(all, func(a, b T) int {
		a1, a2 := span(a)
		b1, b2 := span(b)
		return cmp.Or((a2-a1)-(b2-b1), a1-b1)
	})
}

// trackSet is what is taken of tracks: the spans of each, which do not meet, from the top. The last one that there can be
// takes whatever comes.
type trackSet [][][2]int

// lastTrack is the last one, from 0.
const lastTrack = 4 * maxRightTracks

// free returns the first track that is free from one row to another.
func (t trackSet) free(first, last int) int {
	for i, taken := range t[:min(len(t), lastTrack)] {
		if at := reaching(taken, first); at == len(taken) || taken[at][0] > last {
			return i
		}
	}
	return min(len(t), lastTrack)
}

// reaching is the index of the first span that does not end above a row.
func reaching(spans [][2]int, row int) int {
	return sort.Search(len(spans), func(i int) bool { return spans[i][1] >= row })
}

// place takes the first free track.
func (t *trackSet) place(first, last int) int {
	i := t.free(first, last)
	if i == len(*t) {
		*t = append(*t, nil)
	}
	if i < lastTrack {
		(*t)[i] = slices.Insert((*t)[i], reaching((*t)[i], first), [2]int{first, last})
	}
	return i
}

// invalidRange is true for a skipRange that no version can be in.
func invalidRange(e *declcfg.ChannelEntry) bool {
	if e == nil || e.SkipRange == "" {
		return false
	}
	_, err := semver.ParseRange(e.SkipRange)
	return err != nil
}
