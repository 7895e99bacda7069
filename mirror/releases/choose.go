package releases

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Channel is a channel of which releases are wanted. Without versions these are the last one or, with Full, all;
// MaxVersion alone means all up to it.
type Channel struct {
	Name string
	Type Type
	// MinVersion and MaxVersion bound the versions, both inclusive. They are X.Y.Z or X.Y.Z-PRERELEASE, or empty.
	MinVersion, MaxVersion string
	// ShortestPath wants only the versions on a shortest path of updates between the bounds, which must exist.
	ShortestPath, Full bool
}

// Request asks for releases.
type Request struct {
	Channels []Channel
	// Architectures are names of [Architectures]; amd64 if there are none.
	Architectures []string
	// VersionFilter, unless nil, is what the first and the last version of a channel must match.
	VersionFilter *regexp.Regexp
	// Compat keeps the bounds that the first architecture gives to a channel for the others, as oc-mirror does.
	// Otherwise each architecture has its own first and last version.
	Compat bool
	// NoCrossChannel leaves out the path from the lowest version of all channels to the highest.
	NoCrossChannel bool
	// Strict makes an error of a path that does not exist. Otherwise its ends are taken, with a warning.
	Strict bool
}

// Release is a release that was chosen.
type Release struct {
	Version, Architecture string
	// Channel and Type are those of the graph that has it.
	Channel string
	Type    Type
	// Image is the reference of the release image as the graph has it, the payload. It is not empty, nor checked.
	Image string
	// Why is a phrase that says why it was chosen, such as "head of stable-4.16".
	Why string
}

// Choice is what was chosen.
type Choice struct {
	// Releases are sorted by architecture in the order of the request, then by version. No two have the same image.
	Releases []Release
	Warnings []string
}

// Choose chooses releases. Each channel is looked at for itself, then the path from the lowest version of all channels
// of the type OCP to the highest, which goes through channels between them also if they are not requested. The error is
// an [Error] with all problems, one of them that nothing was found; it is returned with what was chosen all the same.
func (r Request) Choose(ctx context.Context, g Graphs) (*Choice, error) {
	c := &chooser{Request: r, source: source{g, map[Query]answer{}}, taken: map[string]bool{}, said: map[graphsOf]*claims{},
		heads: map[string]string{}}
	spans := c.check()
	if len(c.problems) > 0 {
		return &Choice{}, &Error{Problems: c.problems}
	}
	if r.VersionFilter != nil {
		c.warn("VERSION_FILTER is not supported: only versions that match %s can be the first or the last of a channel",
			fault.Quote(r.VersionFilter.String()))
	}
	for _, c.architecture = range c.Architectures {
		own := spans
		if !r.Compat {
			own = slices.Clone(spans)
		}
		for i := range own {
			if err := c.takeChannel(ctx, &own[i]); err != nil {
				c.report(Problem{Channel: own[i].Name}, err)
			}
		}
		if len(own) > 1 && !r.NoCrossChannel {
			c.takeCross(ctx, own)
		}
	}
	if ctx.Err() != nil {
		return &Choice{}, context.Cause(ctx)
	}
	return c.result()
}

// chooser is a choice in the making.
type chooser struct {
	Request
	source
	architecture string // of the current step
	choice       Choice
	taken        map[string]bool      // the images of the releases
	said         map[graphsOf]*claims // what graphs say, to compare
	problems     []*Problem
	empty        []*Problem        // channels with nothing between the bounds: an error only if nothing else is found
	heads        map[string]string // the first last version of each channel that has none given
}

// span is a channel with bounds; those that the configuration does not have are nil until its graph is read.
type span struct {
	Channel
	min, max *semver.Version
}

// check checks the request, and completes it.
func (c *chooser) check() []span {
	wrong := func(channel string, err error) {
		if err != nil {
			c.problems = append(c.problems, &Problem{Channel: channel, Err: err})
		}
	}
	var architectures []string
	for _, a := range c.Architectures {
		wrong("", checkArchitecture(a))
		if !slices.Contains(architectures, a) {
			architectures = append(architectures, a)
		}
	}
	if c.Architectures = architectures; len(architectures) == 0 {
		c.Architectures = []string{"amd64"}
	}
	spans := make([]span, len(c.Channels))
	for i, ch := range c.Channels {
		wrong(ch.Name, checkName(ch.Name))
		if slices.ContainsFunc(c.Channels[:i], func(o Channel) bool { return o.Name == ch.Name }) {
			wrong(ch.Name, refuse("the channel is requested twice (join the two, or remove one)"))
		}
		ch.Type = cmp.Or(ch.Type, OCP)
		if ch.Type != OCP && ch.Type != OKD {
			wrong(ch.Name, refuse("the type %s is unknown (write ocp or okd)", fault.Quote(string(ch.Type))))
		}
		spans[i].Channel = ch
		var err error
		spans[i].min, err = parseBound("minVersion", ch.MinVersion)
		wrong(ch.Name, err)
		spans[i].max, err = parseBound("maxVersion", ch.MaxVersion)
		wrong(ch.Name, err)
	}
	return spans
}

func checkArchitecture(name string) error {
	if !slices.Contains(Architectures(), name) {
		return refuse("the architecture %s is unknown (known are %s)", fault.Quote(name),
			strings.Join(Architectures(), ", "))
	}
	return nil
}

func checkName(channel string) error {
	if !nameExpr().MatchString(channel) {
		return refuse("%s is no name of a channel, such as stable-4.16", fault.Quote(channel))
	}
	return nil
}

func parseBound(field, text string) (*semver.Version, error) {
	if text == "" {
		return nil, nil
	}
	v, err := parseVersion(text)
	if err != nil {
		return nil, refuse("%s: %v", field, err)
	}
	return &v, nil
}

// takeChannel takes what is wanted of one channel.
func (c *chooser) takeChannel(ctx context.Context, s *span) error {
	given := s.min != nil && s.max != nil
	if given && strings.Contains(s.Name, "eus") && max(s.min.Minor, s.max.Minor)-min(s.min.Minor, s.max.Minor) >= 2 {
		c.warn("channel %s: %s and %s are two or more minor versions apart; see which updates are supported between "+
			"releases of Extended Update Support at https://access.redhat.com/labs/ocpupgradegraph/update_path",
			fault.Quote(s.Name), s.min, s.max)
	}
	query := Query{Type: s.Type, Architecture: c.architecture, Channel: s.Name}
	if s.ShortestPath && s.min != nil {
		query.Version = s.min.String()
	}
	get := c.filled
	if c.Compat && given && !s.ShortestPath { // it is not a failure there
		get = c.get
	}
	g, err := get(ctx, query)
	if err != nil {
		return err
	}
	why, err := c.resolve(g, s)
	if err != nil {
		return err
	}
	if s.ShortestPath {
		nodes, _, err := c.path(g, s.Name, *s.min, *s.max)
		if err == nil {
			c.take(g, s.Channel, fmt.Sprintf("on the shortest path from %s to %s in %s", s.min, s.max, s.Name), nodes)
		}
		return err
	}
	var nodes []int
	for i := range g.nodes {
		if v := g.nodes[i].version; v.GE(*s.min) && v.LE(*s.max) {
			nodes = append(nodes, i)
		}
	}
	if len(nodes) == 0 {
		c.empty = append(c.empty, &Problem{Channel: s.Name, Architecture: c.architecture, Err: describeEmpty(g, s)})
	}
	c.take(g, s.Channel, why, nodes)
	return nil
}

// resolve finds the bounds that are not given. It returns why versions between them are chosen.
func (c *chooser) resolve(g *Graph, s *span) (why string, err error) {
	onlyHead := s.min == nil && s.max == nil && !s.Full
	if s.min == nil || s.max == nil {
		first, last, ok := g.ends(c.VersionFilter)
		if !ok {
			return "", errFilter
		}
		if s.max == nil {
			s.max = &last
			c.compareHead(s.Name, last)
		}
		if onlyHead {
			first = last
		}
		if s.min == nil {
			s.min = &first
		}
	}
	if onlyHead {
		return "head of " + s.Name, nil
	}
	return fmt.Sprintf("within %s..%s of %s", s.min, s.max, s.Name), nil
}

var errFilter = refuse("no version matches VERSION_FILTER")

// compareHead warns if the last version of a channel is not the one of the first architecture.
func (c *chooser) compareHead(channel string, last semver.Version) {
	text := last.String()
	first, ok := c.heads[channel]
	if !ok {
		c.heads[channel] = text
	} else if first != text {
		c.warn("channel %s: the last version is %s for %s, and %s for %s", fault.Quote(channel), first,
			c.Architectures[0], text, c.architecture)
	}
}

// describeEmpty says why a channel has no version between the bounds.
func describeEmpty(g *Graph, s *span) error {
	first, last, ok := g.ends(nil)
	switch {
	case s.min.GT(*s.max):
		return refuse("the lowest version %s is higher than the highest %s, so that none is between them", s.min, s.max)
	case !ok:
		return refuse("the channel is unknown there, or has no versions")
	}
	return refuse("there is no version from %s to %s (the first is %s, the last %s)", s.min, s.max, first, last)
}

// path returns the nodes of a path between two versions of a channel. If there is none they are its ends.
func (c *chooser) path(g *Graph, channel string, from, to semver.Version) (nodes []int, found bool, err error) {
	start, err := g.index(from)
	if err != nil {
		return nil, false, err
	}
	end, err := g.index(to)
	if err != nil {
		return nil, false, err
	}
	if nodes, err = g.path(start, end); err != nil || nodes != nil {
		return nodes, true, err
	}
	return []int{start, end}, false, c.missing(channel, "there is no path of updates from %s to %s", from, to)
}

// missing reports a path that does not exist in a channel.
func (c *chooser) missing(channel, format string, args ...any) error {
	err := refuse(format, args...)
	if c.Strict {
		return err
	}
	c.warn("channel %s, %s: %v; versions between are not chosen", fault.Quote(channel), c.architecture, err)
	return nil
}

// take takes nodes of a channel's graph.
func (c *chooser) take(g *Graph, from Channel, why string, nodes []int) {
	for _, i := range nodes {
		n := &g.nodes[i]
		if n.payload == "" {
			c.report(Problem{Channel: from.Name}, refuse("the graph names no release image for version %s", n.version))
			continue
		}
		if err := c.contradiction(g, from, n); err != nil && !c.Compat {
			c.report(Problem{Channel: from.Name}, err)
			continue
		} else if err != nil {
			c.warn("channel %s, %s: %v", fault.Quote(from.Name), c.architecture, err)
		}
		if !c.taken[n.payload] {
			c.taken[n.payload] = true
			c.choice.Releases = append(c.choice.Releases,
				Release{n.version.String(), c.architecture, from.Name, from.Type, n.payload, why})
		}
	}
}

// contradiction is what graphs say of a version that cannot be: that it has another image, or that its image is another
// version.
func (c *chooser) contradiction(g *Graph, from Channel, n *node) error {
	said := c.said[graphsOf{from.Type, c.architecture}]
	if said == nil {
		said = &claims{map[*Graph]bool{}, map[string][]string{}, map[string][]string{}}
		c.said[graphsOf{from.Type, c.architecture}] = said
	}
	said.add(g)
	version, fix := n.version.String(), "only one can be right: look at the graph, or ask who runs its server"
	if images := said.images[version]; len(images) > 1 {
		return refuse("the version %s has two images, %s and %s (%s)", version, fault.Quote(images[0]), fault.Quote(images[1]), fix)
	}
	if versions := said.versions[n.payload]; len(versions) > 1 {
		return refuse("the image %s is two versions, %s and %s (%s)", fault.Quote(n.payload), versions[0], versions[1], fix)
	}
	return nil
}

// graphsOf are the graphs of which a version or an image is one thing.
type graphsOf struct {
	kind         Type
	architecture string
}

// claims are the images of versions and the versions of images, of each at most two, as graphs say.
type claims struct {
	read             map[*Graph]bool
	images, versions map[string][]string
}

func (s *claims) add(g *Graph) {
	if s.read[g] {
		return
	}
	s.read[g] = true
	note := func(to map[string][]string, key, value string) {
		if len(to[key]) < 2 && !slices.Contains(to[key], value) {
			to[key] = append(to[key], value)
		}
	}
	for i := range g.nodes {
		if n := &g.nodes[i]; n.payload != "" {
			note(s.images, n.version.String(), n.payload)
			note(s.versions, n.payload, n.version.String())
		}
	}
}

// warn adds a warning, each once.
func (c *chooser) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(c.choice.Warnings, text) {
		c.choice.Warnings = append(c.choice.Warnings, text)
	}
}

// report adds a problem of the current architecture, each once.
func (c *chooser) report(p Problem, err error) {
	p.Architecture, p.Err = c.architecture, err
	if !slices.ContainsFunc(c.problems, func(o *Problem) bool { return o.Error() == p.Error() }) {
		c.problems = append(c.problems, &p)
	}
}

// result returns the choice in its order.
func (c *chooser) result() (*Choice, error) {
	if len(c.choice.Releases) == 0 && len(c.problems) == 0 {
		c.problems, c.empty = c.empty, nil
	}
	for _, p := range c.empty {
		c.warn("%v", p)
	}
	slices.SortStableFunc(c.choice.Releases, func(a, b Release) int {
		if a.Architecture != b.Architecture {
			return slices.Index(c.Architectures, a.Architecture) - slices.Index(c.Architectures, b.Architecture)
		}
		return semver.MustParse(a.Version).Compare(semver.MustParse(b.Version))
	})
	if len(c.problems) > 0 {
		return &c.choice, &Error{Problems: c.problems}
	}
	return &c.choice, nil
}
