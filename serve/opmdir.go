package serve

import (
	"io/fs"

	"github.com/operator-bindery/bindery/serve/internal/opmformat"
)

// The formats of opm's caches, as opm names them.
const (
	FormatPogreb = opmformat.PogrebDir
	FormatJSON   = "json"
)

// opmFormat returns the format of opm's cache in a directory; empty if there is none. The server does not read such a
// cache: that takes as much CPU time as building its own. It only recognises the directory, to log that and leave it
// unchanged.
func opmFormat(dir fs.FS) string {
	isDir := func(name string) bool {
		info, err := fs.Stat(dir, name)
		return err == nil && info.IsDir()
	}
	if isDir(opmformat.PogrebDir) {
		return FormatPogreb
	}
	if _, err := fs.Stat(dir, opmformat.DigestName); err == nil && isDir(opmformat.JSONDir) {
		return FormatJSON
	}
	return ""
}
