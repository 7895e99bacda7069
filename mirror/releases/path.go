package releases

import (
	"fmt"
	"slices"
)

// path returns the nodes of a shortest path between two nodes, both included; none if there is no path. Of several it
// is the one that oc-mirror takes: the search goes breadth first, from each node to higher versions first.
func (g *Graph) path(from, to int) ([]int, error) {
	next := make([][]int, len(g.nodes))
	for i, e := range g.edges {
		if len(e) != 2 || e[0] < 0 || e[0] >= len(g.nodes) || e[1] < 0 || e[1] >= len(g.nodes) {
			return nil, refuse("edges[%d] of the graph is %.100s, and should be two indexes below %d", i, fmt.Sprint(e),
				len(g.nodes))
		}
		next[e[0]] = append(next[e[0]], e[1])
	}
	// before has the node from which each one was reached, plus 1.
	before := make([]int, len(g.nodes))
	before[from] = from + 1
	for queue := []int{from}; len(queue) > 0 && before[to] == 0; queue = queue[1:] {
		at := queue[0]
		slices.SortStableFunc(next[at], func(a, b int) int { return g.nodes[b].version.Compare(g.nodes[a].version) })
		for _, n := range next[at] {
			if before[n] == 0 {
				before[n] = at + 1
				queue = append(queue, n)
			}
		}
	}
	if before[to] == 0 {
		return nil, nil
	}
	nodes := []int{to}
	for at := to; at != from; {
		at = before[at] - 1
		nodes = append(nodes, at)
	}
	slices.Reverse(nodes)
	return nodes, nil
}
