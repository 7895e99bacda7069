package declcfg

import (
	_ "crypto/sha256" // the digest algorithms that image references may use
	_ "crypto/sha512"
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"go.podman.io/image/v5/docker/reference"
)

var labelPattern = lazyregexp.New(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

const maxLabelLength = 63

// labelErrors explains why a name is not a DNS label (RFC 1123), as package names must be.
func labelErrors(name string) []string {
	var errs []string
	if strings.Contains(name, ".") {
		errs = append(errs, "must not contain dots")
	}
	if len(name) > maxLabelLength {
		errs = append(errs, fmt.Sprintf("must be no more than %d characters", maxLabelLength))
	}
	if len(errs) == 0 && !labelPattern().MatchString(name) {
		errs = append(errs,
			"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "+
				"and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "+
				"'[a-z0-9]([-a-z0-9]*[a-z0-9])?')")
	}
	return errs
}

// checkPullSpec checks an image name: a repository with an optional tag and an optional digest of a known algorithm.
func checkPullSpec(image string) error {
	_, err := reference.ParseNormalizedNamed(image)
	return err
}
