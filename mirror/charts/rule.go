package charts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// nameExpr is the form of a chart's name, which becomes part of a file's name.
var nameExpr = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// CheckName returns an error for what cannot be the name of a chart.
func CheckName(name string) error {
	if !nameExpr().MatchString(name) {
		return fmt.Errorf("%w: %s is no name of a chart: letters, digits, - . and _, at most 128", fault.ErrInvalid, fault.Quote(name))
	}
	return nil
}

// maxRule is the length of a rule in bytes.
const maxRule = 256

// Rule says which version of a chart is wanted: the newest one that fits.
type Rule struct {
	text string
	fits *semver.Constraints
}

// ParseRule reads a rule as Helm does: a version, with or without v, or a range such as "~1.2" or ">=1.0 <2.0"; pre-releases
// fit only ranges that name one. Empty is any version but pre-releases.
func ParseRule(text string) (Rule, error) {
	if len(text) > maxRule {
		return Rule{}, fmt.Errorf("%w: a rule of %d bytes (limit %d)", fault.ErrLimit, len(text), maxRule)
	}
	fits, err := semver.NewConstraint(cmp.Or(text, "*"))
	if err != nil {
		return Rule{}, fmt.Errorf("%w: %s is neither a version nor a range of versions", fault.ErrInvalid, fault.Quote(text))
	}
	return Rule{text, fits}, nil
}

// String returns the rule as it was written.
func (r Rule) String() string { return r.text }

// IsExact tells whether the rule is one version.
func (r Rule) IsExact() bool {
	_, err := semver.StrictNewVersion(strings.TrimPrefix(r.text, "v"))
	return err == nil
}

// Choose returns the number of the newest version that fits; -1 if none does.
func (r Rule) Choose(versions []string) int {
	sorted := slices.SortedFunc(slices.Values(versions), compareVersions)
	if at := r.find(sorted); at >= 0 {
		return slices.Index(versions, sorted[at])
	}
	return -1
}

// find returns the number of the version to take of a list that is sorted, the newest first; -1 if none fits.
func (r Rule) find(list []string) int {
	if at := slices.Index(list, r.text); at >= 0 {
		return at
	}
	return slices.IndexFunc(list, func(text string) bool {
		v, err := semver.NewVersion(text)
		return err == nil && r.fits.Check(v)
	})
}

// compareVersions orders versions, the newest first.
func compareVersions(a, b string) int {
	x, errX := semver.NewVersion(a)
	y, errY := semver.NewVersion(b)
	if errX != nil || errY != nil {
		return cmp.Compare(b, a)
	}
	return cmp.Or(y.Compare(x), cmp.Compare(b, a))
}

// FullVersion returns a version in its full form without v, as it stands in the names of files; empty for what is none.
func FullVersion(text string) string {
	v, err := semver.NewVersion(text)
	if err != nil || len(text) > maxRule {
		return ""
	}
	return v.String()
}

// FileName returns the name under which a chart is stored: NAME-VERSION.tgz.
func FileName(name, version string) string {
	return name + "-" + cmp.Or(FullVersion(version), "0") + ".tgz"
}
