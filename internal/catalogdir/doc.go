// Package catalogdir edits catalog directories in place: it keeps the layout of their files, and touches only those
// that hold what changes.
//
//	Open ──> Load ──> catalog ──> an edit ──> Replace ──> files of the changed packages
//	  │        └── whole packages, skeletons of others        └── all of them, or none
//	  └── one edit at a time; takes back one that was killed
//
// A blob that does not change keeps its bytes, with the comments around it. A changed blob stays where it is, and a
// new one goes beside those of its schema and package. The rules are in docs/layouts.md.
//
// Guarantees: after an error, a cancellation or a full disk, the directory is as it was. After kill -9 every file is
// the old or the new one, never a part of one, and the next [Open] brings the old catalog back unless the edit was
// complete. Until then [declcfg.OpenDir] refuses a directory in which only some files are new; while an edit runs, it
// waits. Programs that read the directory in another way may see old and new files together. An edit that changes one
// file is one rename, and every reader sees the catalog before or after it. Package internal/filetx does this.
package catalogdir
