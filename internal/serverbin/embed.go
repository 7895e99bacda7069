//go:build embedserver

package serverbin

import "embed"

// embedded holds what "make servers" has built.
//
//go:embed bin/*.layer
var embedded embed.FS
