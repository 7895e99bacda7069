// Package catalogdir edits catalog directories in place: it keeps the layout of their files and touches only files with
// changed packages.
//
//	Open ──> Load ──> catalog ──> an edit ──> Replace ──> files of the changed packages
//	  │        └── whole packages, skeletons of others        └── all of them, or none
//	  └── one edit at a time; rolls back one that was killed
//
// An unchanged blob keeps its bytes and the comments around it. A changed blob stays at its position, and a new one is
// inserted next to those of its schema and package. docs/reference/edits.md has the rules.
//
// Guarantees: after an error, a cancellation or a full disk, the directory is unchanged. After kill -9 every file is
// completely old or completely new, and the next [Open] restores the old catalog unless the edit was complete. Until
// then [declcfg.OpenDir] refuses a directory in which only some files are new; while an edit runs, it waits. Programs
// that read the directory in another way may see old and new files together. An edit that changes one file is a single
// rename, and every reader sees the catalog before or after it. Package internal/filetx implements this.
package catalogdir
