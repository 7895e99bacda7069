package releases

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

// maxMinors bounds the minor versions between two channels: a server that ignores the channel of a query has them all.
const maxMinors = 100

// takeCross takes the path from the lowest version of the channels of the type OCP to the highest. Of channels with the
// same bound it is the one that is given first. A channel without bounds is a problem already.
func (c *chooser) takeCross(ctx context.Context, spans []span) {
	var low, high *span
	for i := range spans {
		s := &spans[i]
		if s.Type != OCP {
			continue
		}
		if s.min == nil || s.max == nil {
			return
		}
		if low == nil || s.min.LT(*low.min) {
			low = s
		}
		if high == nil || s.max.GT(*high.max) {
			high = s
		}
	}
	if low == nil {
		return
	}
	pieces, err := c.walk(ctx, low, high)
	if err != nil {
		c.report(Problem{Channel: low.Name, To: high.Name}, err)
		return
	}
	why := fmt.Sprintf("on the way from %s to %s", low.Name, high.Name)
	if low == high {
		why = fmt.Sprintf("on the shortest path from %s to %s in %s", low.min, high.max, high.Name)
	}
	for _, p := range pieces {
		c.take(p.graph, Channel{Name: p.channel, Type: OCP}, why, p.nodes)
	}
}

// piece is what is taken of one channel on the way.
type piece struct {
	channel string
	graph   *Graph
	nodes   []int
}

// walk returns the shortest paths through the channels from one to another, in each from the last version of the one
// before to its own last version. It ends at a channel that does not have the former.
func (c *chooser) walk(ctx context.Context, low, high *span) ([]piece, error) {
	channels := []string{high.Name}
	var err error
	if low != high {
		if channels, err = channelsBetween(low.Name, high.Name); err != nil {
			return nil, err
		}
	}
	var pieces []piece
	at := *low.min
	for i, name := range channels {
		final := i == len(channels)-1
		in := func(err error) error { return fmt.Errorf("channel %s: %w", fault.Quote(name), err) }
		query := Query{OCP, c.architecture, name, at.String()}
		g, err := c.filled(ctx, query)
		if err != nil {
			return nil, in(err)
		}
		_, to, ok := g.ends(c.VersionFilter)
		if final {
			to, ok = *high.max, true
		}
		if !ok {
			return nil, in(errFilter)
		}
		if name != low.Name && g.find(at) < 0 {
			err := c.missing(name, "it does not have %s, so that there is no path of updates from this version", at)
			if err != nil {
				return nil, in(err)
			}
			query.Channel = high.Name
			if g, err = c.filled(ctx, query); err != nil {
				return nil, in(err)
			}
			end, err := g.index(to)
			if err == nil {
				pieces = append(pieces, piece{high.Name, g, []int{end}})
			} else if final {
				return nil, in(err)
			}
			return pieces, nil
		}
		nodes, found, err := c.path(g, name, at, to)
		if err != nil {
			return nil, in(err)
		}
		if !found && !final {
			nodes = nodes[:1]
		}
		if !found && i > 0 {
			nodes = nodes[1:]
		}
		pieces = append(pieces, piece{name, g, nodes})
		at = to
	}
	return pieces, nil
}

// channelsBetween returns the names of the channels on the way between two: one for each minor version, the first and
// the last as they are; only the latter if both have the same minor version.
func channelsBetween(low, high string) ([]string, error) {
	from, err := parseMinor(low)
	if err != nil {
		return nil, err
	}
	to, err := parseMinor(high)
	if err != nil {
		return nil, err
	}
	if from.major != to.major || from.minor > to.minor || to.minor-from.minor > maxMinors {
		return nil, refuse("there is no way between them from the lowest version of all to the highest: it leads to higher " +
			"minor versions of the same major version (check minVersion and maxVersion, or turn off paths across channels)")
	}
	if from == to {
		return []string{high}, nil
	}
	channels := []string{low}
	prefix := low[:strings.LastIndexByte(low, '-')]
	for y := from.minor + 1; y < to.minor; y++ {
		channels = append(channels, fmt.Sprintf("%s-%d.%d", prefix, from.major, y))
	}
	return append(channels, high), nil
}

// minor is a version X.Y.
type minor struct{ major, minor uint64 }

// String returns X.Y.
func (m minor) String() string { return fmt.Sprintf("%d.%d", m.major, m.minor) }

// parseMinor parses the end -X.Y of a channel's name.
func parseMinor(channel string) (m minor, err error) {
	end := strings.LastIndexByte(channel, '-')
	x, y, _ := strings.Cut(channel[end+1:], ".")
	if m.major, err = strconv.ParseUint(x, 10, 32); err == nil {
		m.minor, err = strconv.ParseUint(y, 10, 32)
	}
	if err != nil || end < 0 {
		return m, refuse("the name %s does not end in -X.Y, so that no path leads to other channels (turn off paths "+
			"across channels)", fault.Quote(channel))
	}
	return m, nil
}
