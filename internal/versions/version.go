package versions

import (
	"fmt"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/internal/fault"
)

// maxVersion is the maximum length of a version in bytes; real ones have some dozens.
const maxVersion = 4096

var errLongVersion = fmt.Errorf("%w: the version is longer than %d bytes", fault.ErrLimit, maxVersion)

// Parse parses a semantic version, with the messages of blang/semver, which opm and OLM print. One that is longer than
// 4 KiB is an error of the class of limits.
func Parse(text string) (semver.Version, error) {
	if len(text) > maxVersion {
		return semver.Version{}, errLongVersion
	}
	return semver.Parse(text)
}

// ParseTolerant is like [Parse] for versions that people write: with a "v", without the last numbers, or with zeros before
// a number.
func ParseTolerant(text string) (semver.Version, error) {
	if len(text) > maxVersion {
		return semver.Version{}, errLongVersion
	}
	return semver.ParseTolerant(text)
}
