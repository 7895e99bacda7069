//go:build !embedserver

package serverbin

import "embed"

// embedded is empty in a program that was not built by the Makefile.
var embedded embed.FS
