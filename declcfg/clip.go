package declcfg

import (
	"fmt"
	"strconv"
	"strings"
)

// Text from outside stands in messages only up to a length: a name has 253 bytes at most, an image reference seldom more.
const (
	maxQuoted = 300
	maxNames  = 20
)

// clip shortens text from outside.
func clip(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	return strings.ToValidUTF8(s[:maxQuoted], "") + "..."
}

// clipped quotes text from outside, shortened.
func clipped(s string) string { return strconv.Quote(clip(s)) }

// joined lists the first names of a list, and how many more there are.
func joined(names []string, separator string) string {
	more := ""
	if n := len(names) - maxNames; n > 0 {
		names, more = names[:maxNames], fmt.Sprintf(" and %d more", n)
	}
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = clip(name)
	}
	return strings.Join(short, separator) + more
}
