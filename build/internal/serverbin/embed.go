//go:build embedserver

package serverbin

import "embed"

// embedded has the files that "make servers" builds.
//
//go:embed bin/*.layer
var embedded embed.FS
