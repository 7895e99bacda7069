package declcfg

import (
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

// What outside text may add to a message.
const (
	maxMessage = 4 << 10 // of an error within a message
	maxNames   = 100     // of a list
)

// joined lists the first names of a list, and how many more there are.
func joined(names []string, separator string) string {
	more := ""
	if n := len(names) - maxNames; n > 0 {
		names, more = names[:maxNames], fmt.Sprintf(" and %d more", n)
	}
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = fault.Short(name)
	}
	return strings.Join(short, separator) + more
}
