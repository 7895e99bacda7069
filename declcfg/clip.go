package declcfg

import (
	"fmt"
	"strconv"
	"strings"
)

// Text from outside stands in messages only up to a length: a name has 253 bytes at most, an image reference seldom
// more.
const (
	maxQuoted  = 300
	maxMessage = 4 << 10 // of an error within a message
	maxNames   = 100     // of a list
)

// clip shortens text from outside.
func clip(s string) string { return clipTo(s, maxQuoted) }

func clipTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
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
