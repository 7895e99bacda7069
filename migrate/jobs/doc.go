// Package jobs runs many migrations: it parses a list of them, runs several concurrently, and after an interruption
// continues with those that are not done.
//
//	list ──Parse──> []Line ──Run──> one Outcome and one Record (the report) for each
//
// A line is done if its record has the same source content, the same settings and the same program, and its outputs
// exist. Records are files in a directory that the user names. The record is written before the outputs are renamed to
// their final names: after a kill at any moment the next run recognises its own outputs by it.
//
// The caller passes Run the function that does one migration. Nothing is printed.
package jobs
