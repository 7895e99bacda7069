// Package charts gets Helm charts for a mirror: from repositories with an index, from registries, from files and
// directories, and from what an earlier run has kept of them. It runs nothing; the package render reads what it gets.
//
// Kept are, below the working directory, as oc-mirror keeps them, the archives (helm/charts/NAME-VERSION.tgz) and the indexes
// of repositories that are wanted whole (helm/indexes/HOST/PATH/index.yaml); and beside them which version a rule has chosen
// (helm/resolved.json), what charts were rendered with (helm/settings.json, helm/values) and local charts (helm/local).
package charts
