package option

import (
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/blobcache"
	"github.com/operator-bindery/bindery/images/lockfile"
)

// Session is what a command shares while it runs: what it opens once to read images, and closes at its end.
type Session struct {
	*program.Program

	client *images.Client   // see Client
	blobs  *blobcache.Cache // see blobCache
	// readPlatform, unless empty, is the platform for which images are read; with readAny any other one may replace it.
	ReadPlatform v1.Platform
	ReadAny      bool
	// requireSigned refuses images that are accepted without a signature, as --require-signed does.
	RequireSigned bool
	lock          *lockfile.Lock // until it is written
	Embedded      build.Embedded // the servers embedded in this program
}
