package declcfg

import (
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Limits of quoted input in a message.
const (
	maxMessage = 4 << 10 // bytes of a wrapped error
	maxNames   = 100     // names in a list
)

// joinNames lists the first names of a list and the number of the others.
func joinNames(names []string, separator string) string {
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
