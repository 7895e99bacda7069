package releases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/versions"
)

// The limits of graphs. The largest real ones have some thousand versions.
const (
	// MaxGraph is the largest text of a graph in bytes.
	MaxGraph   = 64 << 20
	maxNodes   = 50_000
	maxEdges   = 1_000_000
	maxNode    = 64 << 10 // bytes of the text of one version
	maxEdge    = 1 << 10  // bytes of the text of one edge
	maxVersion = 256
	maxPayload = 1024
)

// Graph has the versions of a channel, and which of them are updated to which. It does not change, and is safe for
// concurrent use.
type Graph struct {
	nodes []node
	edges []edge
}

// node is a version.
type node struct {
	version  semver.Version
	payload  string // the reference of the release image; it may be empty
	channels string // the channels that have the version, separated by commas
}

// edge has the indexes of two nodes. Its form is checked when a path is looked for, as the versions are of use without.
type edge []int

// ParseGraph parses the answer of a graph server: nodes with version, payload and metadata, and edges. Keys are
// compared without case, and other members are ignored, also conditional edges. Each version must be a semantic one.
// Errors are of the classes of input and, beyond a limit, [fault.ErrLimit].
func ParseGraph(text []byte) (*Graph, error) {
	if len(text) > MaxGraph {
		return nil, fmt.Errorf("%w: a graph of more than %d bytes", fault.ErrLimit, MaxGraph)
	}
	g, err := parseGraph(json.NewDecoder(bytes.NewReader(text)))
	if err != nil && !errors.Is(err, fault.ErrLimit) {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, refuse("no graph: %v", err)
	}
	return g, err
}

func parseGraph(d *json.Decoder) (*Graph, error) {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, cmpError(err, errors.New("no JSON object"))
	}
	g := &Graph{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		switch name := key.(string); {
		case strings.EqualFold(name, "nodes"):
			g.nodes, err = decodeList[node](d, "nodes", maxNodes)
		case strings.EqualFold(name, "edges"):
			g.edges, err = decodeList[edge](d, "edges", maxEdges)
		default:
			err = d.Decode(&json.RawMessage{})
		}
		if err != nil {
			return nil, err
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the JSON object")
	}
	return g, nil
}

// cmpError returns the first error that is not nil.
func cmpError(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// decodeList decodes a list element by element, so that its number is bounded before all of it is in memory.
func decodeList[T any](d *json.Decoder, name string, most int) ([]T, error) {
	t, err := d.Token()
	if err != nil || t == nil {
		return nil, err
	}
	if t != json.Delim('[') {
		return nil, fmt.Errorf("%s is no list", name)
	}
	var list []T
	for d.More() {
		if len(list) == most {
			return nil, fmt.Errorf("%w: a graph with more than %d %s", fault.ErrLimit, most, name)
		}
		var element T
		if err := d.Decode(&element); err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", name, len(list), err)
		}
		list = append(list, element)
	}
	_, err = d.Token()
	return list, err
}

// UnmarshalJSON implements [json.Unmarshaler].
func (n *node) UnmarshalJSON(text []byte) error {
	if len(text) > maxNode {
		return fmt.Errorf("%w: more than %d bytes", fault.ErrLimit, maxNode)
	}
	var form struct {
		Version, Payload string
		Metadata         map[string]string
	}
	err := json.Unmarshal(text, &form)
	if err != nil {
		return err
	}
	if len(form.Payload) > maxPayload {
		return fmt.Errorf("%w: a payload of more than %d bytes", fault.ErrLimit, maxPayload)
	}
	n.payload, n.channels = form.Payload, form.Metadata["io.openshift.upgrades.graph.release.channels"]
	n.version, err = parseVersion(form.Version)
	return err
}

// UnmarshalJSON implements [json.Unmarshaler].
func (e *edge) UnmarshalJSON(text []byte) error {
	if len(text) > maxEdge {
		return fmt.Errorf("%w: more than %d bytes", fault.ErrLimit, maxEdge)
	}
	return json.Unmarshal(text, (*[]int)(e))
}

// parseVersion parses a version of three numbers; a leading v is not accepted.
func parseVersion(text string) (semver.Version, error) {
	v, err := versions.Parse(text)
	if err != nil || len(text) > maxVersion {
		return v, refuse("%s is no version of the form X.Y.Z or X.Y.Z-PRERELEASE", fault.Quote(text))
	}
	return v, nil
}

// find returns the index of a version, -1 if it is not there. Build metadata does not count; of equal versions it is
// the first.
func (g *Graph) find(v semver.Version) int {
	for i := range g.nodes {
		if g.nodes[i].version.EQ(v) {
			return i
		}
	}
	return -1
}

// ends returns the lowest and the highest version, of those that the filter matches if there is one. It reports whether
// there are any.
func (g *Graph) ends(filter *regexp.Regexp) (first, last semver.Version, ok bool) {
	for i := range g.nodes {
		v := g.nodes[i].version
		if filter != nil && !filter.MatchString(v.String()) {
			continue
		}
		if !ok || v.LT(first) {
			first = v
		}
		if !ok || v.GT(last) {
			last = v
		}
		ok = true
	}
	return first, last, ok
}

// neighbours names the versions next to one that is not there.
func (g *Graph) neighbours(v semver.Version) string {
	below, above := -1, -1
	for i := range g.nodes {
		switch x := g.nodes[i].version; {
		case x.LT(v) && (below < 0 || x.GT(g.nodes[below].version)):
			below = i
		case x.GT(v) && (above < 0 || x.LT(g.nodes[above].version)):
			above = i
		}
	}
	var names []string
	for _, i := range []int{below, above} {
		if i >= 0 {
			names = append(names, g.nodes[i].version.String())
		}
	}
	return strings.Join(names, " and ")
}

// index is like find, with an error that names the versions next to one that is not there.
func (g *Graph) index(v semver.Version) (int, error) {
	i := g.find(v)
	if i < 0 {
		return i, refuse("there is no version %s (next to it: %s)", v, g.neighbours(v))
	}
	return i, nil
}
