package releases

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/nearest"
)

// source asks for each graph once.
type source struct {
	graphs Graphs
	known  map[Query]answer
}

// answer is the answer to a query, whatever its version.
type answer struct {
	graph *Graph
	err   error
}

// get returns a graph, which may be empty.
func (s *source) get(ctx context.Context, of Query) (*Graph, error) {
	key := of
	key.Version = ""
	a, ok := s.known[key]
	if !ok {
		a.graph, a.err = s.graphs.Graph(ctx, of)
		s.known[key] = a
	}
	return a.graph, a.err
}

// filled is like get, and an empty graph is an error. That suggests a channel which the versions of other graphs are in,
// since servers do not list their channels.
func (s *source) filled(ctx context.Context, of Query) (*Graph, error) {
	g, err := s.get(ctx, of)
	if err != nil || len(g.nodes) > 0 {
		return g, err
	}
	if m, err := parseMinor(of.Channel); err == nil { // one that is misspelt has another name before X.Y
		_, _ = s.get(ctx, Query{Type: of.Type, Architecture: of.Architecture, Channel: "stable-" + m.String()})
	}
	channels := map[string]bool{}
	for q, a := range s.known {
		if q.Architecture != of.Architecture || a.err != nil {
			continue
		}
		if a.graph.addChannels(channels); len(a.graph.nodes) > 0 {
			channels[q.Channel] = true
		}
	}
	fix := "check its name; list the channels of its version X.Y to see what there is"
	if near, ok := nearest.Name(of.Channel, slices.Sorted(maps.Keys(channels))); ok && near != of.Channel {
		fix = "did you mean " + fault.Quote(near) + "?"
	}
	return nil, refuse("the channel is unknown, or has no versions for this architecture (%s)", fix)
}

// addChannels adds the names of the channels that the versions are in.
func (g *Graph) addChannels(to map[string]bool) {
	for i := range g.nodes {
		for name := range strings.SplitSeq(g.nodes[i].channels, ",") {
			if name = strings.TrimSpace(name); nameExpr().MatchString(name) {
				to[name] = true
			}
		}
	}
}
