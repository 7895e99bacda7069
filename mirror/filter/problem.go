package filter

import (
	"cmp"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
)

// Level says how bad a problem is.
type Level string

// The levels.
const (
	// Warning is something to be known.
	Warning Level = "warning"
	// Failure keeps the catalog from being published.
	Failure Level = "error"
)

// The codes of problems.
const (
	UnknownPackage  = "unknown-package"         // a package that is requested is not in the catalog
	UnknownChannel  = "unknown-channel"         // a channel that is requested is not in the package
	NothingKept     = "nothing-kept"            // the catalog has nothing that is requested
	EmptyChannel    = "empty-channel"           // no bundle of a channel is kept: the channel is dropped
	EmptyDefault    = "empty-default-channel"   // no bundle of the default channel is kept
	MissingDefault  = "missing-default-channel" // the default channel is not kept
	ChosenDefault   = "chosen-default-channel"  // the default channel was chosen, as the former one is not kept
	VersionMissing  = "version-not-found"       // no bundle has the only version that is requested
	MixedVersions   = "full-with-versions"      // full and versions exclude each other
	InvalidVersion  = "invalid-version"         // a bundle without a semantic version
	InvalidChannel  = "invalid-channel"         // a channel that is no upgrade graph with one head
	InvalidCatalog  = "invalid-catalog"         // the kept catalog breaks a rule of the format
	EntryNoBundle   = "entry-without-bundle"    // a kept entry has no bundle
	EntryAdded      = "entry-added"             // a kept bundle without an entry got one
	NoChannel       = "bundle-without-channel"  // a bundle of the requested version is in no kept channel
	Unsatisfied     = "unsatisfied-dependency"  // a kept bundle needs something that nothing kept provides
	UnknownDemand   = "unreadable-dependency"   // a dependency that cannot be evaluated
	UnknownVersion  = "unknown-installed"       // an installed version that the catalog does not have
	LosesInstalled  = "lost-installed"          // an installed version has no way to the kept head
	UnusableImage   = "unusable-image"          // a bundle names an image that cannot be mirrored
	EmptyImage      = "empty-image"             // a related image without a reference
	DuplicateOfName = "duplicate-name"          // a package or a channel that the catalog has twice
)

// Problem is something that stands against publishing the kept part of a catalog, or should be known. Fields that do
// not apply are empty. Fix says what to write in the configuration.
type Problem struct {
	Level   Level  `json:"level"`
	Code    string `json:"code"`
	Package string `json:"package,omitempty"`
	Channel string `json:"channel,omitempty"`
	Bundle  string `json:"bundle,omitempty"`
	Text    string `json:"text"`
	Fix     string `json:"fix,omitempty"`

	absent bool
}

// Absent tells that the catalog does not have something that the configuration names.
func (p Problem) Absent() bool { return p.absent }

// String returns [Problem.Sentence] with what to do.
func (p Problem) String() string {
	if p.Fix == "" {
		return p.Sentence()
	}
	return p.Sentence() + " (" + p.Fix + ")"
}

// Sentence returns the text with the package and the channel that it is about.
func (p Problem) Sentence() string {
	var about []string
	if p.Package != "" {
		about = append(about, "package "+fault.Quote(p.Package))
	}
	if p.Channel != "" {
		about = append(about, "channel "+fault.Quote(p.Channel))
	}
	return problem.Join(strings.Join(about, ", "), p.Text)
}

// Error returns what [Problem.String] does.
func (p Problem) Error() string { return p.String() }

// Unwrap returns [fault.ErrInvalid].
func (p Problem) Unwrap() error { return fault.ErrInvalid }

// Error has the problems for which the catalog cannot be filtered at all. oc-mirror fails with them too.
type Error = problem.List[Problem]

// sortProblems sorts by level, failures first, then by package, channel and bundle.
func sortProblems(list []Problem) {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Package, b.Package),
			cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Bundle, b.Bundle), cmp.Compare(a.Code, b.Code))
	})
}
