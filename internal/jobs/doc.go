// Package jobs does many migrations: it reads the list of them, does several at a time, and knows after an interruption
// which are done.
//
//	list ──Parse──> []Line ──Run──> one Outcome and one Record (the report) for each
//
// A line is done if its record says so for the same content of the source, the same settings and the same program, and
// its outputs are there. Records are files in a directory of the user's. Before the outputs of a line get their names its
// record says what they will hold: whatever moment a run is killed at, the next one knows what is its own.
//
// What a migration is, is the caller's: Run is given a function for it. Nothing is printed.
package jobs
