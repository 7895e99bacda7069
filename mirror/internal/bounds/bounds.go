// Package bounds reads the versions that bound what an image set keeps of a package.
package bounds

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"github.com/operator-bindery/bindery/internal/versions"
)

// maxVersion bounds the length of a version in bytes.
const maxVersion = 256

// Bound is a version that may be shorter than three numbers: 1.2 or 1. Missing numbers are 0.
type Bound struct {
	semver.Version
	// Parts is how many numbers were given, 1 to 3.
	Parts int
}

var boundExpr = lazyregexp.New(`^v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// Parse parses minVersion or maxVersion: a semantic version, where a leading v, leading zeros of numbers and
// missing numbers are accepted.
func Parse(text string) (Bound, error) {
	m := boundExpr().FindStringSubmatch(text)
	if m == nil || len(text) > maxVersion {
		return Bound{}, fmt.Errorf("%s is no semantic version such as 1.2.3", fault.Quote(text))
	}
	b := Bound{}
	numbers := [3]uint64{}
	for i := range numbers {
		if m[i+1] == "" {
			break
		}
		b.Parts++
		n, err := strconv.ParseUint(m[i+1], 10, 64)
		if err != nil {
			return Bound{}, fmt.Errorf("%s is no semantic version: the number %s is too large", fault.Quote(text),
				m[i+1])
		}
		numbers[i] = n
	}
	plain := fmt.Sprintf("%d.%d.%d%s%s", numbers[0], numbers[1], numbers[2], m[4], m[5])
	var err error
	if b.Version, err = versions.Parse(plain); err != nil {
		return Bound{}, fmt.Errorf("%s is no semantic version: %s", fault.Quote(text),
			strings.TrimPrefix(err.Error(), "semver: "))
	}
	return b, nil
}
