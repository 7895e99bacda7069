// Package rules finds what is wrong with a catalog or a bundle before a cluster or a release pipeline does.
//
// A rule has an identifier, a severity, the profiles that it belongs to, a sentence that says what it demands, and what
// to do if it is broken. This package has the engine, the rules on catalogs and those on images. The rules on bundles
// are in check/bundlecheck, which uses the same engine:
//
//	run, err := rules.NewRun(rules.Options{Profiles: []rules.Profile{rules.OLMv1}})
//	err = rules.Catalog(ctx, run, subject)
//	report := run.Report()
//
// Nothing in this package reads from a registry: images are described by values that the caller has read.
package rules
