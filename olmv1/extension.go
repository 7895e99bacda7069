package olmv1

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// The limits of the fields: characters, and channels of a list.
const (
	maxVersion   = 64
	maxChannels  = 256
	maxSubdomain = 253
	maxImage     = 1000
)

// PackageName refuses what spec.source.catalog.packageName cannot be.
func PackageName(name string) error {
	return field("spec.source.catalog.packageName", name, maxSubdomain, isSubdomain,
		"packageName must be a valid DNS1123 subdomain. It must contain only lowercase alphanumeric characters, "+
			"hyphens (-) or periods (.), start and end with an alphanumeric character, and be no longer than 253 characters")
}

// Channels refuses what spec.source.catalog.channels cannot be. All errors are reported.
func Channels(names []string) error {
	const at = "spec.source.catalog.channels"
	if len(names) > maxChannels {
		return fmt.Errorf("%s: Too many: %d: must have at most %d items", at, len(names), maxChannels)
	}
	var errs []error
	for i, name := range names {
		errs = append(errs, field(fmt.Sprintf("%s[%d]", at, i), name, maxSubdomain, isSubdomain,
			"channels entries must be valid DNS1123 subdomains"))
	}
	return errors.Join(errs...)
}

// Version refuses what spec.source.catalog.version cannot be. The field may be absent, which an empty version is.
func Version(constraint string) error {
	if constraint == "" {
		return nil
	}
	return field("spec.source.catalog.version", constraint, maxVersion, versions().MatchString,
		"invalid version expression")
}

// versions is the expression of the rule on versions. Brackets that look out of place are the definition's own: they are
// why it refuses 1.*.* and takes 1.x.x.
var versions = sync.OnceValue(func() *regexp.Regexp {
	const (
		operator = `(=||!=|>|<|>=|=>|<=|=<|~|~>|\^)\s*`
		suffix   = `(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?)\s*)`
	)
	return regexp.MustCompile(`^(\s*` + operator +
		`(v?(0|[1-9]\d*|[x|X|\*])(\.(0|[1-9]\d*|x|X|\*]))?(\.(0|[1-9]\d*|x|X|\*))?` + suffix +
		`((?:\s+|,\s*|\s*\|\|\s*)` + operator +
		`(v?(0|[1-9]\d*|x|X|\*])(\.(0|[1-9]\d*|x|X|\*))?(\.(0|[1-9]\d*|x|X|\*]))?` + suffix + `*$`)
})

// field refuses a text that is too long or that a rule of the field refuses. Limits come before rules, and lengths are
// counted in characters, though the API server's message says bytes.
func field(at, text string, most int, valid func(string) bool, message string) error {
	switch {
	case utf8.RuneCountInString(text) > most:
		return fmt.Errorf("%s: Too long: may not be more than %d bytes", at, most)
	case !valid(text):
		return fmt.Errorf("%s: Invalid value: %q: %s", at, text, message)
	}
	return nil
}

// isSubdomain reports whether a text is a DNS-1123 subdomain, of any length.
func isSubdomain(text string) bool {
	for _, label := range strings.Split(text, ".") {
		if label == "" || strings.Trim(label, "-") != label || strings.ContainsFunc(label, func(r rune) bool {
			return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
		}) {
			return false
		}
	}
	return true
}

// ExtensionName refuses what a ClusterExtension cannot be called. Its name is a label of all that it owns, too, and that
// of a Helm release with the runtime of that name.
func ExtensionName(name string, helm bool) error {
	const maxRelease, maxLabel = 53, 63
	switch {
	case utf8.RuneCountInString(name) > maxSubdomain:
		return fmt.Errorf("metadata.name: Invalid value: %.100q: must be no more than %d bytes", name, maxSubdomain)
	case !isSubdomain(name):
		return fmt.Errorf("metadata.name: Invalid value: %q: a lowercase RFC 1123 subdomain must consist of lower case "+
			"alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character", name)
	case helm && len(name) > maxRelease:
		return fmt.Errorf("the Helm release %q: its name is longer than %d characters", name, maxRelease)
	case len(name) > maxLabel:
		return fmt.Errorf("metadata.labels: Invalid value: %q: must be no more than %d bytes", name, maxLabel)
	}
	return nil
}
