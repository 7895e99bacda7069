//go:build !embedserver

package serverbin

import "embed"

// embedded is empty in a program that was not built with "make build".
var embedded embed.FS
