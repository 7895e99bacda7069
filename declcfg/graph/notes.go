package graph

import (
	"fmt"
	"slices"
	"strings"
)

// How much is described in text. The titles of nodes and the tables of the page have everything.
const (
	maxName    = 72 // characters of a name
	maxMessage = 90 // characters of a message or a version range
	maxTag     = 16 // characters of a version in front of the lanes
	maxListed  = 4  // names of a list in a row
	maxTitled  = 24 // names of a list in a title
)

// note is a remark; a strong one is emphasised.
type note struct {
	text   string
	strong bool
}

// notes returns remarks about a bundle that its nodes and lines do not show.
func (r *row) notes() []note {
	var out []note
	strong := func(format string, args ...any) { out = append(out, note{fmt.Sprintf(format, args...), true}) }
	if r.deprecation != nil {
		out = append(out, note{deprecated(*r.deprecation, maxMessage), true})
	}
	switch {
	case r.bundle == nil:
		strong("not in the catalog")
	case !r.versioned:
		strong("has no version")
	}
	if len(r.elsewhere) > 0 {
		out = append(out, note{"not in this channel but in " + list(r.elsewhere, maxListed), false})
	} else if r.bundle != nil && !slices.ContainsFunc(r.nodes, func(n *node) bool { return n.entry != nil }) {
		strong("in no channel")
	}
	if outside := r.outside(); len(outside) > 0 {
		out = append(out, note{"not in channel " + list(outside, maxListed), false})
	}
	out = append(out, r.perLane(func(n *node) string {
		if n.replaces == n {
			return "replaces itself"
		}
		return ""
	}, true)...)
	out = append(out, r.perLane(func(n *node) string {
		if n.entry == nil || len(n.entry.Skips) == 0 {
			return ""
		}
		return "skips " + n.skipList(maxListed)
	}, false)...)
	out = append(out, r.perLane(func(n *node) string {
		switch {
		case n.invalidRange:
			return "invalid skipRange " + shown(n.entry.SkipRange, maxMessage)
		case n.entry != nil && n.entry.SkipRange != "":
			return "skipRange " + shown(n.entry.SkipRange, maxMessage)
		}
		return ""
	}, false)...)
	return out
}

// outside returns the drawn channels that only name a bundle as replaced or skipped, if another drawn channel has it.
func (r *row) outside() []string {
	var out []string
	for _, n := range r.nodes {
		if n.entry == nil {
			out = append(out, n.lane.name)
		}
	}
	if len(out) == len(r.nodes) {
		return nil // the other notes say where it is
	}
	return out
}

// deprecated returns the text for a deprecation, with at most most characters of the message.
func deprecated(message string, most int) string {
	if message = clip(flat(message), most); message != "" {
		return "deprecated: " + message
	}
	return "deprecated"
}

// perLane describes every node of a row. What is the same in all channels of the bundle is described once, the rest
// with the channels' names.
func (r *row) perLane(say func(*node) string, strong bool) []note {
	var order []string
	lanes := map[string][]string{}
	entries := 0
	for _, n := range r.nodes {
		if n.entry == nil {
			continue
		}
		entries++
		if text := say(n); text != "" {
			if lanes[text] == nil {
				order = append(order, text)
			}
			lanes[text] = append(lanes[text], n.lane.name)
		}
	}
	var out []note
	for _, text := range order {
		if in := lanes[text]; len(in) < entries {
			text += " (" + list(in, maxListed) + ")"
		}
		out = append(out, note{text, strong})
	}
	return out
}

// skipList lists the bundles that an entry skips, by version if they have one.
func (n *node) skipList(most int) string {
	var names []string
	for _, to := range n.skips {
		names = append(names, to.row.short())
	}
	text := list(names, most)
	if n.absent > 0 {
		if text != "" {
			text += " and "
		}
		text += fmt.Sprintf("%d that the catalog does not have", n.absent)
	}
	return text
}

// short returns the version of a bundle, or its name if it has none.
func (r *row) short() string {
	if r.versioned {
		return r.version.String()
	}
	return r.name
}

// list joins the first names with commas and counts the others.
func list(names []string, most int) string {
	rest := ""
	if len(names) > most+1 {
		rest = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = shown(n, maxName)
	}
	return strings.Join(out, ", ") + rest
}

// remarks lists what is not in the drawing of a package, and what is wrong with it.
func (s *sheet) remarks() []note {
	var out []note
	add := func(strong bool, format string, args ...any) {
		out = append(out, note{fmt.Sprintf(format, args...), strong})
	}
	if s.deprecation != nil {
		add(true, "%s", deprecated(*s.deprecation, maxMessage))
	}
	if s.pkg == nil {
		add(true, "the catalog has no olm.package of this name")
	} else if s.laneOf[s.pkg.DefaultChannel] == nil && len(s.lanes) > 0 && !s.partial {
		add(true, "the default channel %s is not there", shown(s.pkg.DefaultChannel, maxName))
	}
	for _, l := range s.lanes {
		if l.deprecation != nil {
			add(true, "channel %s is %s", shown(l.name, maxName), deprecated(*l.deprecation, maxMessage))
		}
	}
	for _, l := range s.lanes {
		if l.heads != 1 {
			add(true, "channel %s has %s", shown(l.name, maxName), count(l.heads, "head"))
		}
		if l.outside > 0 {
			add(false, "channel %s: the skips of %s are listed in the text only", shown(l.name, maxName),
				count(l.outside, "bundle"))
		}
	}
	return out
}

// summary counts the content of a package.
func (s *sheet) summary() string {
	text := count(len(s.lanes), "channel") + ", " + count(s.bundles(), "bundle")
	if s.pkg != nil && s.pkg.DefaultChannel != "" {
		text += ", default channel " + shown(s.pkg.DefaultChannel, maxName)
	}
	return text
}

func (s *sheet) bundles() int {
	n := 0
	for _, r := range s.rows {
		if r.bundle != nil && len(r.elsewhere) == 0 {
			n++
		}
	}
	return n
}

func count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// describe describes the drawing of a package in words, for screen readers.
func (s *sheet) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Package %s: %s.", shown(s.name, maxName), s.summary())
	for i, l := range s.lanes {
		if i == maxTitled {
			fmt.Fprintf(&b, " And %s more.", count(len(s.lanes)-i, "channel"))
			break
		}
		var heads []string
		entries := 0
		for _, n := range l.nodes {
			if n.entry != nil {
				entries++
			}
			if n.head {
				heads = append(heads, n.row.name)
			}
		}
		fmt.Fprintf(&b, " Channel %s: %s, head %s.", shown(l.name, maxName), count(entries, "bundle"),
			list(heads, maxListed))
	}
	return b.String()
}

// title returns the tooltip of a node.
func (n *node) title() string {
	lines := []string{"channel " + shown(n.lane.name, maxName), shown(n.row.name, maxName)}
	if n.head {
		lines[1] += " (head)"
	}
	if n.entry == nil {
		lines = append(lines, "not in this channel")
	} else {
		if n.replaces != nil {
			lines = append(lines, "replaces "+shown(n.replaces.row.name, maxName))
		}
		if len(n.entry.Skips) > 0 {
			lines = append(lines, "skips "+n.skipList(maxTitled))
		}
		if n.entry.SkipRange != "" {
			lines = append(lines, "skipRange "+shown(n.entry.SkipRange, maxMessage))
		}
	}
	if n.skipped {
		lines = append(lines, "is skipped")
	}
	if n.row.deprecation != nil {
		lines = append(lines, deprecated(*n.row.deprecation, 4*maxMessage))
	}
	return strings.Join(lines, "\n")
}
