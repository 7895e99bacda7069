// Package catalogdir edits catalog directories in place: it keeps the layout of their files, and touches only those that
// hold what changes.
//
//	Open ──> Load ──> catalog ──> an edit ──> Replace ──> files of the changed packages
//	  │        └── whole packages, skeletons of others        │
//	  └── one edit at a time; sweeps what a killed one left   └── all of them, or none
//
// A blob that is not changed keeps its bytes, with the comments around it. A changed blob stays where it is, and a new one
// goes where its likes are. The rules are in docs/layouts.md.
//
// Files that change are written beside the others, in a directory whose content no reader of catalogs looks at, checked,
// synced, and put in place by one operation of the file system: a rename, or an exchange of two directories. Where that
// cannot be had, they are renamed one by one along a journal, by which the next edit brings the old files back if this one is killed.
package catalogdir
