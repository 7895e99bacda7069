package releases

import (
	"context"

	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// Type is the kind of a channel: which servers have its graphs.
type Type string

// The types. A channel without a type is one of OCP.
const (
	OCP Type = "ocp"
	OKD Type = "okd"
)

// Architectures returns the architectures that graph servers know, by their names there, sorted.
func Architectures() []string { return []string{"amd64", "arm64", "multi", "ppc64le", "s390x"} }

// Query asks for the graph of one channel and one architecture.
type Query struct {
	Type                  Type
	Architecture, Channel string
	// Version, unless empty, is where a path is to start. It does not change the graph.
	Version string
}

// Graphs gives graphs. [Request.Choose] asks once for each channel and architecture, one after the other.
type Graphs interface {
	// Graph returns a graph, which has no versions if the channel is unknown. Errors say where it was looked for, and
	// what was there instead.
	Graph(ctx context.Context, of Query) (*Graph, error)
}

// FileName returns the name under which the graph of a channel is stored: ARCH-CHANNEL.json. It does not have the type,
// so of two channels with one name the graph that is stored last counts, as in the workspaces of oc-mirror.
func FileName(architecture, channel string) string { return architecture + "-" + channel + ".json" }

// nameExpr is the form of a channel's name, which becomes part of a URL and of a file's name.
var nameExpr = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z._-]{0,127}$`)
