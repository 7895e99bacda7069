// Package versions parses versions and ranges of them, and finds which versions are in a range. It is the only place that
// does: hack/imports refuses the parser of blang/semver elsewhere. A range is compiled once to sorted spans, so that a version
// is found in it by a binary search, and the versions of a channel in a range by two for each span.
//
// The constraints of ClusterExtensions, which have another syntax, are in olmv1/resolve.
package versions
