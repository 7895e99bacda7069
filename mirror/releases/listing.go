package releases

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// Versions returns the versions of a channel of the type OCP, in ascending order, each once. An unknown channel is an
// [Error].
func Versions(ctx context.Context, g Graphs, channel, architecture string) ([]string, error) {
	graph, err := graphFor(ctx, g, channel, architecture)
	if err != nil {
		return nil, err
	}
	nodes := slices.Clone(graph.nodes)
	slices.SortStableFunc(nodes, func(a, b node) int { return a.version.Compare(b.version) })
	var texts []string
	for i := range nodes {
		texts = append(texts, nodes[i].version.String())
	}
	return slices.Compact(texts), nil
}

// ChannelsOf returns the channels that versions of the channel stable-X.Y are in, sorted. The minor version is given as
// X.Y. An unknown one is an [Error].
func ChannelsOf(ctx context.Context, g Graphs, minor, architecture string) ([]string, error) {
	channel := "stable-" + minor
	if _, err := parseMinor(channel); err != nil {
		return nil, refuse("%s is no version of the form X.Y, such as 4.16", fault.Quote(minor))
	}
	graph, err := graphFor(ctx, g, channel, architecture)
	if err != nil {
		return nil, err
	}
	channels := map[string]bool{}
	graph.addChannels(channels)
	return slices.Sorted(maps.Keys(channels)), nil
}

// graphFor returns the graph of a channel of the type OCP with at least one version.
func graphFor(ctx context.Context, g Graphs, channel, architecture string) (graph *Graph, err error) {
	if err = checkArchitecture(architecture); err == nil {
		err = checkName(channel)
	}
	if err == nil {
		s := source{g, map[Query]answer{}}
		graph, err = s.filled(ctx, Query{Type: OCP, Architecture: architecture, Channel: channel})
	}
	if err != nil {
		return nil, &Error{Problems: []*Problem{{Channel: channel, Architecture: architecture, Err: err}}}
	}
	return graph, nil
}

// tagExpr is the start of a release's tag.
var tagExpr = lazyregexp.New(`^([0-9]{1,9})\.([0-9]{1,9})\.[0-9]`)

// Minors returns the minor versions X.Y of tags such as 4.16.0-rc.1-x86_64, in ascending order. Tags that name no
// version are left out.
func Minors(tags []string) []string {
	found := map[minor]bool{}
	for _, tag := range tags {
		if t := tagExpr().FindStringSubmatch(tag); t != nil {
			x, _ := strconv.ParseUint(t[1], 10, 64) // nine digits
			y, _ := strconv.ParseUint(t[2], 10, 64)
			found[minor{x, y}] = true
		}
	}
	var texts []string
	for _, m := range slices.SortedFunc(maps.Keys(found), func(a, b minor) int {
		return cmp.Or(cmp.Compare(a.major, b.major), cmp.Compare(a.minor, b.minor))
	}) {
		texts = append(texts, fmt.Sprintf("%d.%d", m.major, m.minor))
	}
	return texts
}
