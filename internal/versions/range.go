package versions

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"

	"github.com/blang/semver/v4"
)

// MaxRange is the maximum length of a range in bytes; real ones have some dozens.
const MaxRange = 4096

// ErrLong is the error of a range that is longer than [MaxRange].
var ErrLong = fmt.Errorf("longer than %d bytes", MaxRange)

var errEmpty = errors.New("there is no comparison between '||' and '||'")

// Range is a set of versions. The zero value has none. It is immutable, and safe for concurrent use.
type Range struct {
	// spans are disjoint and sorted. No two of them touch.
	spans []span
}

// span has all versions from one cut to another.
type span struct{ from, to cut }

// cut is a place between versions: directly below or directly above one of them, or above all.
type cut struct {
	version semver.Version
	above   bool
	end     bool // above all versions; the version does not matter
}

// lowest is below all versions.
var lowest = cut{version: semver.Version{Pre: []semver.PRVersion{{IsNum: true}}}}

func (c cut) compare(o cut) int {
	if c.end || o.end {
		return order(c.end, o.end)
	}
	if n := c.version.Compare(o.version); n != 0 {
		return n
	}
	return order(c.above, o.above)
}

func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// below reports whether a version is below a cut.
func (c cut) below(v semver.Version) bool {
	if c.end {
		return true
	}
	n := v.Compare(c.version)
	return n < 0 || n == 0 && c.above
}

// ParseRange parses a range in the syntax of blang/semver, which OLM uses: comparisons that are separated by spaces
// must all hold, and of alternatives that are separated by "||" one must. Build metadata does not matter. What that
// package parses has the same versions here, and what it refuses is refused with its message. Two more are refused: a
// range without a comparison between two "||", for which that package returns a function that panics, and one that is
// longer than [MaxRange] ([ErrLong]).
func ParseRange(text string) (Range, error) {
	if len(text) > MaxRange {
		return Range{}, ErrLong
	}
	alternatives, err := split(text)
	if err != nil {
		return Range{}, err
	}
	for i := range alternatives {
		if alternatives[i], err = withoutWildcards(alternatives[i]); err != nil {
			return Range{}, err
		}
	}
	var r Range
	empty := false
	for _, comparisons := range alternatives {
		empty = empty || len(comparisons) == 0
		spans, err := all(comparisons)
		if err != nil {
			return Range{}, err
		}
		r.spans = append(r.spans, spans...)
	}
	if empty {
		return Range{}, errEmpty
	}
	r.spans = union(r.spans)
	return r, nil
}

// Contains reports whether a version is in the range.
func (r Range) Contains(v semver.Version) bool {
	at := sort.Search(len(r.spans), func(i int) bool { return r.spans[i].to.below(v) })
	return at < len(r.spans) && !r.spans[at].from.below(v)
}

// Union returns the range with the versions of all ranges.
func Union(ranges ...Range) Range {
	var spans []span
	for _, r := range ranges {
		spans = append(spans, r.spans...)
	}
	return Range{union(spans)}
}

// words divides a range at its spaces, as blang/semver does: a comparator belongs to the version that follows it, also
// after spaces, and a single letter that no space, or one, precedes is ignored.
func words(text string) []string {
	var out []string
	start, last := 0, byte(0)
	for i := range len(text) {
		switch {
		case text[i] != ' ':
			last = text[i]
		case last != '>' && last != '<' && last != '=':
			if start < i-1 {
				out = append(out, text[start:i])
			}
			start = i + 1
		}
	}
	if start < len(text)-1 {
		out = append(out, text[start:])
	}
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], " ", "")
	}
	return out
}

// split returns the comparisons of each alternative.
func split(text string) ([][]string, error) {
	var out [][]string
	var comparisons []string
	for i, word := range words(text) {
		if word != "||" {
			comparisons = append(comparisons, word)
			continue
		}
		if i == 0 {
			//lint:ignore ST1005 blang/semver's text, which opm prints
			return nil, errors.New("First element in range is '||'")
		}
		out = append(out, comparisons)
		comparisons = nil
	}
	if len(comparisons) == 0 {
		//lint:ignore ST1005 blang/semver's text, which opm prints
		return nil, errors.New("Last element in range is '||'")
	}
	return append(out, comparisons), nil
}

// withoutWildcards replaces comparisons with versions such as 1.2.x by comparisons with the versions at its ends. What
// is no version is left to be refused where versions are parsed.
func withoutWildcards(comparisons []string) ([]string, error) {
	var out []string
	for _, c := range comparisons {
		if !strings.Contains(c, "x") {
			out = append(out, c)
			continue
		}
		op, version, err := splitComparison(c)
		if err != nil {
			return nil, err
		}
		first := strings.Replace(strings.Replace(version, ".x.x", ".x", 1), ".x", ".0", 1)
		if strings.Count(first, ".") == 1 {
			first += ".0"
		}
		next := ""
		if strings.HasSuffix(version, ".x") {
			switch strings.Count(version, ".") {
			case 1:
				next = increment(first, 0)
			case 2:
				next = increment(first, 1)
			}
		}
		switch op {
		case ">":
			out = append(out, ">="+next)
		case ">=", "<":
			out = append(out, op+first)
		case "<=":
			out = append(out, "<"+next)
		case "", "=", "==":
			out = append(out, ">="+first, "<"+next)
		case "!=", "!":
			out = append(out, "<"+first, ">="+next)
		default: // as blang/semver does: any other comparator is ignored
			out = append(out, first)
		}
	}
	return out, nil
}

// increment adds one to a number of a version; it returns the empty string if that is none.
func increment(version string, at int) string {
	parts := strings.Split(version, ".")
	n, err := strconv.Atoi(parts[at])
	if err != nil {
		return ""
	}
	parts[at] = strconv.Itoa(n + 1)
	return strings.Join(parts, ".")
}

// splitComparison splits a comparison at the first digit.
func splitComparison(text string) (op, version string, err error) {
	at := strings.IndexFunc(text, unicode.IsDigit)
	if at < 0 {
		//lint:ignore ST1005 blang/semver's text, which opm prints
		return "", "", fmt.Errorf("Could not get version from string: %q", text)
	}
	return strings.TrimSpace(text[:at]), text[at:], nil
}

// all returns the versions for which every comparison holds.
func all(comparisons []string) ([]span, error) {
	in := span{lowest, cut{end: true}}
	var holes []semver.Version
	for _, c := range comparisons {
		op, text, err := splitComparison(c)
		if err != nil {
			return nil, err
		}
		v, err := operand(op, text)
		if err != nil {
			//lint:ignore ST1005 blang/semver's text, which opm prints
			return nil, fmt.Errorf("Could not parse Range %q: %w", c, err)
		}
		switch op {
		case "<":
			in.limit(lowest, cut{version: v})
		case "<=":
			in.limit(lowest, cut{version: v, above: true})
		case ">":
			in.limit(cut{version: v, above: true}, in.to)
		case ">=":
			in.limit(cut{version: v}, in.to)
		case "!", "!=":
			holes = append(holes, v)
		default:
			in.limit(cut{version: v}, cut{version: v, above: true})
		}
	}
	slices.SortFunc(holes, semver.Version.Compare)
	var out []span
	for _, v := range holes {
		below := span{in.from, in.to}
		below.limit(lowest, cut{version: v})
		out = append(out, below)
		in.limit(cut{version: v, above: true}, in.to)
	}
	return append(out, in), nil
}

// limit leaves what is between two cuts.
func (s *span) limit(from, to cut) {
	if s.from.compare(from) < 0 {
		s.from = from
	}
	if s.to.compare(to) > 0 {
		s.to = to
	}
}

// operand parses the version of a comparison.
func operand(op, text string) (semver.Version, error) {
	switch op {
	case "", "=", "==", "<", "<=", ">", ">=", "!", "!=":
	default:
		//lint:ignore ST1005 blang/semver's text, which opm prints
		return semver.Version{}, fmt.Errorf("Could not parse comparator %q in %q", op, op+text)
	}
	v, err := semver.Parse(text)
	if err != nil {
		//lint:ignore ST1005 blang/semver's text, which opm prints
		return v, fmt.Errorf("Could not parse version %q in %q: %w", text, op+text, err)
	}
	v.Build = nil
	return v, nil
}

// union sorts spans, removes the empty ones, and joins those that touch.
func union(spans []span) []span {
	spans = slices.DeleteFunc(spans, func(s span) bool { return s.from.compare(s.to) >= 0 })
	slices.SortFunc(spans, func(a, b span) int { return a.from.compare(b.from) })
	var out []span
	for _, s := range spans {
		if n := len(out); n > 0 && out[n-1].to.compare(s.from) >= 0 {
			if out[n-1].to.compare(s.to) < 0 {
				out[n-1].to = s.to
			}
			continue
		}
		out = append(out, s)
	}
	return out
}
